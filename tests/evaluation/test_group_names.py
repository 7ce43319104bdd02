"""Names of groups inside of metric keys: whatever somebody calls a group, the key comes back."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caged.evaluation.group_names import GroupName
from caged.evaluation.metrics import MetricKey
from caged.products.audit.gates import parse_gate

ODD = [
    "Film Noir",
    "<b>bold</b>",
    'say "hi"',
    "50% off",
    "a/b",
    "recall@20",
    "a=b",
    "user:x",
    "1,5",
    "Children's",
    "été 中文",
    "tab\there",
    "\u202eright to left",
    "drops 5%",
    "x < 0.1",
    "{k}",
    "\\",
]
NAMES = st.one_of(st.sampled_from(ODD), st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12))


@given(family=NAMES, group=NAMES, of_users=st.booleans(), bound=st.sampled_from(["<0.1", " >= 5%", " drops 1% surely"]))
def test_a_key_survives_json_gates_and_lists_of_metrics(family: str, group: str, of_users: bool, bound: str) -> None:
    name = GroupName(family, group, of_users)
    key = MetricKey("recall", 20, str(name))
    assert MetricKey.parse(str(key)) == key == json.loads(json.dumps(key))
    assert key.chosen == name
    assert key.user_group == (key.group if of_users else None)
    assert key.of_each_user == (key.of(None) if of_users else key)
    assert parse_gate(f"{key}{bound}").key == key
    assert MetricKey.parse(f"recall@5,{key}".split(",")[1]) == key  # as `compare --metrics` cuts them
    assert str(key).isprintable()
    assert not set(str(key)) & set(' <>"')


@given(family=NAMES)
def test_a_family_survives(family: str) -> None:
    key = MetricKey("rsp", 20, str(GroupName(family)))
    again = MetricKey.parse(str(key))
    assert again == key
    assert again.chosen == GroupName(family)
    assert again.user_group is None
    assert again.of_each_user == key


@pytest.mark.parametrize("typed", ["recall@20/genre=Film Noir", "recall@20/genre=Film%20Noir"])
def test_people_may_write_spaces(typed: str) -> None:
    assert MetricKey.parse(typed) == "recall@20/genre=Film%20Noir"
    assert parse_gate(f"{typed} < 0.1").key == "recall@20/genre=Film%20Noir"
    assert parse_gate(f"{typed} drops 5%").key == "recall@20/genre=Film%20Noir"
