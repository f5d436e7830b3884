"""A process that sends the messages of one order and ends: what it takes of memory, and what a service does to it, is
not the daemon's."""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import TextIO

from scheduler.core.channel import Answer, Message
from scheduler.observe.channels.order import Sender, Target, answer_json, messages_of
from scheduler.observe.channels.registry import sender


def main() -> int:
    """One order on standard input; one answer per message on standard output, until the channel falls silent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # What libraries print is no answer.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    order = json.loads(sys.stdin.readline())
    target = Target(order["options"], order["secrets"])
    try:
        send = sender(order["kind"])
    except ImportError as error:
        _say(answers, Answer(False, f"this installation lacks a part: {error}; install schedulerd anew"))
        return 1
    for message in messages_of(order):
        answer = _sent(send, target, message)
        _say(answers, answer)
        if answer.silent:
            break
    return 0


def _sent(send: Sender, target: Target, message: Message) -> Answer:
    try:
        return send(target, message)
    except Exception as error:  # a service's plug-in is a stranger
        return Answer(False, f"{type(error).__name__}: {error}")


def _say(answers: TextIO, answer: Answer) -> None:
    print(json.dumps(answer_json(answer)), file=answers, flush=True)


if __name__ == "__main__":
    sys.exit(main())
