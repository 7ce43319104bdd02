"""Headless Chromium, driven through its DevTools protocol over a pipe: no further package, no port, no network."""

from __future__ import annotations

import base64
import itertools
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
# The protocol speaks on descriptors 3 and 4; first out of their way, should they be among the two that are given.
LAUNCHER = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
os.dup2(ends[0], 3), os.dup2(ends[1], 4)
os.execvp(sys.argv[3], sys.argv[3:])
"""
SECONDS = 60.0  # a loaded machine starts a browser slowly


def installed() -> str | None:
    """The browser of this machine, or None; CHROMIUM names another."""
    named = os.environ.get("CHROMIUM")
    return named or next((found for name in NAMES if (found := shutil.which(name))), None)


class Browser:
    """One browser with one page; `events` is what it reported since the page was opened."""

    def __init__(self, program: str) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="caged-browser-")
        commands_out, commands_in = os.pipe()
        answers_out, answers_in = os.pipe()
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run"]
        options += ["--disable-dev-shm-usage", f"--user-data-dir={self._folder.name}"]
        pipe_ends = [str(commands_out), str(answers_in)]
        self._process = subprocess.Popen(
            [sys.executable, "-c", LAUNCHER, *pipe_ends, program, *options, "about:blank"],
            pass_fds=(commands_out, answers_in),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(commands_out)
        os.close(answers_in)
        self._in, self._out = commands_in, answers_out
        self._numbers = itertools.count(1)
        self._pending = b""
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        page = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Log", "Runtime", "Accessibility"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._in)
        os.close(self._out)
        shutil.rmtree(self._folder.name, ignore_errors=True)  # the browser's helpers may still be writing
        self._folder._finalizer.detach()  # type: ignore[attr-defined]

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._in, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == number:
                assert "error" not in answer, (method, answer["error"])
                result: dict[str, Any] = answer["result"]
                return result

    def open(self, page: Path | str, *, width: int = 1000, height: int = 900, dark: bool = False) -> None:
        """Load a file or an address and wait until it is there."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.events.clear()
        self.call("Page.navigate", url=page if isinstance(page, str) else page.resolve().as_uri())
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self._next()

    def evaluate(self, expression: str, *, wait: bool = False) -> Any:
        """The value of an expression; with `wait` that of the promise it is."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=wait)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def press(self, key: str, code: int) -> None:
        text = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **text)

    def screenshot(self, target: Path) -> None:
        """The whole page as a picture, for people to look at."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)["data"]
        target.write_bytes(base64.b64decode(data))

    def _next(self) -> dict[str, Any]:
        """The next message; events are kept as well."""
        until = time.monotonic() + SECONDS
        while b"\0" not in self._pending:
            ready, _, _ = select.select([self._out], [], [], max(0.0, until - time.monotonic()))
            chunk = os.read(self._out, 1 << 20) if ready else b""
            if not chunk:
                raise TimeoutError("the browser does not answer")
            self._pending += chunk
        content, _, self._pending = self._pending.partition(b"\0")
        message: dict[str, Any] = json.loads(content)
        if "method" in message:
            self.events.append(message)
        return message
