"""Vectors of new people: those of somebody who only listens, and what each method says about it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from caged.data.interactions import Interactions
from caged.errors import ConfigError
from caged.graph import BipartiteGraph, EdgeWeights, propagate
from caged.models import METHODS, FoldsIn, registered
from caged.models.fold_in import fold_in_by_degree
from tests.models.logs import skewed
from tests.models.short_runs import prepared

EXACT = ("lightgcn", "ips", "reg", "lightgcn_bce", "galore", "adjnorm", "softmax")


def history_of(log: Interactions, user: int) -> torch.Tensor:
    return torch.tensor(log.items[log.users == user])


def made(name: str, log: Interactions, **options: object):
    known = registered(name)
    return prepared(known.method(known.config(**options)), BipartiteGraph.from_interactions(log, torch.device("cpu")))


@pytest.mark.parametrize("name", EXACT)
def test_a_known_history_gives_the_vector_without_its_own_start(name: str) -> None:
    """e_u = a_0 e_u^(0) + fold-in of the history of u: the same sum over the same edges."""
    log = skewed()
    options = {"r": 0.25} if name == "adjnorm" else {}
    method = made(name, log, embedding_size=6, layers=3, **options)
    encoder, found = method.history_encoder(), method.fold_in()
    with torch.no_grad():
        vectors = encoder()
        for user in (0, 3, 7):
            history = history_of(log, user)
            mine = found._replace(by_cosine=False).vectors(history, torch.tensor([len(history)]))[0]
            wanted = vectors.users[user] - encoder.layer_weights[0] * encoder.users[user]
            torch.testing.assert_close(mine, wanted, atol=1e-6, rtol=1e-5)


def test_a_listener_in_the_graph_gets_that_vector() -> None:
    """A person is really added, with edges from items to the person only: those to items weigh 0."""
    log = skewed()
    method = made("lightgcn", log, embedding_size=6, layers=3)
    encoder = method.history_encoder()
    history = np.array([1, 4, 9])
    users = np.concatenate((log.users, np.full(3, log.user_count)))
    items = np.concatenate((log.items, history))
    order = np.lexsort((items, users))
    users, items = users[order], items[order]
    grown = Interactions(type(log.user_ids).range(log.user_count + 1), log.item_ids, users, items)
    graph = BipartiteGraph.from_interactions(grown, torch.device("cpu"))
    new = torch.from_numpy(users == log.user_count)
    degrees = torch.tensor(log.item_degrees)  # as trained
    to_user, to_item = torch.empty(len(users)), torch.empty(len(users))
    to_user[~new], to_item[~new] = encoder.weights.to_user, encoder.weights.to_item
    to_user[new] = (3 * degrees[torch.tensor(history)].double()).rsqrt().float()
    to_item[new] = 0.0
    tables = type(encoder.layer0)(torch.cat((encoder.users, torch.zeros(1, 6))), encoder.items)
    with torch.no_grad():
        wanted = propagate(EdgeWeights(graph, to_user, to_item), tables, encoder.layer_weights).users[-1]
        found = method.fold_in().vectors(torch.tensor(history), torch.tensor([3]))[0]
    torch.testing.assert_close(found, wanted, atol=1e-6, rtol=1e-5)


def test_many_histories_are_summed_each_by_itself() -> None:
    found = made("lightgcn", skewed(), embedding_size=4, layers=2).fold_in()
    items, lengths = torch.tensor([1, 4, 9, 2, 0]), torch.tensor([3, 1, 1])
    together = found.vectors(items, lengths)
    alone = [found.vectors(torch.tensor(one), torch.tensor([len(one)]))[0] for one in ([1, 4, 9], [2], [0])]
    torch.testing.assert_close(together, torch.stack(alone))


def test_softmax_ranks_new_people_by_cosine() -> None:
    found = made("softmax", skewed(), embedding_size=4, layers=2).fold_in()
    assert float(found.vectors(torch.tensor([1, 2]), torch.tensor([2])).norm()) == pytest.approx(1.0)


@pytest.mark.parametrize(("name", "words"), [("macr", "branch"), ("apda", "both of its ends")])
def test_who_cannot_says_why(name: str, words: str) -> None:
    method = made(name, skewed(), embedding_size=4, layers=2)
    with pytest.raises(ConfigError, match=words):
        method.fold_in()


def test_loops_and_no_layers_are_refused() -> None:
    with pytest.raises(ConfigError, match="self_loop"):
        made("adjnorm", skewed(), embedding_size=4, self_loop=True).fold_in()
    with pytest.raises(ConfigError, match="layers=0"):
        fold_in_by_degree(made("lightgcn", skewed(), embedding_size=4, layers=0).history_encoder())


def test_caged_says_what_it_does() -> None:
    assert "LightGCN's" in made("caged", skewed(), embedding_size=4, layers=2).fold_in().note


def test_every_method_folds_in_refuses_or_has_no_vectors() -> None:
    able = {name for name, known in METHODS.items() if isinstance(known.method(known.config()), FoldsIn)}
    assert able == {*EXACT, "caged", "macr", "apda", "ips_aggregation"}
