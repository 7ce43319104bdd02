"""Which columns of a table are users, items, ratings and timestamps, and how their values are checked and converted.

Every error names the file or frame, the column, the first offending data row (counted from 1, a header is not a data
row; of a text file also the line) and the value seen there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caged.arguments import described, instance
from caged.data.ids import Array, are_integer_texts, fit_int64, is_text
from caged.data.times import Times
from caged.errors import ConfigError, DataError, suggestion, unknown

IdsAs = Literal["auto", "text"]
LineOf = Callable[[int, str], int | None]  # from a data row and a text in it to the line of its file

ROLES = ("user", "item", "rating", "timestamp")
LARGEST_EXACT_FLOAT = 2**53  # above it a float64 no longer tells neighbouring integers apart
SECONDS_PER_DAY = 86_400
# What programs write for a value that is not there: pandas, R, SQL, spreadsheets.
NO_VALUE = r"^(\s*|(?i:nan|none|null)|NA|N/A|#N/A|<NA>|NaT|\\N)$"
# A long number as spreadsheets and floats show it. Without sign and point (12e45) it may as well be a hexadecimal name.
SHORTENED_NUMBER = r"^[+-]?([0-9]+[eE]\+[0-9]+|[0-9]+\.[0-9]*[eE]\+?[0-9]+)$"
AS_NAMES = 'or say with --ids text (ids="text" in Python) that ids are names, whatever they look like'


@dataclass(frozen=True)
class Columns:
    """Names of the columns of a log.

    Ratings and timestamps are optional in the file, unless they were asked for: under another name than the default,
    or through `named`. `keep` lists further columns to carry along in `Interactions.columns`; with `keep_if_there` a
    file may lack them. `ids="text"` takes every identifier for a name, as it is written: no integers, nothing odd.
    """

    user: str = "user_id"
    item: str = "item_id"
    rating: str = "rating"
    timestamp: str = "timestamp"
    keep: tuple[str, ...] = ()
    keep_if_there: bool = False
    asked_for: frozenset[str] = frozenset()
    ids: IdsAs = "auto"

    def __post_init__(self) -> None:
        if instance("ids", self.ids, str, f"one of {', '.join(get_args(IdsAs))}") not in get_args(IdsAs):
            raise DataError(unknown("way to read ids", self.ids, get_args(IdsAs)))
        names = [getattr(self, role) for role in ROLES]
        for name, uses in Counter(names).items():
            if uses > 1:
                roles = " and ".join(role for role in ROLES if getattr(self, role) == name)
                raise DataError(f"column '{name}' cannot be {roles} at once; name a different column for each")

    def named(self, **names: str | None) -> Columns:
        """With the columns of some roles named; None leaves a role as it is.

        >>> Columns().named(user="reader", rating=None).user
        'reader'
        """
        given = {role: instance(f"{role}_column", name, str) for role, name in names.items() if name is not None}
        return replace(self, **given, asked_for=self.asked_for | frozenset(given))  # type: ignore[arg-type]

    def reading_ids(self, ids: str | None) -> Columns:
        """With another way to read identifiers; None leaves it as it is."""
        return self if ids is None else replace(self, ids=ids)  # type: ignore[arg-type]  # checked when it is made

    def keeping(self, names: Sequence[str]) -> Columns:
        """With further columns to carry along."""
        if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
            raise ConfigError(f"keep is {described(names)}; give a list of column names, e.g. ['source']")
        return replace(self, keep=tuple(dict.fromkeys((*self.keep, *names)))) if len(names) else self

    def keeping_if_there(self, name: str) -> Columns:
        """With a further column to carry along that a file may lack, as it may then lack the others."""
        return replace(self.keeping([name]), keep_if_there=True)

    @property
    def name_nothing(self) -> bool:
        """Whether all columns are left to their default names, but for such as a file may lack."""
        needed = () if self.keep_if_there else self.keep
        return replace(self, ids="auto", keep=needed, keep_if_there=False) == Columns()

    def identifiers(self, found: Sequence[str]) -> tuple[str, ...]:
        """The columns that hold identifiers."""
        return self.user, self.item

    def must_have(self, role: str) -> bool:
        default = Columns.__dataclass_fields__[role].default
        return role in {"user", "item"} | self.asked_for or getattr(self, role) != default

    def find(self, found: Sequence[str], where: str, *, hint: str = "") -> list[str]:
        """The columns to read out of those `found`; missing, misnamed and ambiguous ones are errors."""
        refuse_repeated(found, where)
        wanted = [getattr(self, role) for role in ROLES if self.must_have(role)]
        kept = [name for name in self.keep if name in found or not self.keep_if_there]
        for name in [*wanted, *kept]:
            need_column(name, found, where, fix=f"{'or ' if hint else ''}{self._fix(name)}", hint=hint)
        optional = [getattr(self, role) for role in ROLES if not self.must_have(role)]
        # A column may be kept beside its role; it is still read once.
        return list(dict.fromkeys([*wanted, *(name for name in optional if name in found), *kept]))

    def _fix(self, name: str) -> str:
        for role in ROLES:
            if getattr(self, role) == name:
                return f"name the right one with --{role}-column ({role}_column= in Python)"
        return "name one of these with --keep, or --validate-on of a training (keep= in Python)"


def refuse_repeated(found: Sequence[str], where: str) -> None:
    for name, uses in Counter(found).items():
        if uses > 1:
            raise DataError(f"{where} has {uses} columns named {_shortened(name)!r}; rename or drop the others")


def need_column(name: str, found: Sequence[str], where: str, *, fix: str, hint: str = "") -> None:
    """An error where a column is missing: what is there instead, a `hint` why, and how to `fix` it."""
    if name not in found:
        closest = "" if hint else suggestion(name, found)
        raise DataError(f"{where} has no column '{name}', found: {listed(found)}{hint}; {fix}{closest}")


def listed(found: Sequence[str]) -> str:
    """The first names of columns, for a message."""
    return ", ".join(repr(_shortened(name)) for name in found[:20]) + (", ..." if len(found) > 20 else "")


class Column:
    """The values of one column with the words that an error about them needs.

    `rows_before` counts the data rows in front of a part of a file; None where the values are in no row order.
    `line_of` finds the line of a row, where the file has lines.
    """

    def __init__(
        self,
        values: pa.ChunkedArray | pa.Array,
        name: str,
        where: str,
        *,
        rows_before: int | None = 0,
        line_of: LineOf | None = None,
    ) -> None:
        if pa.types.is_dictionary(values.type):
            values = values.cast(values.type.value_type)
        if is_text(values.type):
            values = values.cast(pa.large_string())
        self.values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
        self.name = name
        self.where = where
        self.rows_before = rows_before
        self.line_of = line_of
        if is_text(values.type):
            self._check_utf8()

    def _check_utf8(self) -> None:
        try:
            self.values.validate(full=True)
        except pa.ArrowInvalid as error:
            raise DataError(
                f"{self.where}: column '{self.name}' is damaged or not UTF-8 ({error}); write the file again"
            ) from error

    @property
    def is_text(self) -> bool:
        return is_text(self.values.type)

    def reject(self, bad: Array, problem: str, fix: str) -> None:
        """An error for the first row that the mask `bad` marks; `{}` in `problem` stands for the value there."""
        if bad.any():
            row = int(bad.argmax())
            raise self.error(row, problem, fix)

    def error(self, row: int, problem: str, fix: str) -> DataError:
        seen = self.values[row].as_py()
        shown = repr(_shortened(seen) if isinstance(seen, str) else seen)
        seen_there = problem.format(shown)
        if self.rows_before is None:
            seen_there = seen_there.rstrip(",")
        else:
            seen_there += f" in data row {self.rows_before + row + 1}{self._line(self.rows_before + row + 1, seen)}"
        return DataError(f"{self.where}: column '{self.name}' {seen_there}; {fix}")

    def _line(self, data_row: int, seen: Any) -> str:
        line = self.line_of(data_row, seen) if self.line_of is not None and isinstance(seen, str) else None
        return "" if line is None else f", line {line} of the file"

    def wrong_type(self, allowed: str) -> DataError:
        return DataError(
            f"{self.where}: column '{self.name}' has type {self.values.type}; allowed are {allowed}, convert the column"
        )

    def reject_missing(self) -> None:
        if self.values.null_count == 0 and not self.is_text:
            return
        missing = self.values.is_null()
        if self.is_text:
            missing = pc.or_(missing, pc.fill_null(pc.equal(self.values, ""), True))
        self.reject(_mask(missing), "is empty", "remove or repair these rows")


def ids_of(column: Column, ids: IdsAs = "auto") -> pa.Array:
    """External identifiers, int64 or large_string. Integral floats count as integers (a frame's way with nulls)."""
    found = typed_ids(column, ids)
    if ids == "auto":
        reject_no_names(column)
    return found


def typed_ids(column: Column, ids: IdsAs) -> pa.Array:
    """As `ids_of`, but texts that are no names are left to `reject_no_names`."""
    if ids == "text":
        return _names_of(column)
    column.reject_missing()
    values = column.values
    if column.is_text:
        return values
    if pa.types.is_floating(values.type):
        numbers, whole = _whole_numbers(values)
        column.reject(
            ~whole,
            "is {}, which is not an exact integer,",
            "identifiers must be integers or strings, convert the column",
        )
        values = pa.array(numbers.astype(np.int64))
    elif not pa.types.is_integer(values.type):
        raise column.wrong_type("integers and strings")
    return _int64_ids(column, values)


def _names_of(column: Column) -> pa.Array:
    """Every value as it is written; only what is not there at all is refused."""
    column.reject(_mask(column.values.is_null()), "is missing", "remove or repair these rows")
    if column.is_text:
        return column.values
    if pa.types.is_integer(column.values.type):
        return column.values.cast(pa.large_string())
    return ids_of(column).cast(pa.large_string())


def reject_no_names(column: Column, among: Array | None = None) -> None:
    """Text that stands for no value, or for a number whose digits are lost, would be taken for one user or item.

    `among` marks the rows to look at, where the others are known to be names.
    """
    if not column.is_text or (among is not None and not among.any()):
        return
    looked_at = column.values if among is None else column.values.filter(pa.array(among))
    distinct = pc.unique(looked_at)  # far fewer than rows
    for pattern, problem, fix in (
        (NO_VALUE, "is {}, which stands for a missing value,", "remove or repair these rows"),
        (SHORTENED_NUMBER, "is {}, a number whose last digits are lost,", "write all digits of these ids"),
    ):
        found = distinct.filter(pc.match_substring_regex(distinct, pattern))
        if len(found):
            column.reject(_mask(pc.is_in(column.values, value_set=found)), problem, f"{fix}, {AS_NAMES}")


def _int64_ids(column: Column, integers: pa.Array) -> pa.Array:
    if pa.types.is_uint64(integers.type):
        too_large = _mask(pc.greater(integers, pa.scalar(2**63 - 1, type=pa.uint64())))
        column.reject(too_large, "is {}, above 2**63 - 1,", "convert the column to strings")
    integers = integers.cast(pa.int64())
    reject_negative(column, integers)
    return integers


def reject_negative(column: Column, integers: pa.Array) -> None:
    column.reject(
        integers.to_numpy() < 0,
        "is {}, a negative identifier,",
        f"integer identifiers must be 0 or more, remove these rows, convert the column to strings, {AS_NAMES}",
    )


def integers_where_all(column: Column) -> pa.Array:
    """Text as int64 if every value is a canonical integer, else unchanged: '007' keeps its whole column text."""
    texts = column.values
    integral = _mask(are_integer_texts(texts))
    if not integral.all():
        return texts
    column.reject(
        ~_mask(fit_int64(texts)),
        "is {}, above 2**63 - 1,",
        f"give these identifiers a letter in front so that they are read as text, {AS_NAMES}",
    )
    return texts.cast(pa.int64())


def ratings_of(column: Column) -> Array:
    """Finite float64 ratings."""
    column.reject_missing()
    values = column.values
    if column.is_text:
        values = _parsed(column, pa.float64(), "a number")
    else:
        try:
            values = values.cast(pa.float64(), safe=False)
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid) as error:
            raise column.wrong_type("numbers") from error
    numbers = values.to_numpy(zero_copy_only=False)
    column.reject(~np.isfinite(numbers), "is {}", "ratings must be finite numbers, remove or repair these rows")
    return np.array(numbers)


def scores_of(column: Column) -> Array:
    """Scores of recommendations: any number but NaN; float32 stays float32."""
    if column.values.null_count:
        missing = _mask(column.values.is_null())
        column.reject(missing, "is empty", "scores must be numbers, remove or repair these rows")
    values = _parsed(column, pa.float64(), "a number") if column.is_text else column.values
    if not (pa.types.is_floating(values.type) or pa.types.is_integer(values.type)):
        raise column.wrong_type("numbers")
    narrow = pa.types.is_float32(values.type) or pa.types.is_float16(values.type)
    numbers = values.cast(pa.float32() if narrow else pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    column.reject(np.isnan(numbers), "is {}", "scores must be numbers, remove or repair these rows")
    return np.asarray(numbers)


def ranks_of(column: Column) -> Array:
    """Ranks of recommendations, int32: whole numbers of at least 0."""
    column.reject_missing()
    values = _parsed(column, pa.float64(), "a number") if column.is_text else column.values
    if not (pa.types.is_floating(values.type) or pa.types.is_integer(values.type)):
        raise column.wrong_type("whole numbers")
    numbers, whole = _whole_numbers(values) if pa.types.is_floating(values.type) else (values.to_numpy(), True)
    column.reject(
        np.logical_not(whole & (numbers >= 0) & (numbers < 2**31)),
        "is {}",
        "ranks must be whole numbers from 1, the best first, repair these rows",
    )
    return np.asarray(numbers.astype(np.int32))


def timestamps_of(column: Column) -> Times:
    """Integers and integral floats as they are; Arrow timestamps and dates, and text that Arrow reads as ISO 8601
    (`2024-03-01`, `2024-03-01 12:30:00.25`, `2024-03-01T12:30:00Z`), as epoch seconds, or in the unit of the finest.
    """
    column.reject_missing()
    values = _parsed_timestamps(column) if column.is_text else column.values
    if pa.types.is_timestamp(values.type):
        return Times(_ticks(values), values.type.unit).coarsest()
    if pa.types.is_date64(values.type):  # milliseconds; not every writer keeps to whole days
        return Times(_ticks(values), "ms").coarsest()
    if pa.types.is_date32(values.type):
        return Times(_ticks(values.cast(pa.int32())) * SECONDS_PER_DAY)
    if pa.types.is_floating(values.type):
        numbers, whole = _whole_numbers(values)
        column.reject(~whole, "is {}", "timestamps must be whole numbers (floats up to 2**53), such as epoch seconds")
        return Times(numbers.astype(np.int64))
    if not pa.types.is_integer(values.type):
        raise column.wrong_type("integers, dates and timestamps")
    try:
        return Times(np.array(_ticks(values)))
    except pa.ArrowInvalid as error:
        raise column.wrong_type("integers below 2**63") from error


def _ticks(values: pa.Array) -> Array:
    return np.asarray(values.cast(pa.int64()).to_numpy())


def kept_values(column: Column) -> Array:
    """A further column as numpy has it; text as Python strings."""
    return np.array(column.values.to_numpy(zero_copy_only=False))


NUMBERS = (pa.int64(), pa.float64())
MOMENTS = (pa.timestamp("us"), pa.timestamp("ns"))  # nanoseconds end in the year 2262
ZONED_MOMENTS = (pa.timestamp("us", tz="UTC"), pa.timestamp("ns", tz="UTC"))
TIME_FORMS = {"number": NUMBERS, "moment": MOMENTS, "moment with a zone": ZONED_MOMENTS}


def time_form(texts: pa.Array) -> str | None:
    """The way in which all texts are written, one of `TIME_FORMS`; None where there is none."""
    trimmed = pc.utf8_trim_whitespace(texts)
    fits = (form for form, types in TIME_FORMS.items() if any(_parses(trimmed, kind) for kind in types))
    return next(fits, None)


def _parsed_timestamps(column: Column) -> pa.Array:
    texts = pc.utf8_trim_whitespace(column.values)
    for kind in (*NUMBERS, *MOMENTS, *ZONED_MOMENTS):
        if _parses(texts, kind):
            return texts.cast(kind)
    # No form fits all of them: the first value that does not look like the first row is the one to show.
    form = time_form(texts[:1])
    finest = MOMENTS[0] if form is None else next(kind for kind in TIME_FORMS[form][::-1] if _parses(texts[:1], kind))
    return _parsed(column, finest, "a timestamp in the form of the other rows")


def _parsed(column: Column, target: pa.DataType, expected: str) -> pa.Array:
    texts = pc.utf8_trim_whitespace(column.values)
    if not _parses(texts, target):
        raise column.error(_first_unparsable(texts, target), f"is {{}}, not {expected},", "remove or repair these rows")
    return texts.cast(target)


def _parses(texts: pa.Array, target: pa.DataType) -> bool:
    try:
        texts.cast(target)
    except pa.ArrowInvalid:
        return False
    return True


def _first_unparsable(texts: pa.Array, target: pa.DataType) -> int:
    """By halving: `texts[:low]` parses, `texts[:high]` does not."""
    low, high = 0, len(texts)
    while high - low > 1:
        middle = (low + high) // 2
        if _parses(texts[low:middle], target):
            low = middle
        else:
            high = middle
    return low


def _whole_numbers(floats: pa.Array) -> tuple[Array, Array]:
    """Floats as float64, and which of them are exactly one integer."""
    numbers = np.asarray(floats.cast(pa.float64()).to_numpy(zero_copy_only=False))
    return numbers, (np.abs(numbers) <= LARGEST_EXACT_FLOAT) & (np.trunc(numbers) == numbers)


def _shortened(text: str) -> str:
    """For an error message: a file may hold anything, also in its header."""
    return text if len(text) <= 40 else text[:40] + "..."


def _mask(booleans: Any) -> Array:
    return np.asarray(booleans.to_numpy(zero_copy_only=False), dtype=bool)
