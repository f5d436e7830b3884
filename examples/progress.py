"""Reports its progress: lines of JSON appended to the file that SCHED_REPORT_FILE names."""

import json
import os
import time

STEPS = 20


def report(**line: object) -> None:
    """Appends one line; outside the scheduler there is no such file, and nothing to do."""
    path = os.environ.get("SCHED_REPORT_FILE")
    if path:
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


for step in range(1, STEPS + 1):
    time.sleep(1)
    report(progress=100 * step // STEPS, message=f"step {step} of {STEPS}")
    print(f"step {step} of {STEPS} done", flush=True)
report(result={"steps": STEPS})
