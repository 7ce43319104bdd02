"""The record of `benchmarks.billion`: what was asked for, every call, every epoch; whole after each of them."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from caged.errors import RunError
from caged.files import make_parent, read_json, write_json

COPY = "record.json"  # beside the checkpoint, for the next call


@dataclass
class Record:
    """Written to `places`: where the user wants it, and beside the checkpoint."""

    places: tuple[Path, ...]
    asked: dict[str, Any]
    calls: list[dict[str, Any]] = field(default_factory=list)
    epochs: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def opened(cls, out: Path, folder: Path | None, asked: dict[str, Any]) -> Record:
        """A new one, or the one beside the checkpoint, which has to be about the same."""
        if folder is None:
            return cls((out,), asked)
        copy = folder / COPY
        if not copy.exists():
            return cls((out, copy), asked)
        earlier = read_json(copy)
        different = [name for name in asked if earlier["asked"].get(name) != asked[name]]
        if different:
            raise RunError(
                f"{folder} holds a training with another {different[0]}; go on with the same options, or choose "
                "another --folder"
            )
        return cls((out, copy), asked, earlier["calls"], earlier["epochs"])

    def go_on_from(self, epoch: int) -> None:
        """Forget the epochs after the checkpoint: they are trained again."""
        self.epochs = [line for line in self.epochs if line["epoch"] <= epoch]

    def begin_call(self, steps: dict[str, Any], seconds: dict[str, float], peak_bytes: dict[str, int]) -> None:
        call = {**steps, "phases_s": seconds, "peak_bytes": peak_bytes}
        self.calls.append({**call, "first_epoch": len(self.epochs) + 1})
        log = self.asked["log"]
        _say(
            f"{log['training_interactions']:,} training interactions of {log['users']:,} users with {log['items']:,} "
            f"items; {log['held_out_interactions']:,} held out of {log['sampled_users']:,} sampled users"
        )
        for phase, value in seconds.items():
            _say(f"{phase:<10} {value:9.2f} s   peak {peak_bytes[phase] / 2**30:7.2f} GiB")
        self._write()

    def add(self, line: dict[str, Any], circumstances: dict[str, Any]) -> None:
        """An epoch that has just ended, in these circumstances."""
        call = self.calls[-1]
        call.update(circumstances)
        sample_s, steps = call["phases_s"]["sample"], call["steps"]
        step_s = (line["phases_s"]["train"] - sample_s) / steps
        self.epochs.append({**line, "step_s": step_s, "call": len(self.calls)})
        validation = " ".join(f"{name} {value:.5f}" for name, value in (line["validation"] or {}).items())
        _say(
            f"epoch {line['epoch']:<4} {line['seconds']:9.2f} s   peak {line['peak_bytes'] / 2**30:7.2f} GiB   "
            f"loss {line['loss']['total']:.6f}   {validation}   sample {sample_s:.2f} s, {steps} steps of {step_s:.4f} "
            f"s, validate {line['phases_s'].get('validate', 0.0):.2f} s, before {line['before_s']:.1f} s"
        )
        self._write()

    def _write(self) -> None:
        for place in self.places:
            make_parent(place)
            write_json(place, {"asked": self.asked, "calls": self.calls, "epochs": self.epochs})


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
