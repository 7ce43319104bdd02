"""Products by either library against float64."""

from __future__ import annotations

import pytest
import torch

from caged.models import matrix_products as module
from caged.models.matrix_products import add_product, by_onednn, product


@pytest.fixture
def processor(monkeypatch, tmp_path):
    """Pretends that this is a processor of some vendor; the library is chosen anew, and again afterwards."""

    def of(vendor, capability="AVX512"):
        (tmp_path / "cpuinfo").write_text(f"processor\t: 0\nvendor_id\t: {vendor}\n")
        monkeypatch.setattr(module, "CPU_INFO", tmp_path / "cpuinfo")
        monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
        module._onednn_linear.cache_clear()

    yield of
    module._onednn_linear.cache_clear()


def matrices(dtype=torch.float32):
    draw = torch.Generator().manual_seed(1)
    return torch.randn(70, 33, generator=draw).to(dtype), torch.randn(33, 50, generator=draw).to(dtype)


@pytest.mark.parametrize("vendor", ["AuthenticAMD", "GenuineIntel"])
def test_products_are_those_of_float64_whatever_the_processor(processor, vendor):
    processor(vendor)
    left, right = matrices()
    expected = left.double() @ right.double()
    memory = torch.empty(70, 64)[:, :50]
    for found in (product(left, right), product(left, right.T.contiguous().T), product(left, right, memory=memory)):
        torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-5)
    total = torch.full((70, 50), torch.nan)
    for first in (True, False):
        add_product(total, left.T.contiguous().T, right, first=first)
    torch.testing.assert_close(total.double(), 2 * expected, rtol=1e-5, atol=1e-5)


def test_onednn_is_taken_on_amd_with_avx512_alone(processor):
    left, _ = matrices()
    offered = torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    for vendor, capability, expected in [
        ("AuthenticAMD", "AVX512", offered),
        ("AuthenticAMD", "AVX2", False),
        ("GenuineIntel", "AVX512", False),
    ]:
        processor(vendor, capability)
        assert by_onednn(left) is expected
        assert not by_onednn(left.double())


def test_a_system_without_cpuinfo_takes_mkl(processor, monkeypatch, tmp_path):
    processor("AuthenticAMD")
    monkeypatch.setattr(module, "CPU_INFO", tmp_path / "none")
    assert not by_onednn(matrices()[0])


def test_other_numbers_are_multiplied_as_they_are(processor):
    processor("AuthenticAMD")
    left, right = matrices(torch.float64)
    assert torch.equal(product(left, right), left @ right)


def test_equal_products_have_equal_bits(processor):
    processor("AuthenticAMD")
    assert torch.equal(product(*matrices()), product(*matrices()))
