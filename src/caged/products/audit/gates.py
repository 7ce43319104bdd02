"""Gates: conditions under which an audit fails, for use in a pipeline.

    tail_share@20<0.2       a value on the wrong side of a bound: <, <=, >, >=
    recall@20 drops 1%      lower than the base by more than 1% of the base's value
    gini@20 rises 2%        higher than the base by more than 2%
    recall@20 drops 1% surely   the same, and the 95% interval of the difference lies beyond it
    recall@20/genre=Drama<0.1   of a group that somebody chose

An expression says when the gate *fails*. A gate on a value that is not defined fails too, and says so. `surely` also
goes with a bound: the interval of the value then has to lie beyond it.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from caged.errors import ConfigError, DataError, suggestion
from caged.evaluation.basis import Basis
from caged.evaluation.bootstrap import Interval
from caged.evaluation.group_names import NONE_CHOSEN, GroupNames
from caged.evaluation.metrics import METRICS, MetricKey, OfItems
from caged.products.audit.certainty import can_be_sure, difference_interval
from caged.products.audit.folder import StoredAudit, read_audit
from caged.products.audit.result import AuditResult

_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_SURELY = r"(?P<surely>\s+surely)?\s*"
_BOUND = re.compile(
    r"\s*(?P<key>[^\s<>][^<>]*?)\s*(?P<sign><=|>=|<|>)\s*(?P<bound>[^\s%]+)\s*(?P<percent>%?)" + _SURELY
)
_CHANGE = re.compile(
    r"\s*(?P<key>\S.*?)\s+(?P<verb>drops|rises)\s+(?:by\s+)?(?P<bound>[^\s%]+)\s*(?P<percent>%?)" + _SURELY
)
_FORMS = (
    "write METRIC<NUMBER (or <=, >, >=), 'METRIC drops NUMBER%' or 'METRIC rises NUMBER%', with 'surely' behind it "
    "where only a certain change should fail"
)
_ROUNDING = 1e-9  # a drop of exactly 1% is no drop of more than 1%, however it was rounded


@dataclass(frozen=True)
class Gate:
    """One condition; `sign` is an operator, or `drops` or `rises` for a change relative to a base."""

    text: str
    key: MetricKey
    sign: str
    bound: float
    surely: bool = False

    @property
    def is_relative(self) -> bool:
        return self.sign not in _COMPARE


@dataclass(frozen=True)
class Verdict:
    """What became of a gate; `reason` is a sentence, whether it failed or not."""

    gate: Gate
    failed: bool
    value: float
    base: float | None
    reason: str
    interval: Interval | None = None  # of the value, or of the difference to the base, where `surely` asks for it


def parse_gate(text: str) -> Gate:
    """
    >>> parse_gate("recall@20/niche >= 0.1").sign
    '>='
    >>> parse_gate("recall@20 drops 1%").bound
    0.01
    """
    found = _BOUND.fullmatch(text) or _CHANGE.fullmatch(text)
    if found is None:
        raise ConfigError(f"gate '{text}' cannot be read; {_FORMS}")
    groups = found.groupdict()
    sign = groups.get("sign") or groups["verb"]
    bound = _number(groups["bound"], text) * (0.01 if groups["percent"] else 1.0)
    gate = Gate(text.strip(), _known_key(groups["key"], text), sign, bound, bool(groups["surely"]))
    if gate.is_relative and not groups["percent"]:
        raise ConfigError(f"gate '{text}' needs a percentage of the base's value: write {sign} 1%, for example")
    if gate.is_relative and bound < 0:
        raise ConfigError(f"gate '{text}' has a negative change; write drops or rises with a number of at least 0")
    return gate


@dataclass(frozen=True, eq=False)
class Base:
    """The run or audit that changes are relative to."""

    folder: Path
    metrics: Mapping[str, float]
    fingerprints: Mapping[str, str]
    basis: Basis | None = None
    stored: StoredAudit | None = None  # the whole of it

    @classmethod
    def read(cls, folder: Path) -> Base:
        found = read_audit(folder)
        if found.problems:
            raise DataError(
                f"--against {folder} was measured on wrong input: {' '.join(found.problems)} Repair and audit it again"
            )
        return cls(folder, found.metrics, found.fingerprints, found.basis, found)

    def check_sure(self, gate: Gate) -> None:
        if self.stored is not None and not can_be_sure(gate.key, self.stored):
            raise ConfigError(
                f"gate '{gate.text}' cannot be judged: {self.folder} stores neither an interval of {gate.key} nor its "
                f"values per user; give a folder that caged audit -o wrote, or leave surely out"
            )

    def interval_of(self, gate: Gate, result: AuditResult) -> Interval | None:
        return None if self.stored is None else difference_interval(gate.key, self.stored, result)

    def check_comparable(self, result: AuditResult, gates: Iterable[Gate]) -> list[str]:
        """Numbers over other data would differ for reasons that no gate is about; returned are notes."""
        self._check_parts(result.fingerprints)
        if self.basis is None or result.basis is None:
            return [f"{self.folder} does not say with which catalogue, groups and --missing it was measured"]
        relative = [gate for gate in gates if gate.is_relative]
        unlike = self.basis.unlike(result.basis)
        for one in unlike:
            gate = next((gate for gate in relative if one.concerns(gate.key)), None)
            if gate is not None:
                raise ConfigError(
                    f"gate '{gate.text}' cannot be judged against {self.folder}: {one.sentence}, there and here; "
                    f"{one.fix}"
                )
        return [f"against {self.folder}: {one.sentence}, there and here" for one in unlike]

    def _check_parts(self, fingerprints: Mapping[str, str]) -> None:
        for part in ("train", "test"):
            known = self.fingerprints.get(part), fingerprints.get(part)
            if part == "train" and _development(self.fingerprints) == _development(fingerprints):
                continue  # what one side holds out to choose an epoch, the other may train on
            if None not in known and known[0] != known[1]:
                raise ConfigError(
                    f"--against {self.folder} was measured on another {part} part (fingerprint {str(known[0])[:12]}, "
                    f"here {str(known[1])[:12]}), so changes mean nothing; audit both on the same files"
                )


def _development(fingerprints: Mapping[str, str]) -> str | None:
    """Of train with valid."""
    return fingerprints.get("development", fingerprints.get("train"))


def check_gates(
    gates: Iterable[Gate],
    ks: Collection[int],
    base: Base | None,
    chosen: GroupNames = NONE_CHOSEN,
    *,
    shown_ks: Collection[int] = (),
) -> None:
    """Refuse gates that the audit to come cannot judge: at another cut-off, of a group that nobody chose, or relative
    to a base that is not there."""
    for gate in gates:
        _check_group(gate, chosen)
        k, metric = gate.key.k, gate.key.metric
        measured, flag = (shown_ks, "--shown-k") if metric.of_shown else (ks, "-k")
        if metric.has_k and k not in measured:
            raise ConfigError(
                f"gate '{gate.text}' is about k = {k}, but the audit measures k = {', '.join(map(str, measured))}; "
                f"add it to {flag}"
            )
        if gate.key.metric.published:
            raise ConfigError(
                f"gate '{gate.text}' cannot be judged: {gate.key.name} is only for lists under the protocol 'paper', "
                f"and an audit does not measure it; use another metric"
            )
        if gate.surely and isinstance(gate.key.metric.formula, OfItems):
            raise ConfigError(
                f"gate '{gate.text}' cannot be judged: {gate.key.name} has no interval, so nothing says what is sure; "
                f"leave surely out"
            )
        if not gate.is_relative:
            continue
        if base is None:
            raise ConfigError(
                f"gate '{gate.text}' compares with a base; name one with --against DIR (a folder of train or audit)"
            )
        if gate.key not in base.metrics:
            raise ConfigError(
                f"gate '{gate.text}' cannot be judged: {base.folder} has no {gate.key}; measure it there too"
                f"{f', {flag} {k}' if metric.has_k else ', with --test-negative'}"
                f"{_measured_with(gate.key)}"
            )
        if gate.surely:
            base.check_sure(gate)


def _measured_with(key: MetricKey) -> str:
    if key.chosen is not None:
        return " and with the same groups"
    return " and with the same --item-vectors" if key.metric.of_vectors else ""


def _check_group(gate: Gate, chosen: GroupNames) -> None:
    key = gate.key
    if key.group in key.metric.reported_groups(chosen):
        return
    if key.chosen is None:
        raise ConfigError(
            f"gate '{gate.text}' cannot be judged: {key} rests on vectors of the items; give them as --item-vectors "
            f"FILE, or change the gate"
        )
    kind = "user" if key.chosen.of_users else "item"
    known = key.metric.chosen_groups(chosen)
    told = f"the groups are {', '.join(known)}{suggestion(str(key.group), known)}" if known else "there are no groups"
    raise ConfigError(
        f"gate '{gate.text}' cannot be judged: {told}; give a table with this one as --{kind}-groups FILE, or change "
        f"the gate"
    )


def refuse_problems(result: AuditResult) -> None:
    """Numbers of input that is wrong as a whole are about something else: no gate may pass or fail on them."""
    if result.problems:
        raise DataError(
            f"nothing was measured that a gate could judge: {' '.join(result.problems)} Repair the input; without "
            f"--fail-if and --against the audit shows what was read"
        )


def refuse_unmeasured(gates: Iterable[Gate], result: AuditResult) -> None:
    """A gate about what nothing was given for would fail whatever the lists are."""
    for gate in gates:
        if math.isfinite(result.metrics.get(gate.key, math.nan)):
            continue
        if gate.key.metric.of_shown and not result.floors:
            missing = "what was shown at random and not liked (--test-negative FILE)"
        elif gate.key.metric.needs_test and result.exposure.relevant is None:
            missing = "a test part (--test FILE)"
        else:
            continue  # it was measured, and is undefined
        raise ConfigError(
            f"gate '{gate.text}' cannot be judged: {gate.key} needs {missing}; give it, or change the gate"
        )


def judge(
    gates: Sequence[Gate],
    metrics: Mapping[str, float],
    base: Base | None = None,
    *,
    interval_of: Callable[[Gate], Interval | None] = lambda _: None,
) -> list[Verdict]:
    """What becomes of each gate; `interval_of` is asked where one wants to be sure."""
    verdicts = []
    for gate in gates:
        value = metrics.get(gate.key, math.nan)
        before = base.metrics.get(gate.key, math.nan) if base is not None and gate.is_relative else None
        failed, reason = _bound_judged(gate, value) if before is None else _change_judged(gate, value, before)
        verdict = Verdict(gate, failed, value, before, reason)
        verdicts.append(_surely_judged(verdict, interval_of(gate)) if gate.surely and failed else verdict)
    return verdicts


def sure_interval(gate: Gate, result: AuditResult, base: Base | None) -> Interval | None:
    """Of the difference to the base, or of the value where the gate is a bound."""
    if gate.is_relative and base is not None:
        return base.interval_of(gate, result)
    return result.intervals.get(gate.key)


def _surely_judged(verdict: Verdict, interval: Interval | None) -> Verdict:
    """A failed gate stays so only if the whole interval lies beyond what is allowed, or the value is undefined."""
    gate, before = verdict.gate, verdict.base
    if not math.isfinite(verdict.value) or (before is not None and (not math.isfinite(before) or before == 0)):
        return verdict
    if interval is None:
        raise ConfigError(
            f"gate '{gate.text}' cannot be judged: the value fails, but there is no interval of {gate.key} here, as "
            f"hardly any users differ in it, so nothing says what is sure; leave surely out"
        )
    below = gate.sign in ("<", "<=", "drops")
    limit = gate.bound if before is None else gate.bound * abs(before) * (-1 if below else 1)
    failed = interval.high < limit if below else interval.low > limit
    what = "the value" if before is None else "the difference"
    said = f"the 95% interval of {what}, {interval.low:.6g} to {interval.high:.6g}, {_beyond(failed)} {limit:.6g}"
    return replace(verdict, failed=failed, reason=f"{verdict.reason}; {said}", interval=interval)


def _beyond(failed: bool) -> str:
    return "lies beyond" if failed else "does not lie beyond"


def _bound_judged(gate: Gate, value: float) -> tuple[bool, str]:
    if not math.isfinite(value):
        return True, f"{gate.key} is undefined, so the gate cannot be passed"
    failed = _COMPARE[gate.sign](value, gate.bound)
    relation = gate.sign if failed else _OPPOSITE[gate.sign]
    return failed, f"{gate.key} is {value:.6g}, {relation} {gate.bound:.6g}"


def _change_judged(gate: Gate, value: float, before: float) -> tuple[bool, str]:
    for number, where in ((value, "here"), (before, "in the base")):
        if not math.isfinite(number):
            return True, f"{gate.key} is undefined {where}, so the gate cannot be passed"
    if before == 0:
        return True, f"{gate.key} is 0 in the base, so a relative change is undefined and the gate cannot be passed"
    change = (value - before) / abs(before)
    towards = -change if gate.sign == "drops" else change
    allowed = f"a {'drop' if gate.sign == 'drops' else 'rise'} of at most {100 * gate.bound:.6g}%"
    reason = f"{gate.key} is {value:.6g}, in the base {before:.6g}: a change of {change:+.2%}; allowed is {allowed}"
    return towards > gate.bound + _ROUNDING, reason


def _number(text: str, gate: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ConfigError(f"gate '{gate}' has '{text}' where a number is needed; {_FORMS}")
    return value


def _known_key(key: str, gate: str) -> MetricKey:
    try:
        return MetricKey.parse(key)
    except ConfigError as error:
        name = key.partition("@")[0].partition("/")[0]
        if name in METRICS:
            raise ConfigError(f"gate '{gate}': {error}") from error
        raise ConfigError(
            f"gate '{gate}' names the unknown metric '{name}'; known: {', '.join(METRICS)}{suggestion(name, METRICS)}"
        ) from error
