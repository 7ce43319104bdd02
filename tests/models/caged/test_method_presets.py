"""The presets of CAGED: what the paper writes, what the released code runs, and the published values per dataset."""

from __future__ import annotations

import dataclasses

import pytest

from caged.config import describe
from caged.models.caged.method import CAGEDConfig
from caged.runs.spec import read_preset, resolve

PUBLISHED = {  # README of the released code: learning rate, l2, eta_2, eps, lambda, beta, epochs
    "movie": (5e-4, 1e-3, 1e-4, 5e-4, 1.0, 0.0, 1000),
    "pinterest": (5e-4, 1e-3, 5e-4, 5e-4, 1.0, 0.0, 800),
    "epinions": (1e-3, 2e-4, 1e-4, 1e-2, 1.2, 1.0, 1000),
}


@pytest.mark.parametrize("dataset", PUBLISHED)
def test_published_values(dataset):
    spec = resolve("log.csv", "caged", presets=[dataset])
    config = spec.config
    found = (
        spec.train.learning_rate,
        config.l2,
        config.estimator_learning_rate,
        config.eps,
        config.lam,
        config.beta,
        spec.train.epochs,
    )
    assert found == PUBLISHED[dataset]
    assert (config.embedding_size, spec.train.batch_size) == (256, 2048)


def test_paper_and_code_differ_where_the_specification_says():
    paper, code = (resolve("log.csv", "caged", presets=[name]).config for name in ("caged_paper", "caged_code"))
    different = {
        field.name: (getattr(paper, field.name), getattr(code, field.name))
        for field in dataclasses.fields(CAGEDConfig)
        if getattr(paper, field.name) != getattr(code, field.name)
    }
    assert different == {"weight_form": ("paper", "code"), "elbo_train_scaled": (True, False)}
    assert (code.score_z, code.directions, code.estimator_input, code.estimator_layers) == (
        "sample",
        "both",
        "pooled",
        3,
    )


@pytest.mark.parametrize("preset", ["caged_paper", "caged_code"])
def test_a_preset_of_the_method_leaves_values_of_datasets_and_protocols_alone(preset):
    chosen = read_preset(preset, "caged")
    assert not chosen["train"]
    assert not {"lam", "beta", "eps", "layers", "embedding_size", "l2"} & chosen["method"].keys()
    both = resolve("log.csv", "caged", presets=["epinions", preset]).config
    assert (both.lam, both.beta, both.eps) == (1.2, 1.0, 1e-2)


def test_the_paper_protocol_owns_the_layers():
    assert resolve("log.csv", "caged", presets=["movie"], protocol="paper").config.layers == 2
    assert resolve("log.csv", "caged", presets=["movie"]).config.layers == 3


def test_every_parameter_says_where_its_default_comes_from():
    sources = {info.name: info.source for info in describe(CAGEDConfig)}
    assert "CAGED paper" in sources["lam"]
    assert "released code" in sources["weight_form"]
    assert all(sources.values())
