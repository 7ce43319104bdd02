"""What may be asked for."""

from __future__ import annotations

import pytest

from caged.errors import ConfigError
from caged.products.best.shortlist import SETTINGS, settings_of
from caged.products.best.wish import Wish
from caged.runs.spec import DataConfig


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"minutes": 0.0}, "--minutes is 0"),
        ({"minutes": 1e9}, "a week"),
        ({"keep": 1.5}, "--keep"),
        ({"seed": -1}, "seed"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, float], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        Wish("log.csv", **options)  # type: ignore[arg-type]


def test_a_wish_comes_back_from_its_journal() -> None:
    wish = Wish("log.csv", keep=0.98, data=DataConfig(user_column="customer", min_rating=3.0))
    assert Wish.from_json(wish.to_json()) == wish


def test_more_time_and_another_place_of_the_log_may_go_on() -> None:
    Wish("there/log.csv", minutes=30).refuse_other(Wish("log.csv", minutes=10))
    with pytest.raises(ConfigError, match="--user-column is customer, but this search began with None"):
        Wish("log.csv", data=DataConfig(user_column="customer")).refuse_other(Wish("log.csv"))


def test_every_setting_of_the_short_list_can_be_trained() -> None:
    wish = Wish("log.csv")
    for method in SETTINGS:
        for values in settings_of(method):
            spec = wish.spec(method, values, 7)
            for name, value in values.items():
                section, _, key = name.partition(".")
                assert getattr(spec.config if section == "method" else spec.train, key) == value
            assert spec.train.epochs == 7


def test_the_first_setting_is_the_default_and_all_have_as_many() -> None:
    assert all(settings[0] == {} for settings in SETTINGS.values())
    assert {len(settings) for method, settings in SETTINGS.items() if method != "mostpop"} == {6}
    assert all(len(settings) == len({str(values) for values in settings}) for settings in SETTINGS.values())
