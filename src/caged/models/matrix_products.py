"""Products of matrices: operands in bfloat16 or float32, sums in float32.

On CPU torch multiplies float32 matrices by MKL, which takes its AVX-512 code on Intel's processors only. oneDNN, which
torch brings too, asks the processor what it can do: on one of AMD's with AVX-512 it takes half the time. Torch offers
it for float32 as the operator that its compiler makes of linear layers. Which library it is depends on the processor
alone, so equal runs on one machine stay equal to the last bit.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

AMD = "AuthenticAMD"
CPU_INFO = Path("/proc/cpuinfo")


def product(left: Tensor, right: Tensor, *, memory: Tensor | None = None) -> Tensor:
    """left @ right; `memory` is where it may be written, float32. No gradient: for functions with their own."""
    if left.dtype == torch.bfloat16:
        return torch.mm(left, right, out_dtype=torch.float32)
    if by_onednn(left):
        found: Tensor = _onednn_linear()(left, right.T, None, "none", [], "")
        return found
    return torch.mm(left, right, out=memory)


def add_product(total: Tensor, left: Tensor, right: Tensor, *, first: bool) -> None:
    """total += left @ right; total is not read if this is its first part."""
    if left.dtype == torch.bfloat16:
        _add(total, product(left, right), first=first)
    elif by_onednn(left):  # it reads the larger matrix, which here is a transposed one, as it lies
        _add(total, product(right.T.contiguous(), left.T).T, first=first)
    else:
        total.addmm_(left, right, beta=0 if first else 1)


def _add(total: Tensor, part: Tensor, *, first: bool) -> None:
    if first:
        total.copy_(part)
    else:
        total.add_(part)


def by_onednn(operand: Tensor) -> bool:
    return operand.dtype == torch.float32 and operand.device.type == "cpu" and _onednn_linear() is not None


@cache
def _onednn_linear() -> Any:
    """Torch's operator x, w, ... -> x @ w.T by oneDNN; None where MKL is as fast, or there is no such operator."""
    if not torch.backends.mkldnn.is_available() or torch.backends.cpu.get_cpu_capability() != "AVX512":
        return None
    return getattr(torch.ops.mkldnn, "_linear_pointwise", None) if _vendor() == AMD else None


def _vendor() -> str:
    try:
        lines = CPU_INFO.read_text(encoding="utf-8").splitlines()
    except OSError:
        return "unknown"
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("vendor_id")), "unknown")
