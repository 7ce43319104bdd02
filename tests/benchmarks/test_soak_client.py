"""The client of the soak test asks everything once, reads answers in any pieces, and sees what goes wrong."""

from __future__ import annotations

import asyncio
import json

from benchmarks.soak_client import Tally, fire
from benchmarks.soak_questions import Question, Wanted, post

BODY = json.dumps({"version": "aa", "items": [{"item_id": 1, "score": 0.5, "title": "Item 1"}]}).encode()
BODY = BODY.replace(b": ", b":")
WRONG = BODY.replace(b"0.5", b"0.6")


def good(path: str) -> Question:
    return Question("known", post(path, {}), 200, {"aa": [Wanted([1], [0.5], 1)]})


ANSWERS = {
    "/right": (b"200 OK", b"", BODY),
    "/wrong": (b"200 OK", b"", WRONG),
    "/error": (b"503 No", b"", b"{}"),
    "/bad": (b"422 No", b"", b"{}"),
    "/closes": (b"413 No", b"Connection: close\r\n", b"{}"),
}


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """In two pieces, the first of which ends in the middle of the body."""
    while True:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(2)
        except asyncio.IncompleteReadError:
            break
        path = head.split()[1].decode()
        if path == "/hangs-up":
            break
        status, more, body = ANSWERS[path]
        answer = b"HTTP/1.1 %b\r\ncontent-length: %d\r\n%b\r\n%b" % (status, len(body), more, body)
        writer.write(answer[:-1])
        await writer.drain()
        await asyncio.sleep(0)
        writer.write(answer[-1:])
    writer.close()


def asked(questions: list[Question], times: int) -> Tally:
    tally = Tally()

    async def run() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        address = server.sockets[0].getsockname()
        async with server:
            turns = [place for place in range(len(questions)) for _ in range(times)]
            await asyncio.wait_for(fire(address, questions, turns, tally, width=3), 20)

    asyncio.run(run())
    return tally


def test_all_is_asked_and_what_is_right_is_right() -> None:
    bad = [Question("bad", post(path, {}), status, {}) for path, status in (("/bad", 422), ("/closes", 413))]
    given_up = Question("given up", post("/right", {})[:-1], 0, {})
    tally = asked([good("/right"), *bad, given_up], 10)
    assert dict(tally.kinds) == {"known": 10, "bad": 20, "given up": 10}
    assert (tally.wrong, tally.errors, tally.bad_otherwise, tally.examples) == (0, 0, 0, [])
    assert dict(tally.versions) == {"aa": 10}
    assert len(tally.seconds) == 10


def test_what_goes_wrong_is_counted_and_shown() -> None:
    tally = asked([good("/wrong"), good("/error"), good("/hangs-up"), Question("bad", post("/bad", {}), 404, {})], 2)
    assert (tally.wrong, tally.errors, tally.bad_otherwise) == (2, 4, 2)
    assert len(tally.examples) == 5
