"""The answer of a search in sentences."""

from __future__ import annotations

from caged.page.numbers import UNDEFINED, number, percent_change, signed
from caged.products.tune.answer import Answer
from caged.products.tune.choice import Chosen
from caged.products.tune.evidence import Bounds, Margin


def answer_sentences(answer: Answer) -> list[str]:
    """Who wins, by how much, and how sure that is."""
    said = _verdict(answer)
    if answer.made_for is not None:
        said.append(judged_again(answer.made_for))
    if answer.tests.left:
        said.append(still_to_test(answer))
    return said


def _verdict(answer: Answer) -> list[str]:
    winner = answer.winner
    if winner is None:
        return [f"No method wins: no trial {held(answer) or 'succeeded'}."]
    key, second = answer.settings.objective.key, answer.second
    text = f"{winner.method} wins: {key} {number(answer.validated(winner, key))} on validation"
    kept = held(answer)
    sentences = [f"{text}, the best of all that {kept}." if kept else f"{text}."]
    if second is not None:
        sentences.append(_by_how_much(answer, winner, second, key))
    if on_test := _on_test(answer, winner, second, key):
        sentences.append(on_test)
    said = [" ".join(sentences)]
    margin = lead_over_second(answer)
    if margin is not None and (sure := how_sure(margin)):
        said.append(f"Difference on the test part to {margin.name}: {sure}.")
    return said


def judged_again(made_for: str) -> str:
    return f"The trials were made to {made_for}; here they are judged by another goal."


def still_to_test(answer: Answer) -> str:
    return f"Trainings that are still to be made and tested: {answer.tests.left}."


def held(answer: Answer) -> str:
    """What the constraints ask for, with their limits as numbers."""
    parts = [
        f"{each}"
        + (f" (at {'least' if limit.sense == '>=' else 'most'} {number(limit.value)})" if each.reference else "")
        for each, limit in zip(answer.settings.constraints, answer.choice.goal.limits, strict=True)
    ]
    return f"kept {' and '.join(parts)}" if parts else ""


def lead_over_second(answer: Answer) -> Margin | None:
    """In the objective, on the test part."""
    second = answer.second
    key = answer.settings.objective.key
    return next((one for one in answer.leads if second and (one.name, one.key) == (second.method, key)), None)


def how_sure(margin: Margin) -> str:
    """
    >>> how_sure(Margin("ips", "recall@20", 0.02, 0.1, None, (0.015, 0.025), (3, 3)))
    '+0.0200, 95% interval over 3 and 3 trainings +0.0150 to +0.0250 (more than chance)'
    """
    said = [signed(margin.difference)]
    if margin.users is not None:
        bounds = margin.users[:2]
        said.append(f"95% interval over users {between(bounds)} ({chance(bounds)})")
    if margin.seeds is not None:
        first, second = margin.runs
        said.append(
            f"95% interval over {first} and {second} trainings {between(margin.seeds)} ({chance(margin.seeds)})"
        )
    return ", ".join(said) if len(said) > 1 else ""


def between(bounds: Bounds) -> str:
    return f"{signed(bounds[0])} to {signed(bounds[1])}"


def chance(bounds: Bounds) -> str:
    return "may be chance" if bounds[0] <= 0 <= bounds[1] else "more than chance"


def _by_how_much(answer: Answer, winner: Chosen, second: Chosen, key: str) -> str:
    ahead = relative(answer.validated(winner, key), answer.validated(second, key))
    return f"Next is {second.method} with {number(answer.validated(second, key))} ({winner.method}: {ahead})."


def _on_test(answer: Answer, winner: Chosen, second: Chosen | None, key: str) -> str:
    """Nothing where one of the two has no test yet: half of a comparison invites to make up the rest."""
    mine, seeds = answer.test_mean(winner.method, key), len(answer.tested.get(winner.method, []))
    if mine is None or (second is not None and second.method not in answer.tested):
        return ""
    over = f"the mean of {seeds} seeds" if seeds > 1 else "one training"
    text = f"On the test part {winner.method} reaches {number(mine)} ({over})"
    theirs = None if second is None else answer.test_mean(second.method, key)
    if second is None or theirs is None:
        return f"{text}."
    return f"{text}, {second.method} {number(theirs)} ({winner.method}: {relative(mine, theirs)})."


def relative(mine: float | None, theirs: float | None) -> str:
    if mine is None or theirs is None or theirs == 0:
        return UNDEFINED
    return percent_change(100 * (mine / theirs - 1))
