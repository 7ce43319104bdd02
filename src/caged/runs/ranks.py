"""The ranks of a run: whether this process is one, which devices they get, and starting them on one machine.

`caged train --devices 4` starts four processes of the same command and watches them. `torchrun` does so too; a rank
sees no difference: both say in the environment who it is (RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT).
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO

import torch

from caged.columns import WHOLE, Columns
from caged.errors import ConfigError, RunError
from caged.models import METHODS, registered
from caged.runs.environment import resolve_device
from caged.runs.folder import RunFolder
from caged.runs.planning.workload import MOST_DEVICES, one_device_only
from caged.runs.spec import ExperimentSpec

INTERRUPTED = 130  # exit code after Ctrl-C
LOST = 3  # exit code of a rank that lost the others; it says nothing, since whoever started the ranks knows which ended
LAUNCHED = "CAGED_LAUNCHED"  # in the environment of ranks that `launch` started
GRACE = 5.0  # seconds for the first rank to write down how a run ended, after another one did
POLL = 0.05  # seconds between looks at the ranks

Process = subprocess.Popen[bytes]


@dataclass(frozen=True)
class Place:
    """Which of how many ranks this process is."""

    rank: int
    size: int
    local_rank: int  # on this machine
    local_size: int
    launched: bool  # by `launch`, not by torchrun

    @property
    def first(self) -> bool:
        return self.rank == 0

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Place | None:
        """None where this process works alone."""
        size = int(environment.get("WORLD_SIZE", "1"))
        if size == 1 or "RANK" not in environment:
            return None
        rank = int(environment["RANK"])
        local = int(environment.get("LOCAL_RANK", rank)), int(environment.get("LOCAL_WORLD_SIZE", size))
        return cls(rank, size, *local, launched=LAUNCHED in environment)


def check_devices(spec: ExperimentSpec, devices: int, place: Place | None = None) -> None:
    """Refuse what cannot be trained on so many devices."""
    if not 1 <= devices <= MOST_DEVICES:
        raise ConfigError(f"--devices is {devices}; it must be from 1 to {MOST_DEVICES}")
    if place is not None and devices not in (1, place.size):
        raise ConfigError(f"--devices is {devices}, but torchrun started {place.size} ranks; leave --devices out")
    if max(devices, 1 if place is None else place.size) == 1:
        return
    if registered(spec.method).method.by_columns is None:
        able = sorted(name for name, known in METHODS.items() if known.method.by_columns is not None)
        raise ConfigError(one_device_only(spec.method, able))
    columns = spec.config.embedding_size
    if columns < devices:
        raise ConfigError(
            f"method.embedding_size is {columns}, but --devices is {devices}, and each of them holds at least one "
            f"column; use at most --devices {columns}"
        )


@contextmanager
def columns_of(place: Place | None, spec: ExperimentSpec) -> Iterator[Columns]:
    """The columns that this process trains, connected with the other ranks where there are any."""
    if place is None:
        yield WHOLE
        return
    from caged.training.columns import connected  # torch.distributed is not needed otherwise

    device = resolve_device(spec.device)
    if device.type == "cuda":
        torch.cuda.set_device(place.local_rank % torch.cuda.device_count())
    with connected(spec.config.embedding_size, device, place.local_size) as columns:
        yield columns


# ---------------------------------------------------------------- being one of several


def begin_rank(place: Place, *, verbose: bool) -> None:
    """Only the first rank speaks; who was launched ends with its launcher; who follows leaves Ctrl-C to the first."""
    if place.launched:
        threading.Thread(target=_end_with_launcher, daemon=True).start()
    if place.first:
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first rank tells the others to stop
    if not place.launched and not verbose:  # a launcher keeps what they say, in case they fail
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(nowhere, stream)


def _end_with_launcher() -> None:
    """Its end of the pipe closes when it ends, however it does."""
    while os.read(0, 1):
        pass
    os._exit(LOST)


# ---------------------------------------------------------------- starting them


def launch(devices: int, arguments: Sequence[str], folder: Path) -> int:
    """Run `caged ARGUMENTS` as so many ranks on this machine; the exit code of the first.

    A rank that dies ends the others, and an error says which it was and how to go on with the run in `folder`.
    """
    from torch.distributed import TCPStore  # type: ignore[attr-defined]  # it is not in __all__

    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)  # a free port, where ranks meet
    with tempfile.TemporaryDirectory(prefix="caged-ranks-") as said:
        files = [(Path(said) / f"rank{rank}").open("w+", errors="replace") for rank in range(1, devices)]
        streams: list[IO[str] | None] = [None, *files]
        ranks = [_started(rank, devices, store.port, arguments, stream) for rank, stream in enumerate(streams)]
        try:
            with _passing_ctrl_c_to(ranks[0]) as passed_on:
                failed = _watch(ranks)
                codes = _end(ranks) if failed else [0] * devices
        finally:
            for rank in ranks:
                rank.kill()
                rank.wait()
            words = [_last_line(file) for file in files]
            for file in files:
                file.close()
    if passed_on and codes[0] == -signal.SIGINT:  # before it could hear of a polite end
        return INTERRUPTED
    return _verdict(failed, codes, ["", *words], folder)


def _started(rank: int, size: int, port: int, arguments: Sequence[str], said: IO[str] | None) -> Process:
    """In a session of its own, so that Ctrl-C reaches the launcher alone. The first rank has its stdout and stderr."""
    environment = {
        **os.environ,
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(size),
        "LOCAL_WORLD_SIZE": str(size),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "TORCHELASTIC_USE_AGENT_STORE": "True",  # ranks meet at a store that is there already
        "TORCHELASTIC_RESTART_COUNT": "0",
        LAUNCHED: "1",
    }
    if Path("/sys/class/net/lo").exists():
        environment.setdefault("GLOO_SOCKET_IFNAME", "lo")  # all ranks are on this machine
    return subprocess.Popen(
        [sys.executable, "-m", "caged", *arguments],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=None if said is None else subprocess.DEVNULL,
        stderr=said,
        start_new_session=True,
    )


@contextmanager
def _passing_ctrl_c_to(first: Process) -> Iterator[list[int]]:
    """What was passed on so far."""
    passed_on: list[int] = []

    def pass_on(signum: int, frame: FrameType | None) -> None:
        passed_on.append(signum)
        first.send_signal(signum)

    before = signal.signal(signal.SIGINT, pass_on)
    try:
        yield passed_on
    finally:
        signal.signal(signal.SIGINT, before)


def _watch(ranks: Sequence[Process]) -> dict[int, int]:
    """Wait for all ranks to end well, or for the first that do not; the exit codes of those."""
    while True:
        codes = [rank.poll() for rank in ranks]
        failed = {rank: code for rank, code in enumerate(codes) if code}
        if failed or all(code == 0 for code in codes):
            return failed
        time.sleep(POLL)


def _end(ranks: Sequence[Process]) -> list[int | None]:
    """Let the first rank write down what happened, then end all; the exit codes before that."""
    deadline = time.monotonic() + GRACE
    while ranks[0].poll() is None and time.monotonic() < deadline:
        time.sleep(POLL)
    return [rank.poll() for rank in ranks]


def _verdict(failed: Mapping[int, int], codes: Sequence[int | None], words: Sequence[str], folder: Path) -> int:
    """The exit code of the run where the first rank said what there is to say; an error otherwise."""
    killed = [rank for rank, code in failed.items() if code < 0]
    first = codes[0]
    if not killed and first is not None and first >= 0 and first != LOST:
        return first
    broken = killed or [rank for rank, code in enumerate(codes) if code not in (None, 0, LOST)]
    size = len(codes)
    if not broken:
        what = f"the {size} ranks lost each other"
    elif killed:
        what = f"rank {broken[0]} of {size} was killed by {_signal_name(failed[broken[0]])}"
    else:
        what = f"rank {broken[0]} of {size} ended: {words[broken[0]] or f'exit code {codes[broken[0]]}'}"
    if RunFolder.is_one(folder):
        how = f"continue with: caged train --resume {shlex.quote(str(folder))} --devices {size}"
    else:
        how = "the run had not begun, start it again"
    raise RunError(f"{what}; {how}")


def _signal_name(code: int) -> str:
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def _last_line(said: IO[str]) -> str:
    said.seek(0)
    lines = [line.strip() for line in said.read().splitlines() if line.strip()]
    return lines[-1].removeprefix("error: ") if lines else ""
