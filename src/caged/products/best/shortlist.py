"""The short list: which methods are tried, and for each a few settings in the order in which they are tried.

Every method gets the same number of settings. The first are its defaults, so that one round is a fair comparison
already. The others are what most often helps: a larger step, more or less regularisation, and for the softmax how sharp
it is and how much popularity it takes out. They are lists and no search space, because a practitioner's budget pays for
a handful of trainings, and a handful drawn at random is worse than a handful that was chosen.
"""

from __future__ import annotations

from caged.products.tune import Values

BESTSELLERS, BASELINE = "mostpop", "lightgcn"
LINEAR, NEIGHBOURS = "ease", "itemknn"  # the second stands in where the catalogue is too large for the first
TRAINED = (BASELINE, "softmax")
MOST_EPOCHS = 300  # LightGCN at its defaults needs about 250 on a log of 100,000 pairs

SETTINGS: dict[str, list[Values]] = {
    BESTSELLERS: [{}],
    LINEAR: [{}, *({"method.ridge": ridge} for ridge in (250.0, 1000.0, 100.0, 2000.0, 50.0))],
    NEIGHBOURS: [
        {},
        {"method.weighting": "bm25"},
        {"method.neighbours": 200},
        {"method.weighting": "tfidf"},
        {"method.neighbours": 50},
        {"method.neighbours": 200, "method.weighting": "bm25"},
    ],
    BASELINE: [
        {},
        {"train.learning_rate": 5e-3},
        {"train.learning_rate": 5e-3, "method.l2": 1e-3},
        {"train.learning_rate": 2e-3, "method.l2": 1e-3},
        {"train.learning_rate": 5e-3, "method.l2": 1e-5},
        {"train.learning_rate": 1e-2, "method.l2": 1e-3},
    ],
    "softmax": [
        {},
        {"train.learning_rate": 5e-3},
        {"train.learning_rate": 5e-3, "method.temperature": 0.2},
        {"train.learning_rate": 5e-3, "method.gamma": 0.0},
        {"train.learning_rate": 5e-3, "method.gamma": 0.2},
        {"train.learning_rate": 5e-3, "method.temperature": 0.1},
    ],
}
ROUNDS = max(map(len, SETTINGS.values()))


def settings_of(method: str, rounds: int = ROUNDS) -> list[Values]:
    return SETTINGS[method][:rounds]
