"""`POST /v1/rates/{queue}/take`: a token of a queue's rate, for a call that a run makes itself."""

from __future__ import annotations

import asyncio
import math
from collections import defaultdict

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from scheduler.core.access import Access
from scheduler.web.answers import Answer, Problem
from scheduler.web.backend import Backend, backend_of
from scheduler.web.fields import Body
from scheduler.web.inputs import plain_name
from scheduler.web.operation import Operation
from scheduler.web.parameters import Number
from scheduler.web.shapes import NUMBER, TEXT, record

LONGEST_WAIT = 60
WAIT = Number("wait", "Wait so many seconds for a token.", 0, 0, LONGEST_WAIT)
NOTHING = Body(())


class Lines:
    """Who waits for tokens, queue by queue, in the order in which they came. Used from one event loop."""

    def __init__(self) -> None:
        self._lines: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._waiting: defaultdict[str, int] = defaultdict(int)

    async def take(self, backend: Backend, queue: str, end: float) -> float | None:
        """None: a token was taken before `end` (of the loop's clock); else the seconds after which it is worth asking
        again."""
        loop = asyncio.get_running_loop()
        self._waiting[queue] += 1
        try:
            async with asyncio.timeout_at(max(end, loop.time() + 0.001)) as limit:
                async with self._lines[queue]:
                    limit.reschedule(None)  # First in line: from here on this one knows how long it takes.
                    while True:
                        left = await run_in_threadpool(backend.commands.take_token, queue)
                        if left is None or loop.time() + left > end:
                            return left
                        await asyncio.sleep(left)
        except TimeoutError:
            return 1.0
        finally:
            self._waiting[queue] -= 1
            if not self._waiting[queue]:
                del self._waiting[queue], self._lines[queue]


async def take_token(request: Request) -> Answer:
    """Takes one token; 429 with `Retry-After` if there is none in time. Those who wait are served in their order."""
    queue = plain_name(request.path_params["queue"])
    wait = WAIT.read(request)
    await NOTHING.read(request)
    lines: Lines = request.app.state.lines
    loop = asyncio.get_running_loop()
    begun = loop.time()
    left = await lines.take(backend_of(request), queue, begun + wait)
    if left is not None:
        after = max(1, math.ceil(left))
        return Problem(
            429,
            f"queue {queue} has no token left",
            hint=f"ask again in {after} s, or wait for one: ?wait=30",
            headers={"Retry-After": str(after)},
        )
    return Answer({"queue": queue, "waited_s": round(loop.time() - begun, 3)})


operations = [
    Operation(
        "POST",
        "/v1/rates/{queue}/take",
        take_token,
        Access.OPERATE,
        record(queue=TEXT, waited_s=NUMBER),
        query=(WAIT,),
        body=NOTHING,
    )
]
