"""The ranks of a run: whether this process is one, which devices they get, and starting them on one machine.

`caged train --devices 4` starts four processes of the same command and watches them. `torchrun` does so too; a rank
sees no difference: both say in the environment who it is (RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT).
"""

from __future__ import annotations

import os
import re
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
from functools import partial
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
from caged.signals import ENDED_BY, heard

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
        if "RANK" not in environment:
            return None
        size = _whole_number("WORLD_SIZE", environment, least=1, default=1)
        if size == 1:
            return None
        rank = _whole_number("RANK", environment, below=size)
        local_size = _whole_number("LOCAL_WORLD_SIZE", environment, least=1, default=size)
        local_rank = _whole_number("LOCAL_RANK", environment, below=local_size, default=rank)
        if not environment.get("MASTER_ADDR"):
            raise _no_rank("MASTER_ADDR", environment, "the address of the first rank")
        _whole_number("MASTER_PORT", environment, least=1, below=2**16)
        return cls(rank, size, local_rank, local_size, launched=LAUNCHED in environment)


def _whole_number(
    name: str, environment: Mapping[str, str], *, least: int = 0, below: int = 2**31, default: int | None = None
) -> int:
    """One of the variables that say who a rank is."""
    if default is not None and name not in environment:
        return default
    text = environment.get(name, "")
    if not re.fullmatch("[0-9]{1,10}", text) or not least <= int(text) < below:
        raise _no_rank(name, environment, f"a whole number from {least} to {below - 1}")
    return int(text)


def _no_rank(name: str, environment: Mapping[str, str], allowed: str) -> ConfigError:
    """Schedulers set some of the variables for purposes of their own."""
    seen = f"is '{environment[name][:40]}'" if name in environment else "is not set"
    return ConfigError(
        f"RANK and WORLD_SIZE are set in the environment, as for one of several processes that train together, but "
        f"{name} {seen}; it must be {allowed}; unset RANK and WORLD_SIZE to train with one process or with --devices, "
        f"or let torchrun set all of them"
    )


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
def columns_of(place: Place | None, spec: ExperimentSpec, folder: Path) -> Iterator[Columns]:
    """The columns that this process trains, connected with the other ranks where there are any."""
    if place is None:
        yield WHOLE
        return
    from caged.training.columns import connected  # torch.distributed is not needed otherwise

    device = resolve_device(spec.device)
    if device.type == "cuda":
        torch.cuda.set_device(place.local_rank % torch.cuda.device_count())
    go_on = partial(_how_to_go_on, folder, place)
    with connected(spec.config.embedding_size, device, place.local_size, go_on=go_on) as columns:
        yield columns


def resume_command(folder: Path, place: Place | None) -> str:
    """What goes on with the run in `folder` on as many processes as it had."""
    command = f"caged train --resume {shlex.quote(str(folder))}"
    if place is None:
        return command
    if place.launched:
        return f"{command} --devices {place.size}"
    machines = "" if place.size == place.local_size else f"--nnodes {place.size // place.local_size} ... "
    return f"torchrun {machines}--nproc-per-node {place.local_size} -m {command}"


def _how_to_go_on(folder: Path, place: Place) -> str:
    """After some rank was lost."""
    if not RunFolder.is_one(folder):
        return "the run had not begun, start it again"
    return f"continue with: {resume_command(folder, place)}"


# ---------------------------------------------------------------- being one of several


def begin_rank(place: Place, *, verbose: bool) -> None:
    """Only the first rank speaks; who was launched ends with its launcher; who follows leaves Ctrl-C to the first."""
    if place.launched:
        threading.Thread(target=_end_with_launcher, daemon=True).start()
    if place.launched or not place.first:  # where a whole group is told to end, its launcher tells the first rank
        for which in ENDED_BY:
            signal.signal(which, signal.SIG_IGN)
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

    A rank that dies ends the others, and an error says which it was and how to go on with the run in `folder`. Whatever
    asks this process to end is Ctrl-C to the first rank.
    """
    from torch.distributed import TCPStore  # type: ignore[attr-defined]  # it is not in __all__

    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)  # a free port, where ranks meet
    with _ends_first_rank() as asked, tempfile.TemporaryDirectory(prefix="caged-ranks-") as said:
        files = [(Path(said) / f"rank{rank}").open("w+", errors="replace") for rank in range(1, devices)]
        streams: list[IO[str] | None] = [None, *files]
        ranks: list[Process] = []
        try:
            for number, stream in enumerate(streams):
                ranks.append(_started(number, devices, store.port, arguments, stream))
            asked.tell(ranks[0])
            failed = _watch(ranks)
            codes = _end(ranks) if failed else [0] * devices
        finally:
            for rank in ranks:
                rank.kill()
                rank.wait()
            words = [_last_line(file) for file in files]
            for file in files:
                file.close()
    if asked and any(-code in (signal.SIGINT, *ENDED_BY) for code in failed.values()):  # before it could end politely
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


class _Asked:
    """Whether this process was asked to end; the first rank is told each time, as soon as there is one."""

    def __init__(self) -> None:
        self._times = 0
        self._first: Process | None = None

    def __bool__(self) -> bool:
        return self._times > 0

    def __call__(self, signum: int, frame: FrameType | None) -> None:
        self._times += 1
        if self._first is not None:
            self._first.send_signal(signal.SIGINT)

    def tell(self, first: Process) -> None:
        self._first = first
        if self:
            first.send_signal(signal.SIGINT)


@contextmanager
def _ends_first_rank() -> Iterator[_Asked]:
    """Ctrl-C and other requests to end do not end this process before its ranks."""
    asked = _Asked()
    before = {which: signal.signal(which, asked) for which in (signal.SIGINT, *heard(ENDED_BY))}
    try:
        yield asked
    finally:
        for which, handler in before.items():
            signal.signal(which, handler)


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
    raise RunError(f"{what}; {_how_to_go_on(folder, Place(0, size, 0, size, launched=True))}")


def _signal_name(code: int) -> str:
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def _last_line(said: IO[str]) -> str:
    said.seek(0)
    lines = [line.strip() for line in said.read().splitlines() if line.strip()]
    return lines[-1].removeprefix("error: ") if lines else ""
