"""Checks 500 pages; some fail. The report is made of the others, and its result lists those that failed.

The pages are made up, so that the sample needs no network: 30 of them answer with an error.
"""

import json
import os
import sys
import time

PAGES = [f"/products/{number}" for number in range(1, 501)]
TOO_MANY = len(PAGES) // 2


def check(page: str) -> str | None:
    """What is wrong with the page; None if it is fine."""
    time.sleep(0.01)
    number = int(page.rpartition("/")[2])
    if number % 17 != 3:
        return None
    return "503 Service Unavailable" if number % 2 else "the title is missing"


def report(**line: object) -> None:
    """Appends a line to the report file of the run, if there is one."""
    path = os.environ.get("SCHED_REPORT_FILE")
    if path:
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def main() -> int:
    failed = {}
    for count, page in enumerate(PAGES, 1):
        problem = check(page)
        if problem is not None:
            failed[page] = problem
            print(f"{page}: {problem}", file=sys.stderr)
        if count % 25 == 0:
            report(progress=100 * count // len(PAGES), message=f"{count} pages, {len(failed)} failed")
    summary = {"pages": len(PAGES), "checked": len(PAGES) - len(failed), "failed": len(failed), "failed_pages": failed}
    report(result=summary)
    print(f"{len(PAGES)} pages, {len(failed)} failed")
    return 1 if len(failed) > TOO_MANY else 0


if __name__ == "__main__":
    sys.exit(main())
