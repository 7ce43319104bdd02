"""A made-up shop with a feedback loop: it shows what is popular, people click what they like among what is shown, and
the clicks decide what is popular next. What every user truly likes is known, so a method can be judged by the truth
and not only by more of the same biased log.

    market = simulate(MarketConfig(seed=1))
    market.train                    what the shop logged
    market.test_natural             its later clicks, with the same habits
    market.test_negative            what chance showed later and nobody clicked
    market.test_oracle              pairs drawn by true preference alone
    market.write(Path("market"))    all parts as files

Same seed and numpy version: same bytes of every part, whatever the number of threads. Time grows with the number of
shown items and, for scoring and the oracle test, with users x items; memory with clicks, shortlists and one block.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from caged.data.ids import Array, IdMap
from caged.data.interactions import Interactions
from caged.data.market.config import MarketConfig, stream
from caged.data.market.loop import EXPLORE, SOURCES, Round, contains, draw_oracle, feedback_loop
from caged.data.market.titles import genre_names, item_titles
from caged.data.market.world import World, draw_world
from caged.data.parts import NOT_LIKED_BEFORE
from caged.data.popularity import gini, top_share
from caged.data.shown import ShownAtRandom, popularity_contrast
from caged.files import new_folder, write_json
from caged.progress import ProgressReport, unreported

TABLES = ("train", "test_natural", "test_negative", "test_oracle", "items", "users", "rounds")
# train.parquet, test.parquet and test_negative.parquet make the folder a given split that `--data` takes as it is.
FILES = {name: f"{'test' if name == 'test_natural' else name}.parquet" for name in TABLES}

_SECONDS_PER_ROUND = 86_400  # a round is a day
# Decimals of real columns: the last digits of a BLAS product or an exp differ between machines, these do not.
_TABLE_DECIMALS = 9
_HASHED_ROWS = 1 << 18


@dataclass(frozen=True, eq=False)
class Market:
    """A simulated market: what the shop logged, what it could not know, and the tables that describe it.

    train, test_natural   user_id, item_id, timestamp, round, position, source; in the order of the clicks
    test_negative         the same of what was shown at random in the test rounds and never clicked; by user and item
    valid_negative        the same of the training rounds, never clicked in these; what happened later is not looked at
    test_oracle           user_id, item_id; by user and item
    items                 item_id, title, genre, quality, true_appeal, head_start; in row order
    users                 user_id, genre_1, genre_2, mix, activity; in row order
    rounds                round, item_id, exposures, clicks where exposures > 0; test rounds included
    world                 tastes by row number; row r is the r-th line of `users` or `items`
    """

    config: MarketConfig
    train: pa.Table
    test_natural: pa.Table
    test_negative: pa.Table
    test_oracle: pa.Table
    items: pa.Table
    users: pa.Table
    rounds: pa.Table
    world: World
    short_lists: int  # lists that could not be filled; 0 at the defaults
    valid_negative: pa.Table | None = None  # on request; no part of the fingerprint

    @cached_property
    def user_ids(self) -> IdMap:
        return IdMap.of(self.users["user_id"])

    @cached_property
    def item_ids(self) -> IdMap:
        return IdMap.of(self.items["item_id"])

    def interactions(self, part: Literal["train", "test_natural", "test_negative", "test_oracle"]) -> Interactions:
        """One part as pairs in the rows of the whole market: row r is row r of `world`."""
        table = getattr(self, part)
        extra = [name for name in ("round", "position", "source") if name in table.column_names]
        return Interactions.build(
            self.user_ids.rows(table["user_id"]),
            self.item_ids.rows(table["item_id"]),
            user_ids=self.user_ids,
            item_ids=self.item_ids,
            timestamp=table["timestamp"].to_numpy() if "timestamp" in table.column_names else None,
            columns={name: table[name].to_numpy() for name in extra},
        )

    def shown_at_random(self) -> ShownAtRandom:
        """The exploration slots of the test rounds: clicked, and never clicked."""
        return ShownAtRandom.of(self.interactions("test_natural"), self.interactions("test_negative"))

    def exposures(self, first_round: int, last_round: int) -> Array:
        """How often each item (by row) was shown in the rounds first..last, both included."""
        numbers = self.rounds["round"].to_numpy()
        chosen = (numbers >= first_round) & (numbers <= last_round)
        rows = self.item_ids.rows(self.rounds["item_id"])[chosen]
        shown = np.bincount(rows, weights=self.rounds["exposures"].to_numpy()[chosen], minlength=len(self.item_ids))
        return shown.astype(np.int64)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over the names and values of all columns of all tables, independent of any file format."""
        digest = hashlib.sha256()
        for name in TABLES:
            table = getattr(self, name)
            for column in table.column_names:
                digest.update(f"{name}.{column}\n".encode())
                for content in _column_bytes(table[column]):
                    digest.update(content)
        return digest.hexdigest()

    def summary(self) -> dict[str, Any]:
        """The content of simulation.json. Concentrations of log and exposure are those of the training rounds."""
        train = self.interactions("train")
        log, appeal = train.item_degrees, self.items["true_appeal"].to_numpy()
        exposure = self.exposures(1, self.config.rounds)
        return {
            "parameters": asdict(self.config),
            "seed": self.config.seed,
            "numpy": np.__version__,
            "fingerprint": self.fingerprint,
            "train_fingerprint": train.fingerprint,  # the one that a run trained on this log records
            "counts": {
                "users": self.users.num_rows,
                "items": self.items.num_rows,
                "train": self.train.num_rows,
                "test_natural": self.test_natural.num_rows,
                "test_negative": self.test_negative.num_rows,
                "test_oracle": self.test_oracle.num_rows,
                "train_by_source": self._clicks_by_source(),
                "shown_in_training_rounds": int(exposure.sum()),
                "users_without_training_click": int((train.user_degrees == 0).sum()),
                "items_without_training_click": int((log == 0).sum()),
                "short_lists": self.short_lists,
            },
            "gini": {"log": gini(log), "exposure": gini(exposure), "true_appeal": gini(appeal)},
            "top_fifth_share": {
                "log": top_share(log),
                "exposure": top_share(exposure),
                "true_appeal": top_share(appeal),
            },
            "popularity_contrast": popularity_contrast(train.item_groups, self.shown_at_random()).to_json(),
        }

    def _clicks_by_source(self) -> dict[str, int]:
        counted = {entry["values"]: entry["counts"] for entry in self.train["source"].value_counts().to_pylist()}
        return {source: counted.get(source, 0) for source in SOURCES}

    def write(self, folder: Path) -> None:
        """All tables as Parquet (`FILES`), the world as world.npz and simulation.json; all of them or no folder."""
        with new_folder(folder) as temporary:
            for name, file in FILES.items():
                pq.write_table(getattr(self, name), temporary / file)
            if self.valid_negative is not None:
                pq.write_table(self.valid_negative, temporary / f"{NOT_LIKED_BEFORE}.parquet")
            self.world.save(temporary / "world.npz")
            write_json(temporary / "simulation.json", self.summary())


def simulate(
    config: MarketConfig | None = None, *, valid_negative: bool = False, progress: ProgressReport = unreported
) -> Market:
    """Draw a world, run the feedback loop and draw the oracle test; without a configuration, at the defaults.

    With `valid_negative`, what chance showed for nothing in the training rounds is kept as well. Nothing else changes.
    """
    config = config or MarketConfig()
    world = draw_world(config)
    log = _Log(config, from_round=1 if valid_negative else config.rounds + 1)
    for one in feedback_loop(config, world):
        log.add(one)
        progress(f"simulating: round {one.number}", one.number / (config.rounds + config.test_rounds))
    user_ids, item_ids = identifiers("u", config.user_count), identifiers("i", config.item_count)
    clicks = log.clicks()
    in_train = clicks["round"] <= config.rounds
    train_clicks = {name: values[in_train] for name, values in clicks.items()}
    train_keys = np.sort(log.keys(train_clicks))
    oracle_users, oracle_items = np.divmod(draw_oracle(config, world, train_keys), config.item_count)
    return Market(
        config=config,
        train=_log_table(clicks, in_train, user_ids, item_ids),
        test_natural=_log_table(clicks, ~in_train, user_ids, item_ids),
        test_negative=_log_table(*log.never_clicked(clicks, in_test=True), user_ids, item_ids),
        test_oracle=pa.table({"user_id": user_ids.take(oracle_users), "item_id": item_ids.take(oracle_items)}),
        items=_items_table(config, world, item_ids),
        users=_users_table(config, world, user_ids),
        rounds=log.rounds_table(item_ids),
        world=world,
        short_lists=log.short_lists,
        valid_negative=_log_table(*log.never_clicked(train_clicks, in_test=False), user_ids, item_ids)
        if valid_negative
        else None,
    )


def identifiers(prefix: str, count: int) -> pa.Array:
    """u0001, u0002, ...: wide enough that sorting them as text keeps the row order."""
    width = max(4, len(str(count)))
    return pa.array([f"{prefix}{number:0{width}d}" for number in range(1, count + 1)])


class _Log:
    """Collects the clicks, the exposure counts of the rounds, and what chance showed for nothing, from a round on.

    What else was shown is not kept in detail.
    """

    def __init__(self, config: MarketConfig, from_round: int) -> None:
        self._config, self._from_round = config, from_round
        self._clicks: list[dict[str, Array]] = []
        self._passed_over: list[dict[str, Array]] = []
        self._counts: list[dict[str, Array]] = []
        self.short_lists = 0

    def add(self, one: Round) -> None:
        shown = one.shown
        chosen = shown.clicked
        self._clicks.append(_entries_of(one, chosen))
        kept = one.number >= self._from_round
        self._passed_over.append(_entries_of(one, kept & ~chosen & (shown.sources == EXPLORE)))
        exposures = np.bincount(shown.items, minlength=self._config.item_count)
        clicks = np.bincount(shown.items[chosen], minlength=self._config.item_count)
        items = np.flatnonzero(exposures)
        counts = {"item": items, "exposures": exposures[items], "clicks": clicks[items]}
        self._counts.append({"round": np.full(len(items), one.number), **counts})
        full = int((shown.positions == self._config.slots).sum())
        self.short_lists += one.visitors - full

    def clicks(self) -> dict[str, Array]:
        return _joined(self._clicks)

    def keys(self, entries: dict[str, Array]) -> Array:
        return np.asarray(entries["user"] * np.int64(self._config.item_count) + entries["item"])

    def never_clicked(self, clicks: dict[str, Array], *, in_test: bool) -> tuple[dict[str, Array], Array]:
        """What chance showed in the test rounds, or in those before, and which places to take: pairs that are not among
        the clicks, once each."""
        shown = _joined(self._passed_over)
        shown = {name: values[(shown["round"] > self._config.rounds) == in_test] for name, values in shown.items()}
        keys, first = np.unique(self.keys(shown), return_index=True)
        return shown, first[~contains(np.sort(self.keys(clicks)), keys)]

    def rounds_table(self, item_ids: pa.Array) -> pa.Table:
        counts = _joined(self._counts)
        return pa.table(
            {
                "round": counts["round"],
                "item_id": item_ids.take(counts["item"]),
                "exposures": counts["exposures"],
                "clicks": counts["clicks"],
            }
        )


def _entries_of(one: Round, chosen: Array) -> dict[str, Array]:
    """The chosen pairs of a round as columns of a log."""
    shown = one.shown
    return {
        "user": shown.users[chosen],
        "item": shown.items[chosen],
        "position": shown.positions[chosen],
        "source": shown.sources[chosen],
        "round": np.full(int(chosen.sum()), one.number),
    }


def _joined(parts: list[dict[str, Array]]) -> dict[str, Array]:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _log_table(clicks: dict[str, Array], chosen: Array, user_ids: pa.Array, item_ids: pa.Array) -> pa.Table:
    rounds = clicks["round"][chosen]
    return pa.table(
        {
            "user_id": user_ids.take(clicks["user"][chosen]),
            "item_id": item_ids.take(clicks["item"][chosen]),
            "timestamp": rounds * _SECONDS_PER_ROUND,
            "round": rounds,
            "position": clicks["position"][chosen],
            "source": pa.array(SOURCES).take(clicks["source"][chosen]),
        }
    )


def _items_table(config: MarketConfig, world: World, item_ids: pa.Array) -> pa.Table:
    return pa.table(
        {
            "item_id": item_ids,
            "title": item_titles(config.item_count, stream(config.seed, "titles")),
            "genre": pa.array(genre_names(config.genres)).take(world.item_genres),
            "quality": world.q.round(_TABLE_DECIMALS),
            "true_appeal": world.true_appeal().round(_TABLE_DECIMALS),
            "head_start": world.head_start.round(_TABLE_DECIMALS),
        }
    )


def _users_table(config: MarketConfig, world: World, user_ids: pa.Array) -> pa.Table:
    names = pa.array(genre_names(config.genres))
    return pa.table(
        {
            "user_id": user_ids,
            "genre_1": names.take(world.user_genres[:, 0]),
            "genre_2": names.take(world.user_genres[:, 1]),
            "mix": world.mix.round(_TABLE_DECIMALS),
            "activity": world.activity.round(_TABLE_DECIMALS),
        }
    )


def _column_bytes(column: pa.ChunkedArray) -> Iterator[bytes]:
    """Text as lines, numbers in little-endian order; in slices, because the oracle test can have millions of rows."""
    for start in range(0, len(column), _HASHED_ROWS):
        part = column.slice(start, _HASHED_ROWS)
        if pa.types.is_string(part.type):
            yield ("\n".join(part.to_pylist()) + "\n").encode()
        else:
            values = part.to_numpy()
            yield values.astype(values.dtype.newbyteorder("<")).tobytes()
