"""How much memory a graph, its weights or anything that is made of them holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from torch import Tensor


def bytes_held(*holders: object) -> int:
    """Bytes of all tensors that these objects refer to, through objects of this package; shared memory counts once.

    >>> import torch
    >>> values = torch.zeros(10)
    >>> bytes_held([values, values[2:]], {"same": values})
    40
    """
    sizes = {}
    for tensor in _tensors(holders, set()):
        storage = tensor.untyped_storage()
        sizes[storage.data_ptr()] = storage.nbytes()
    return sum(sizes.values())


def _tensors(holder: object, seen: set[int]) -> Iterator[Tensor]:
    if id(holder) in seen:
        return
    seen.add(id(holder))
    if isinstance(holder, Tensor):
        yield holder
        return
    for part in _parts(holder):
        yield from _tensors(part, seen)


def _parts(holder: object) -> Iterable[object]:
    if isinstance(holder, Mapping):
        return holder.values()
    if isinstance(holder, (list, tuple)):
        return holder
    ours = type(holder).__module__.split(".")[0] == "caged"
    return vars(holder).values() if ours and hasattr(holder, "__dict__") else ()
