"""How a server behaves, whatever it serves."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field

from caged.errors import ConfigError
from caged.products.serve.requests import Limits

SHORTEST_KEY = 16  # characters


@dataclass(frozen=True)
class Settings:
    key: str | None = None  # None: no key is asked for
    limits: Limits = field(default_factory=Limits)
    threads: int = 2  # that answer at the same time
    queue: int = 64  # requests that may wait for a thread; more are told to come back
    timeout_s: float = 10.0  # for the body of a request to arrive, and for its answer
    public_paths: tuple[str, ...] = ("/healthz", "/readyz")  # answered without a key
    access_log: bool = False  # a line of JSON on stdout for every request

    def __post_init__(self) -> None:
        if self.key is not None and (len(self.key) < SHORTEST_KEY or not self.key.isascii()):
            raise ConfigError(f"the API key is too easy to guess; take at least {SHORTEST_KEY} ASCII characters")
        for name, value, least in (("threads", self.threads, 1), ("queue", self.queue, 0)):
            if value < least:
                raise ConfigError(f"{name} is {value}; it must be {least} or more")
        if not self.timeout_s > 0:
            raise ConfigError(f"the timeout is {self.timeout_s}; it must be above 0 seconds")


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a server that is bound to `host`.

    >>> [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "example.org")]
    [True, True, True, False, False]
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_reachable(host: str, settings: Settings) -> None:
    """Whoever others can reach asks for a key."""
    if settings.key is None and not is_loopback(host):
        raise ConfigError(
            f"{host} can be reached from other machines, so an API key is needed; set CAGED_API_KEY or --key-file, or "
            f"bind to 127.0.0.1"
        )
