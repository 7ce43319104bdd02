"""A web server on this machine that behaves as badly as a test wants it to."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Answer = Callable[[BaseHTTPRequestHandler], None]


class Site:
    """Answers by path, one after the other, the last of them for ever; and the requests that came."""

    def __init__(self) -> None:
        self.answers: dict[str, list[Answer]] = {}
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.closing = threading.Event()  # wakes up whoever stalls
        self.address = ""

    def on(self, path: str, *answers: Answer) -> str:
        self.answers[path] = list(answers)
        return self.address + path

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        self.requests.append((handler.path, dict(handler.headers.items())))
        planned = self.answers.get(handler.path)
        if not planned:
            handler.send_error(404)
            return
        (planned.pop(0) if len(planned) > 1 else planned[0])(handler)

    # ------------------------------------------------------------ ways to answer

    def whole(self, content: bytes, **headers: str) -> Answer:
        def answer(handler: BaseHTTPRequestHandler) -> None:
            _start(handler, 200, len(content), headers)
            handler.wfile.write(content)

        return answer

    def truncated(self, content: bytes, sent: int, **headers: str) -> Answer:
        """Promises everything, sends `sent` bytes, hangs up."""

        def answer(handler: BaseHTTPRequestHandler) -> None:
            _start(handler, 200, len(content), headers)
            handler.wfile.write(content[:sent])

        return answer

    def stalled(self, content: bytes, sent: int, **headers: str) -> Answer:
        """Sends `sent` bytes and then nothing, without hanging up."""

        def answer(handler: BaseHTTPRequestHandler) -> None:
            _start(handler, 200, len(content), headers)
            handler.wfile.write(content[:sent])
            handler.wfile.flush()
            self.closing.wait(20)

        return answer

    def silent(self) -> Answer:
        """Does not even answer."""

        def answer(handler: BaseHTTPRequestHandler) -> None:
            self.closing.wait(20)

        return answer

    def slow(self, content: bytes, pieces: int, pause: float) -> Answer:
        def answer(handler: BaseHTTPRequestHandler) -> None:
            _start(handler, 200, len(content), {})
            size = -(-len(content) // pieces)
            for start in range(0, len(content), size):
                handler.wfile.write(content[start : start + size])
                handler.wfile.flush()
                self.closing.wait(pause)

        return answer

    def rest(self, content: bytes, start: int, **headers: str) -> Answer:
        """A partial answer from `start` on."""

        def answer(handler: BaseHTTPRequestHandler) -> None:
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
            _start(handler, 206, len(content) - start, headers)
            handler.wfile.write(content[start:])

        return answer

    def chunked(self, content: bytes, *, complete: bool = True) -> Answer:
        """Without a length; incomplete, it breaks off inside of a chunk."""

        def answer(handler: BaseHTTPRequestHandler) -> None:
            handler.protocol_version = "HTTP/1.1"
            handler.send_response(200)
            handler.send_header("Transfer-Encoding", "chunked")
            handler.send_header("Connection", "close")
            handler.end_headers()
            handler.wfile.write(f"{len(content):x}\r\n".encode())
            handler.wfile.write(content + b"\r\n0\r\n\r\n" if complete else content[: len(content) // 2])

        return answer

    def status(self, code: int) -> Answer:
        return lambda handler: handler.send_error(code)

    def redirect(self, location: str, code: int = 302) -> Answer:
        return lambda handler: _start(handler, code, 0, {"Location": location})


def _start(handler: BaseHTTPRequestHandler, code: int, length: int, headers: dict[str, str]) -> None:
    handler.send_response(code)
    for name, value in {"Content-Length": str(length), **headers}.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up on a stalling server is what these tests are about."""


@contextmanager
def serving() -> Iterator[Site]:
    site = Site()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            site.answer(self)

        def log_message(self, *_: object) -> None:
            pass

    with _Server(("127.0.0.1", 0), Handler) as server:
        site.address = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield site
        finally:
            site.closing.set()
            server.shutdown()
            thread.join()
