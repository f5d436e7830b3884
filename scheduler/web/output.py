"""What a run has printed, wherever that is: in the database, or still with the node that runs it."""

from __future__ import annotations

from scheduler.core.errors import NotFound
from scheduler.core.model import ELSEWHERE, Output, Status
from scheduler.core.queries import RunDetail
from scheduler.core.value_object import value_object
from scheduler.web.backend import Backend


@value_object
class Printed:
    """Of one attempt; `running`: more may follow. No output: it wrote nothing, or nothing is
    known of it (yet, or any more)."""

    detail: RunDetail
    attempt: int
    output: Output | None
    running: bool


def printed(backend: Backend, run: str, attempt: int | None = None) -> Printed:
    """Of that attempt, or of the last one of which it is known (Queries.output). Raises NotFound."""
    with backend.readable.queries() as queries:
        detail = queries.run(run)
        if detail is None:
            raise NotFound(f"there is no run `{run}`")
        output = queries.output(run, attempt)
    if attempt is not None and attempt > max(detail.run.attempt, 1):
        raise NotFound(f"run {run} has no attempt {attempt}", hint=f"it has {detail.run.attempt}")
    live = None
    here = detail.run.status is Status.RUNNING and detail.run.node != ELSEWHERE
    if here and attempt in (None, detail.run.attempt):
        live = backend.live_output(run, detail.run.attempt)
        output = live if live is not None or output is None or output.attempt == detail.run.attempt else None
    number = attempt or (output.attempt if output is not None else max(detail.run.attempt, 1))
    running = detail.run.status is Status.RUNNING and number == detail.run.attempt
    return Printed(detail, number, output, running)


def cut(output: Output | None, offset: int) -> tuple[bytes, int]:
    """What the output holds from `offset` on, and the offset after it."""
    parts = segments(output, offset)
    return b"".join(part for part, _ in parts), parts[-1][1] if parts else offset


def segments(output: Output | None, offset: int) -> list[tuple[bytes, int]]:
    """The same in pieces, each with the offset after it: the beginning, a line that says how many bytes are left out,
    the end."""
    if output is None:
        return []
    head_end = len(output.head)
    tail_start = head_end + output.omitted
    end = tail_start + len(output.tail)
    parts = []
    if offset < head_end:
        parts.append((output.head[offset:], head_end))
    if max(offset, head_end) < tail_start:
        left_out = tail_start - max(offset, head_end)
        parts.append((f"\n[… {left_out} bytes left out …]\n".encode(), tail_start))
    if offset < end and output.tail:
        parts.append((output.tail[max(0, offset - tail_start) :], end))
    return parts
