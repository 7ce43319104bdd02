"""A trial as it goes into the record, whatever becomes of it. It may run in another process."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any

import torch

from caged.errors import CagedError, memory_error
from caged.evaluation.metrics import MetricKey, list_ks
from caged.products.tune.halving import Climb, Curve, Ladder, Pruned
from caged.products.tune.settings import Settings
from caged.products.tune.space import Values
from caged.products.tune.trial import SearchData, run_trial
from caged.runs.environment import resolve_device
from caged.training import Interrupted, Observer


@dataclass(frozen=True, eq=False)
class Given:
    """What every trial of a search rests on."""

    settings: Settings
    data: SearchData

    @property
    def ks(self) -> list[int]:
        """The cut-offs at which trials are measured: that of the epoch, and those of what is wished for."""
        return sorted({self.data.k, *list_ks(map(MetricKey.parse, self.settings.wished_keys))} - {0})

    @property
    def curve_keys(self) -> tuple[str, ...]:
        """What is measured after every epoch: what decides it, and what is wished for."""
        return tuple(dict.fromkeys([self.data.monitor, *self.settings.wished_keys]))


@dataclass(frozen=True)
class Attempt:
    """Trains one setting of one method; the result is what the journal says about its end."""

    method: str
    values: Values
    ladder: Ladder | None = None  # where it may be pruned

    def __call__(self, given: Given, observer: Observer, stop_requested: Callable[[], bool]) -> dict[str, Any]:
        begun, device = perf_counter(), resolve_device(given.settings.device)
        curve = Curve(given.data.monitor, given.curve_keys)
        climb = () if self.ladder is None else (Climb(self.ladder, curve),)
        try:
            outcome = run_trial(
                given.settings.spec(self.method, self.values),
                given.data,
                device,
                given.ks,
                keys=given.curve_keys,
                observers=(curve, observer, *climb),
                stop_requested=stop_requested,
            )
        except Interrupted:
            raise
        except Pruned as why:
            saved = given.settings.epochs - curve.total
            ended = {"epochs": curve.total, "best_epoch": curve.best_epoch, "seconds": perf_counter() - begun}
            return {"status": "pruned", "reason": str(why), **ended, "saved": saved, "curve": curve.to_json()}
        except Exception as error:  # whatever it is, it is this setting's, and goes into the record
            told = memory_error(error) or error
            kind = "" if isinstance(told, CagedError) else f"{type(error).__name__}: "
            return failed(f"{kind}{told}", curve.total, perf_counter() - begun)
        finally:
            _free(device)
        return {"status": "complete", **asdict(outcome), "curve": curve.to_json()}


def failed(reason: str, epochs: int = 0, seconds: float = 0.0) -> dict[str, Any]:
    return {"status": "failed", "reason": reason, "epochs": epochs, "best_epoch": 0, "seconds": seconds}


def _free(device: torch.device) -> None:
    """Memory of the device that a trial leaves in cycles of objects, such as a recorded step."""
    if device.type == "cuda":
        gc.collect()
        torch.cuda.empty_cache()
