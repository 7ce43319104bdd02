"""The contract between a method and everything around it. `docs/architecture.md` shows how each method fits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

import torch
from torch import Tensor

from caged.columns import WHOLE, Columns
from caged.graph import AnySampler, Batch, BipartiteGraph, EdgeWeights, Tables
from caged.seeding import Generators

if TYPE_CHECKING:
    from caged.models.encoder import LightGCNEncoder
    from caged.models.fold_in import FoldIn

ParamGroup = dict[str, Any]
Metrics = Mapping[str, float]


class Scorer(Protocol):
    """Scores of all items for a block of users, in evaluation mode."""

    @property
    def vectors(self) -> Tables | None:
        """The vectors behind the scores, or None where the score is no dot product."""

    def __call__(self, users: Tensor) -> Tensor:
        """(b,) user rows -> (b, N) scores."""


@dataclass(frozen=True, eq=False)
class DotScorer:
    """The score of (u, i) is users[u] . items[i]."""

    vectors: Tables

    def __call__(self, users: Tensor) -> Tensor:
        return self.vectors.users.index_select(0, users) @ self.vectors.items.T


class Stage(NamedTuple):
    """One phase of training with its own best epoch; `None` means: what the training configuration says."""

    name: str
    epochs: int | None = None
    sampler: str | None = None
    fresh_optimizer: bool = False
    start_counts: bool = False  # what the stage starts from is a candidate for its best state, as epoch 0


class Losses(NamedTuple):
    """What is minimised, and the named parts of it that are worth a line in the history."""

    total: Tensor
    parts: Mapping[str, Tensor]


class State(NamedTuple):
    """Everything that a method must remember: tensors, and scalars that JSON can hold."""

    tensors: dict[str, Tensor]
    scalars: dict[str, Any]

    def clone(self) -> State:
        return State({name: value.detach().clone() for name, value in self.tensors.items()}, dict(self.scalars))

    def copy_from(self, other: State) -> None:
        """Overwrite the tensors, in place, with those of the same name; nothing is stretched to fit."""
        with torch.no_grad():
            for name, value in self.tensors.items():
                if name not in other.tensors:
                    raise ValueError(f"there is no '{name}'")
                if other.tensors[name].shape != value.shape:
                    raise ValueError(f"'{name}' is {list(other.tensors[name].shape)}, not {list(value.shape)}")
                value.copy_(other.tensors[name])


@dataclass
class EpochContext:
    """What a hook may know. `validate` returns numbers; the validation part itself stays out of reach."""

    stage: str
    epoch: int  # from 1, within the stage; 0 in `finish`
    steps: int  # batches per epoch
    validate: Callable[[Scorer], Metrics] | None
    improved: bool = False  # strictly better than every earlier validation of this stage
    metrics: Metrics | None = None  # validation of this epoch, None if it was not validated
    losses: Mapping[str, float] | None = None  # means over the batches of this epoch, after them
    log: dict[str, Any] = field(default_factory=dict)  # diagnostics for this epoch's history line
    monitor: str = "recall@20"  # the metric of `validate` that decisions go by
    sampler: AnySampler | None = None  # that draws the batches of this stage; None in `finish`
    replayed: bool = False  # the decisions of another training are replayed: `improved` is what it was there
    validated_there: bool = False  # in that training, after this epoch
    decisions: dict[str, Any] = field(default_factory=dict)  # see `decided`

    @property
    def validated(self) -> bool:
        """Whether this epoch was validated, here or in the training that is replayed."""
        return self.validated_there if self.replayed else self.metrics is not None

    def decided(self, name: str, choose: Callable[[Callable[[Scorer], Metrics]], Any]) -> Any:
        """A choice made on validation, as JSON: by `choose`, which is given `validate`, and written down; or as it was
        written down, where another training is replayed. None where there is neither."""
        if name not in self.decisions and self.validate is not None:
            self.decisions[name] = choose(self.validate)
        return self.decisions.get(name)


ConfigT = TypeVar("ConfigT")


class Method(ABC, Generic[ConfigT]):
    """A recommender. Iterative methods implement `parameters` and `loss`, closed-form ones `fit_closed_form`.

    Hooks without a body below do nothing by default; all that a method remembers goes through `state`.

    A method that several ranks can train by columns (`caged.columns`) names in `by_columns` what of its `state` has a
    column per embedding dimension. It makes only the columns of `columns`, joins what needs all of them, and has
    nothing else among its `parameters`.
    """

    by_columns: tuple[str, ...] | None = None  # None: it cannot be trained by columns
    columns: Columns = WHOLE  # set before `prepare`

    def __init__(self, config: ConfigT) -> None:
        self.config = config

    def stages(self) -> tuple[Stage, ...]:
        """Phases of training; an empty tuple means a closed form."""
        return (Stage("train"),)

    def needs_validation(self) -> str | None:
        """Why it does not work without a validation part; None where it does."""
        return None

    def cannot_replay(self) -> str | None:
        """Why the decisions of one training cannot be replayed in another (`--refit`); None where they can.

        The loop replays the number of epochs and `ctx.improved`, and `ctx.decided` its choices. A method that reads
        `ctx.metrics`, or calls `ctx.validate` itself, has to say so here.
        """
        return None

    @abstractmethod
    def prepare(self, graph: BipartiteGraph, generators: Generators) -> None:
        """Allocate every buffer on `graph.device`; draw initial values from named generators."""

    def fit_closed_form(self) -> None:
        """Compute the model in one go. Called once, if `stages()` is empty."""

    def parameters(self, stage: Stage) -> list[ParamGroup]:
        """Parameter groups that the loop's optimiser updates in this stage."""
        return []

    def begin_epoch(self, ctx: EpochContext) -> None:
        """Before the first batch of an epoch."""

    def loss(self, batch: Batch) -> Losses:
        """The loss of one batch: fixed shapes, no host synchronisation, randomness from registered generators."""
        raise TypeError(f"{type(self).__name__} has training stages but no loss")

    def end_epoch(self, ctx: EpochContext) -> None:
        """After validation and snapshot of an epoch."""

    def finish(self, ctx: EpochContext) -> None:
        """Once, after training, with the best state restored."""

    @abstractmethod
    def scorer(self) -> Scorer:
        """The model as it would recommend now."""

    def capture_key(self) -> Hashable:
        """Whatever the recorded form of a training step depends on; a change asks for a new recording."""
        return None

    @abstractmethod
    def state(self) -> State:
        """References to everything that training changes, inner optimisers and edge weights included."""

    def load_state(self, state: State) -> None:
        """Copy a state back, in place: other objects may hold the same buffers."""
        self.state().copy_from(state)
        self.load_scalars(state.scalars)

    def serving_state(self) -> State:
        """The part of `state` that `scorer` reads: what a finished run keeps. All of it, unless a method says less."""
        return self.state()

    def load_serving_state(self, state: State) -> None:
        """Copy back what `serving_state` gave, or a whole state."""
        self.load_state(state)

    def load_scalars(self, scalars: Mapping[str, Any]) -> None:
        """Take back the scalars of `state()`."""


# ---------------------------------------------------------------- what a method may offer beside


@runtime_checkable
class Explainable(Protocol):
    """`caged explain` takes the method apart: a user's vector is a sum over the history of the user."""

    def history_encoder(self) -> LightGCNEncoder:
        """The encoder that sums."""


@runtime_checkable
class MayRankByCosine(Protocol):
    """A method whose scores may be divided by the lengths of both vectors; `caged explain` divides, too."""

    def ranks_by_cosine(self) -> bool:
        """Whether they are, but for what an item may keep of its own."""

    def ranked(self, vectors: Tables) -> Tables:
        """Propagated vectors whose dot products are the scores."""


@runtime_checkable
class FoldsIn(Protocol):
    """People who were not in training get a vector from a list of items."""

    def fold_in(self) -> FoldIn:
        """How; a `ConfigError` says why not."""


@runtime_checkable
class MayBeNeutral(Protocol):
    """A configuration that knows the values at which its method is LightGCN under another name."""

    def neutral(self) -> str | None:
        """The sentence that says so, or None."""


@runtime_checkable
class StartsFromTables(Protocol):
    """`caged train --init` puts the tables of a finished LightGCN run in place of the method's first stage."""

    def start_from(self, tables: Tables) -> None:
        """Take them. Called before `prepare`."""


@runtime_checkable
class RelatesItems(Protocol):
    """`similar_items` asks the method itself: it holds weights between items, not vectors."""

    def related(self, items: Tensor, /) -> Tensor:
        """(b,) item rows -> (b, N), larger is nearer, -inf where there is nothing between the two."""


@runtime_checkable
class WeighsItems(Protocol):
    """Scores are R_u B with weights between items; `caged export artefact` stores B."""

    def item_arrays(self) -> dict[str, Tensor]:
        """`item_weights` (N, N), or `neighbours` and `similarities` (N, k) where an item sums over its own list."""


class LearnedWeights(NamedTuple):
    weights: EdgeWeights
    updates: int  # so far


@runtime_checkable
class LearnsWeights(Protocol):
    """`caged train --save-weights` keeps the edge weights that training changes."""

    def learned_weights(self) -> LearnedWeights:
        """Those in force."""
