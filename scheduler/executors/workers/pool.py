"""A pool of worker processes of one kind: empty until needed, reused, shrinking when idle."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Mapping

from scheduler.core.children import ChildExit, Children, ChildSpec
from scheduler.core.errors import SchedulerError
from scheduler.executors.attempts.anonymous import anonymous_file
from scheduler.executors.workers.channels import Channel, Channels
from scheduler.executors.workers.roster import PATIENCE, Roster
from scheduler.executors.workers.wire import CLOSED_OURS, Message
from scheduler.executors.workers.worker import Answer, Place, Task, Worker, argv, meaning

IDLE_FOR = 60.0
"""Seconds after which a worker without a task is let go."""
_CLOSING = 5.0
_STUCK = "it did not end a task that it was asked to end"
_CLOSED = f"{CLOSED_OURS} and went on"

Calls = list[Callable[[], None]]


class Pool:
    """Carries out tasks in workers that the owner of child processes owns, `per_worker` at once in each.

    With `per_worker` 1 a task is ended by ending its worker; with more, by asking the worker, and by ending it if it
    does not obey within the `kill_after` of the task (5 s at least): its other tasks are lost then. Any thread may call
    any method.
    """

    def __init__(
        self,
        kind: str,
        children: Children,
        environment: Mapping[str, str],
        *,
        per_worker: int,
        most: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._kind = kind
        self._children = children
        self._environment = environment
        self._one_each = per_worker == 1
        self._most = most
        self._clock = clock
        self._channels = Channels()
        self._roster = Roster(kind, per_worker, clock)
        self._looking: set[Place] = set()
        """Where somebody waits, and will soon be looked after."""
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """Living worker processes."""
        return len(self._roster.workers)

    def submit(self, task: Task) -> None:
        """Hand the task to a worker that has room for it, or to a new one, as soon as there is one."""
        with self._lock:
            self._roster.wait(task)
        self._go_on(task.place)

    def say(self, run: str, message: Message) -> None:
        """A further message for the worker that has the task of this run; nobody hears it if none has."""
        with self._lock:
            found = self._roster.find(run)
            if found is not None and found[0].channel is not None:
                found[0].channel.send(message)

    def end(self, run: str, why: str) -> None:
        """End the task of this run, if it is still there."""
        with self._lock:
            found = self._roster.find(run)
            waiting = self._roster.withdraw(run) if found is None else None
            if found is not None:
                worker, task = found
                if task.why is not None:
                    return
                self._ask_to_end(worker, task, why)
        if waiting is not None:
            waiting.finish(Answer(why=why, begun=False))
        elif found is not None and self._one_each:
            self._children.end(worker.name, why, task.kill_after)

    def tick(self, now: float) -> int:
        """Let idle workers go, end those that do not obey; how many. `now` is of the pool's clock."""
        with self._lock:
            idle = self._roster.idle(now - IDLE_FOR)
            for worker in idle:
                worker.retiring = True
            stuck = self._roster.stuck(now)
            for worker in stuck:
                worker.retiring = True
                worker.ended = _STUCK if worker.overdue_at is None else _CLOSED
            places = self._roster.places()
        for worker in idle:
            self._let_go(worker)
        for worker in stuck:
            self._children.end(worker.name, "stuck", 0.0)
        for place in places:
            self._go_on(place)
        return len(idle) + len(stuck)

    def close(self) -> None:
        """Let all workers go; tasks that they still have are finished as their processes end."""
        with self._lock:
            workers = list(self._roster.workers)
            for worker in workers:
                worker.retiring = True
            waiting = self._roster.withdraw_all()
        for task in waiting:
            task.finish(Answer(busy="the daemon is stopping", begun=False))
        for worker in workers:
            self._let_go(worker)
        self._channels.close()

    # ------------------------------------------------------------ workers

    def _go_on(self, place: Place) -> None:
        """Hands out what waits there, as far as there are workers with room or new ones can be started."""
        while True:
            with self._lock:
                assigned = self._roster.assign(place)
                if assigned is None:
                    if place in self._roster.places() and place not in self._looking:
                        self._looking.add(place)
                        self._channels.call_later(PATIENCE, lambda: self._look(place))
                    return
                worker, task = assigned
                fresh = worker.channel is None and len(worker.tasks) == 1
                if fresh:
                    self._make_room()
                elif worker.channel is not None:
                    worker.channel.send(task.message)
            if fresh:
                self._launch(worker, task)

    def _look(self, place: Place) -> None:
        with self._lock:
            self._looking.discard(place)
        self._go_on(place)

    def _ask_to_end(self, worker: Worker, task: Task, why: str) -> None:
        task.why = why
        if self._one_each:
            worker.retiring = True
            return
        # Its neighbours pay for a worker that is ended, so it gets a moment in any case.
        task.give_up_at = self._clock() + max(task.kill_after, _CLOSING)
        if worker.channel is not None:
            worker.channel.send({"do": "end", "run": task.run})

    def _make_room(self) -> None:
        """Idle workers of other places give way before there are more than `most`."""
        excess = len(self._roster.workers) - self._most
        for worker in self._roster.idle()[: max(0, excess)]:
            worker.retiring = True
            self._let_go(worker)

    def _let_go(self, worker: Worker) -> None:
        if worker.channel is not None:
            worker.channel.close()

    def _launch(self, worker: Worker, task: Task) -> None:
        try:
            channel = self._started(worker, task)
        except (SchedulerError, OSError) as error:
            self._over(worker, Answer(busy=f"no worker process could be started: {error}", begun=False))
            return
        with self._lock:
            worker.channel = channel
            waiting = list(worker.tasks.values())
            for one in waiting:
                channel.send(one.message)
                if one.why is not None:
                    channel.send({"do": "end", "run": one.run})
        if self._one_each:
            # Asked to end while it was being started: there was nothing to end yet.
            for one in waiting:
                if one.why is not None:
                    self._children.end(worker.name, one.why, one.kill_after)

    def _started(self, worker: Worker, task: Task) -> Channel:
        """Our end of the channel of its process, which may not be there yet. Nothing is left open by an error but the
        worker's own files."""
        spec = ChildSpec(
            run=worker.name,
            attempt=0,
            node=task.node,
            argv=argv(self._kind, worker.place),
            cwd=worker.place.cwd,
            env=self._environment,
            kill_after=_CLOSING,
            limits=worker.place.limits,
        )
        worker.words = anonymous_file()
        ours, theirs = socket.socketpair()
        channel = self._channels.attach(ours, lambda said: self._heard(worker, said), lambda: self._closed(worker))
        with theirs:
            try:
                listener = _Listener(self, worker)
                words = worker.words.fileno()
                self._children.start(spec, listener, output_fd=words, channel_fd=theirs.fileno())
            except (SchedulerError, OSError):
                channel.close()
                raise
        return channel

    # ------------------------------------------------------------ what workers say

    def _heard(self, worker: Worker, said: Message) -> None:
        with self._lock:
            self._roster.heard(worker)
            task = worker.tasks.get(said.get("run", ""))
        if task is not None and "say" in said:
            if task.heard is not None:
                task.heard(said)
            return
        if task is not None:
            self._answered(worker, task, said)
        self._go_on(worker.place)

    def _answered(self, worker: Worker, task: Task, said: Message) -> None:
        with self._lock:
            left = bool(said.get("threads") or said.get("processes"))
            stale = bool(said.get("stale"))
            if self._one_each and (task.why is not None or left or stale):
                # What it means is settled when the process is gone.
                task.answer = said
                worker.retiring = True
            else:
                self._roster.forget(worker, task)
        if self._one_each and (task.why is not None or left or stale):
            if task.why is None:
                self._children.end(worker.name, "leftovers", task.kill_after)
        elif said.get("ended"):
            task.finish(Answer(why=task.why or "cancel"))
        else:
            task.finish(Answer(message=said))

    def _closed(self, worker: Worker) -> None:
        """Its end of the channel is closed: it is about to exit, and has to within `_CLOSING` seconds.

        Ending it at once would pass for the reason of an exit that is on its way."""
        with self._lock:
            worker.retiring = True
            if worker.overdue_at is None:
                worker.overdue_at = self._clock() + _CLOSING

    def _exited(self, worker: Worker, ended: ChildExit) -> None:
        finished: list[tuple[Task, Answer]] = []
        words = worker.last_words()
        self._children.settled(worker.name, 0)
        with self._lock:
            for task in list(worker.tasks.values()):
                self._roster.forget(worker, task)
                if task.answer is not None and task.answer.get("stale") and task.why is None:
                    task.answer = None
                    self._roster.wait(task)
                else:
                    finished.append((task, meaning(worker, task, ended, words)))
            self._remove(worker)
        for task, answer in finished:
            task.finish(answer)
        self._go_on(worker.place)

    def _over(self, worker: Worker, answer: Answer) -> None:
        """The same end for everything that the worker had."""
        with self._lock:
            tasks = list(worker.tasks.values())
            for task in tasks:
                self._roster.forget(worker, task)
            self._remove(worker)
        for task in tasks:
            task.finish(Answer(why=task.why, begun=answer.begun) if task.why is not None else answer)

    def _remove(self, worker: Worker) -> None:
        self._roster.remove(worker)
        if worker.channel is not None:
            worker.channel.close()
        if worker.words is not None:
            worker.words.close()


class _Listener:
    """Hears how a worker's process ends."""

    def __init__(self, pool: Pool, worker: Worker) -> None:
        self._pool = pool
        self._worker = worker

    def refused(self, why: str) -> None:
        self._pool._over(self._worker, Answer(busy=f"no worker process could be started: {why}", begun=False))
        self._pool._go_on(self._worker.place)

    def failed(self, error: str) -> None:
        self._pool._over(self._worker, Answer(failed=error, begun=False))
        self._pool._go_on(self._worker.place)

    def exited(self, ended: ChildExit) -> None:
        self._pool._exited(self._worker, ended)

    def lost(self, error: str) -> None:
        self._pool._over(self._worker, Answer(lost=error))
        self._pool._go_on(self._worker.place)
