"""The public classes: a method wrapped into fit / recommend / similar_items / save / load, in external identifiers.

`Recommender` takes any method by name; the registry gives the built-in ones a class of their own, made on first use.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import fields, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa

from caged.arguments import checked_seed, choice, instance, place, whole_number, yes_or_no
from caged.config import build, unknown_key
from caged.data import Development, Interactions, Split, carve_validation
from caged.data.readers import DEFAULT_COLUMNS
from caged.errors import ConfigError, memory_told
from caged.evaluation.adjust.choice import KEEP, Adjustment, Form, choose_strength
from caged.evaluation.adjust.of_scores import adjusted
from caged.evaluation.evaluate import make_validator
from caged.evaluation.evidence import Evidence, checked, of_part
from caged.evaluation.groups import grouping
from caged.evaluation.lists import USUAL_K, check_k, usual_k
from caged.files import make_output_folder
from caged.graph import BipartiteGraph
from caged.models import MayBeNeutral, Method, Registered, registered
from caged.progress import EpochProgress, ProgressLine, is_watched
from caged.runs import newcomers, serving
from caged.runs.artefact import Artefact, TrainedWith, load_artefact, save_model, save_training_data
from caged.runs.environment import DEVICES, resolve_device
from caged.runs.evaluated import Evaluated, evaluate_model
from caged.runs.fit_inputs import checked_observers, in_one_catalogue, parts_given
from caged.runs.folder import RunFolder
from caged.runs.serving import Unknown
from caged.runs.signatures import docstring_of, signature_of
from caged.runs.validation import check_refit, check_without_validation, holds_out_validation
from caged.runs.vectors import Vectors, vectors_of
from caged.seeding import Generators
from caged.training import Decisions, Loop, Observer, TrainConfig

logger = logging.getLogger("caged")

MOST_ITEMS = 2**31 - 1  # rows are 32 bits wide on a device


class Recommender:
    """A method with its options, ready to fit.

        model = caged.LightGCN(embedding_size=64, epochs=50).fit(split.train, valid=split.valid)
        recs = model.recommend(["ann", "bob"], k=10)

    Options are those of the method (`caged methods show NAME`) and of training (`learning_rate`, `epochs`, ...), by
    name. `Recommender("name", ...)` takes any registered method, your own included.
    """

    method_name: ClassVar[str | None] = None

    def __init__(self, method: str | None = None, *, seed: int = 1, device: str = "auto", **options: Any) -> None:
        name = self.method_name if method is None else method
        if name is None:
            raise ConfigError("no method given; use Recommender('lightgcn', ...) or a class such as caged.LightGCN")
        known = registered(instance("method", name, str, "the name of a method"))
        own, training = _sorted_options(known.config, options)
        self.name = name
        self.config = build(known.config, own, "method")
        self.train_config = build(TrainConfig, training, "train")
        self._epochs_given = "epochs" in training
        self.seed = checked_seed(seed)
        self.device = choice("device", device, DEVICES)
        self._artefact: Artefact | None = None
        self._run: RunFolder | None = None  # that it was loaded from

    def __repr__(self) -> str:
        state = f"fitted on {self._artefact.train!r}" if self._artefact else "not fitted"
        return f"{type(self).__name__}({self.name!r}, {self.config}, {state})"

    # ---------------------------------------------------------------- fitting

    def fit(
        self,
        train: Any,
        valid: Any = None,
        *,
        k: int = USUAL_K,
        observers: Sequence[Observer] = (),
        progress: bool | None = None,
    ) -> Self:
        """Train on `train`; the epoch is chosen by recall@k on `valid` (carved from train where none is given).

        Both are `Interactions`, or any frame that speaks Arrow with the columns user_id and item_id. A `Split` stands
        for its train and validation parts; its test part is not looked at. A method in closed form chooses nothing: it
        is trained on both, and so is any with `validation="no", epochs=N`. With `refit=True` it is trained once more on
        both, with what validation decided. `progress` draws a line on stderr, by default in
        terminals and notebooks.
        """
        train, valid = parts_given(train, valid)
        observers = checked_observers(observers)
        watched = is_watched(sys.stderr) if progress is None else yes_or_no("progress", progress)
        method: Method[Any] = registered(self.name).method(self.config)
        validated = holds_out_validation(method, self.train_config)
        check_without_validation(self.name, method, self.train_config, epochs_given=self._epochs_given)
        check_refit(self.name, method, self.train_config)
        parts = self._parts(train, valid, validated=validated)
        k = _checked_k(k, parts)
        if isinstance(self.config, MayBeNeutral) and (neutral := self.config.neutral()):
            logger.warning(neutral)
        with ProgressLine() as line:
            observers = (*observers, EpochProgress(line)) if watched else observers
            self._artefact = self._trained(method, parts, k, observers)
            if self.train_config.refit:
                self._artefact = self._replayed(parts.whole().train, observers)
        return self

    def refit(self, data: Any, *, observers: Sequence[Observer] = ()) -> Self:
        """A new model of the same kind, trained on all of `data` with what validation decided when this one was fitted:
        as many epochs, CAGED's updates after the same epochs, MACR's c; an adjustment, too. This model stays as it is.

        `data` is `Interactions` or a frame; a `Split` stands for its train and validation parts. Nothing is held out,
        so nothing but new interactions can say how good the result is.
        """
        train, valid = parts_given(data, None, name="data")
        reason = registered(self.name).method(self.config).cannot_replay()
        if reason is not None:
            raise ConfigError(f"{self.name} cannot be refitted: {reason}")
        again = copy(self)
        again._artefact = self._replayed(Development(train, valid).whole().train, checked_observers(observers))
        return again

    def _parts(self, train: Interactions, valid: Interactions | None, *, validated: bool) -> Development:
        """What is trained on and, where validation decides something, what it decides on."""
        if valid is not None:
            parts = Development(*in_one_catalogue(train, valid))
            return parts if validated else parts.whole()
        if not validated:
            return Development(train, None)
        train, valid = carve_validation(train, seed=self.seed)
        logger.warning(
            "no validation part given: 1/8 of the interactions (%d) are held out to choose the epoch", len(valid)
        )
        return Development(train, valid)

    def _replayed(self, data: Interactions, observers: tuple[Observer, ...]) -> Artefact:
        """The same training on other data, with the decisions of this one."""
        decisions = self.artefact.decisions
        if decisions is None:
            raise ConfigError(
                "this model was saved by a version that did not keep what validation decided; fit it again to refit it"
            )
        method: Method[Any] = registered(self.name).method(self.config)
        trained = self._trained(method, Development(data, None), USUAL_K, observers, replay=decisions)
        return replace(trained, adjustment=self.artefact.adjustment)

    def _trained(
        self,
        method: Method[Any],
        parts: Development,
        k: int,
        observers: tuple[Observer, ...],
        *,
        replay: Decisions | None = None,
    ) -> Artefact:
        device = resolve_device(self.device)
        monitor = f"recall@{k}"
        validate = None
        if parts.valid is not None:
            users = self.train_config.validation_users
            validate = make_validator(parts.train, parts.valid, device=device, k=k, metrics=(monitor,), users=users)
        loop = Loop(
            method,
            BipartiteGraph.from_interactions(parts.train, device, self.train_config.engine),
            self.train_config,
            Generators(self.seed, device),
            validate,
            monitor=monitor,
            observers=observers,
            replay=replay,
        )
        with memory_told():
            loop.run()
        return Artefact(self.name, method, parts.train, parts.valid, device, decisions=loop.decisions)

    @property
    def artefact(self) -> Artefact:
        if self._artefact is None:
            raise ConfigError(f"this {self.name} model is not fitted; call .fit(train, valid=...) first")
        return self._artefact

    # ---------------------------------------------------------------- recommending

    def recommend(
        self,
        user_ids: Any = None,
        k: int = 20,
        *,
        unknown: Unknown = "error",
        exclude_seen: bool = True,
        candidates: Any = None,
        exclude: Any = None,
        titles: Any = False,
    ) -> pa.Table:
        """Top-k lists as an Arrow table `user_id, item_id, score, rank`; all users where `user_ids` is None.

        Users come in the order asked, each once. One that training did not know is an error, or gets the most popular
        items (`unknown="popular"`, score = the number of training users of the item), or is left out
        (`unknown="skip"`).

        `candidates` are the only items that may be recommended, `exclude` those that may not: item ids, applied before
        ranking, so that lists are shorter than k only where fewer items are left. Ids that the model does not know are
        passed over with a warning. `titles` adds a column `title`: True takes those of the dataset that a run was
        trained on; otherwise give a dict of item id to title, or a frame with item_id and title.
        """
        names = self._titles(titles)
        table = serving.recommend(
            self.artefact,
            user_ids,
            k,
            unknown=unknown,
            exclude_seen=exclude_seen,
            candidates=candidates,
            exclude=exclude,
        )
        return table if names is None else serving.with_titles(table, names)

    def recommend_for(self, histories: Any, k: int = 20, *, exclude_seen: bool = True, titles: Any = False) -> pa.Table:
        """Top-k lists for people who were not in training, as `recommend` gives them.

        `histories` is a dict of a name to the item ids that the person has had, or a table of user_id and item_id.
        Nothing is trained: a vector is summed from those of the items (docs/serving.md). Items that the model does not
        know are passed over with a warning.
        """
        names = self._titles(titles)
        exclude_seen = yes_or_no("exclude_seen", exclude_seen)
        table = newcomers.recommend_for(self.name, self.artefact, histories, k, exclude_seen=exclude_seen)
        return table if names is None else serving.with_titles(table, names)

    def similar_items(self, item_ids: Any, k: int = 10) -> pa.Table:
        """The k nearest items of each, in the order asked: `item_id, similar_item_id, score, rank`.

        The score is the cosine of the serving vectors. Of `ease` it is the weight B[i, j], what having item i adds to
        the score of item j, so it need not be the same in the other direction; of `itemknn` it is the similarity of
        the items in i's own list of neighbours, which may be fewer than k.
        """
        return serving.similar_items(self.name, self.artefact, item_ids, k)

    def evaluate(
        self,
        test: Any,
        k: int | Sequence[int] = USUAL_K,
        *,
        evidence: Evidence | None = None,
        popular_share: float | None = None,
        item_groups: Any = None,
        user_groups: Any = None,
        group_separator: str | None = None,
    ) -> Evaluated:
        """Measure the model on a test part, as `caged evaluate` does: every metric at each `k`, with intervals.

        `test` is `Interactions`, a frame or the `Split` that the model was fitted to. Items that users had in train and
        validation are masked; a test pair among them is an error. With a `Split`, popular and niche items are counted
        on its train part, as on the command line; otherwise on everything that the model was trained on. `evidence`
        says where the test comes from: natural, intervened, random or oracle [default: what the split or the dataset
        says]. `popular_share`, `item_groups`, `user_groups` and `group_separator` are those of `caged.audit`.
        """
        fitted, run = self.artefact, self._run
        if popular_share is None and run is not None:
            popular_share = run.spec.eval.popular_share
        columns = DEFAULT_COLUMNS if run is None else run.spec.data.columns()
        chosen = grouping(popular_share, item_groups, user_groups, separator=group_separator, columns=columns)
        kind = test.kind if isinstance(test, Split) else "given"
        dataset = "" if run is None else run.run.dataset["name"]
        rests_on = of_part("test", dataset=dataset, split=kind) if evidence is None else checked(evidence)
        protocol = "honest" if run is None else run.spec.protocol
        return evaluate_model(fitted, test, k, protocol=protocol, evidence=rests_on, chosen=chosen)

    def vectors(self) -> Vectors:
        """The vectors of all users and items; the dot product of two is the score that `recommend` ranks by."""
        return vectors_of(self.name, self.artefact)

    def _titles(self, titles: Any) -> dict[Any, str] | None:
        if isinstance(titles, bool | np.bool_):
            if not titles:
                return None
            if not self._known_titles:
                raise ConfigError(
                    "this model knows no titles; give titles={item_id: title} or a frame with item_id and title, or "
                    "load a run whose dataset has them"
                )
            return self._known_titles
        return serving.titles_given(titles)

    @cached_property
    def _known_titles(self) -> dict[Any, str]:
        """Of the dataset of the run that this was loaded from."""
        return {} if self._run is None else self._run.titles()

    # ---------------------------------------------------------------- taking popularity out

    def adjusted(
        self, keep: float = KEEP, *, strength: float | None = None, form: Form = "degree", k: int = USUAL_K
    ) -> Self:
        """This model with popularity taken out of its scores: a new one, nothing is trained.

        The strength is the largest that keeps the share `keep` of recall@k on the validation part, or the one given.
        Forms: `degree` and `norm`, see docs/remedies.md.
        """
        fitted = self.artefact
        if fitted.adjustment is not None:
            raise ConfigError(f"this model is already adjusted ({fitted.adjustment}); adjust the one it was made from")
        if strength is None:
            strength = self._strength_that_keeps(keep, form, k)
        adjustment = Adjustment(form, strength)
        adjusted(fitted.method.scorer(), fitted.train, adjustment)  # a form that does not fit is told here
        model = copy(self)
        model._artefact = replace(fitted, adjustment=adjustment)
        return model

    def _strength_that_keeps(self, keep: float, form: Form, k: int) -> float:
        fitted, scorer = self.artefact, self.artefact.method.scorer()
        if fitted.valid is None:
            raise ConfigError(
                f"this {self.name} model has no validation part to choose the strength on; fit it with valid=..., or "
                "give strength=..."
            )
        key = f"recall@{check_k(k, fitted.train.item_count)}"
        validate = make_validator(fitted.train, fitted.valid, device=fitted.device, k=k, metrics=(key,))

        def recall_at(strength: float) -> float:
            return validate(adjusted(scorer, fitted.train, Adjustment(form, strength)))[key]

        return choose_strength(recall_at, keep).strength

    # ---------------------------------------------------------------- storing

    def save(self, folder: str | Path) -> Path:
        """Write what is needed to recommend into a new folder."""
        fitted = self.artefact
        target = make_output_folder(place("folder", folder))
        training_data = save_training_data(target, fitted.train, fitted.valid)
        trained_with = TrainedWith(self.seed, self.train_config)
        save_model(
            target,
            self.name,
            fitted.method,
            {} if fitted.decisions is None else {"decisions": fitted.decisions.to_json()},
            training_data=training_data,
            trained_with=trained_with,
            adjustment=fitted.adjustment,
        )
        return target

    @classmethod
    def load(cls, folder: str | Path, *, device: str = "auto") -> Recommender:
        """From `save`, or from the folder of a finished run: a model of the class that belongs to its method."""
        where = place("folder", folder)
        stored = load_artefact(where, resolve_device(device))
        fits = cls is not Recommender and cls.method_name in (None, stored.name)
        chosen = cls if fits else class_of(stored.name)
        model = chosen.__new__(chosen)
        Recommender.__init__(model, stored.name, device=device)
        model.config = stored.method.config
        model._artefact, model._run = stored, _run_of(where)
        model.seed, model.train_config = stored.trained_with or _trained_with(model._run)
        return model


def class_of(method: str) -> type[Recommender]:
    """The public class of a method; one that was registered at run time has none of its own."""
    known = registered(method)
    return Recommender if known.public is None else _public_class(known)


@cache
def _public_class(known: Registered) -> type[Recommender]:
    """`caged.LightGCN` and the like: a `Recommender` whose signature names the options."""

    class Public(Recommender):
        method_name = known.name

        def __init__(self, **options: Any) -> None:
            super().__init__(self.method_name, **options)

    presented = signature_of(known, Recommender.__init__)
    vars(Public.__init__)["__signature__"] = presented
    Public.__doc__ = docstring_of(known, presented)
    Public.__module__ = "caged"
    Public.__name__ = Public.__qualname__ = str(known.public)
    return Public


def load(folder: str | Path, *, device: str = "auto") -> Recommender:
    """A fitted model from `Recommender.save` or from the folder of a finished run."""
    return Recommender.load(folder, device=device)


def _run_of(folder: Path) -> RunFolder | None:
    """The run whose folder, or whose `checkpoint/`, this is."""
    place = folder.resolve()
    run = place.parent if place.name == "checkpoint" else place
    return RunFolder.read(run) if RunFolder.is_one(run) else None


def _trained_with(run: RunFolder | None) -> TrainedWith:
    return TrainedWith() if run is None else TrainedWith(run.spec.seed, run.spec.train)


def _checked_k(k: Any, parts: Development) -> int:
    """The cut-off that validation goes by."""
    items = parts.train.item_count
    k = whole_number("k", k, least=1, most=MOST_ITEMS)
    if k == USUAL_K and items < USUAL_K:
        k = usual_k(items)
        logger.warning("there are %d items, so the epoch is chosen by recall@%d", items, k)
    return k if parts.valid is None else check_k(k, items)


def _sorted_options(config: type[Any], options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Options of the method and options of training; a name that is neither is an error."""
    of_method = {field.name for field in fields(config)}
    of_training = {field.name for field in fields(TrainConfig)}
    for name in options:
        if name not in of_method | of_training:
            raise ConfigError(unknown_key(name, sorted(of_method | of_training)))
    own = {name: value for name, value in options.items() if name in of_method}
    return own, {name: value for name, value in options.items() if name not in of_method}
