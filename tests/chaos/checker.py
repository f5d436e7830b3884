"""The checker. It knows the schedules, what the nemesis did, what clients were promised, and what the children wrote
down themselves. From the ledger it takes claims, and believes none of them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from tests.chaos.coverage import idle, uncovered
from tests.chaos.exclusion import crowded, hasty, overlapping
from tests.chaos.history import History, Problem
from tests.chaos.punctuality import late
from tests.chaos.truth import baseless_attempts, broken_promises, doubled, false_statuses, misplaced, outliving


@dataclass
class Verdict:
    problems: list[Problem]
    figures: Counter[str]

    @property
    def clean(self) -> bool:
        return not self.problems


def check(history: History, *, punctual: bool = False) -> Verdict:
    """`punctual`: also what began late is a problem, for a machine that has nothing else to do."""
    figures: Counter[str] = Counter()
    problems = [
        *uncovered(history, figures),
        *doubled(history),
        *overlapping(history, figures),
        *crowded(history, figures),
        *hasty(history, figures),
        *false_statuses(history, figures),
        *baseless_attempts(history),
        *misplaced(history),
        *broken_promises(history, figures),
        *outliving(history),
        *(problem for problem in late(history, figures) if punctual),
        *(Problem(what, at=at) for at, what in history.log.complaints),
    ]
    return Verdict(problems + idle(figures), figures)
