from __future__ import annotations

import errno
import json
import os
import threading
from datetime import timedelta
from pathlib import Path

import pytest

from scheduler.core.model import FailReason
from scheduler.core.outcome import Canceled, Snoozed
from scheduler.executors.workers import roster
from scheduler.executors.workers.call_files import CallFiles
from tests.executors.harness import Bench, Going, alive, living_in, secret, until

SOURCE = """
import asyncio, json, os, subprocess, sys, threading, time

def plain():
    return "no arguments"

def keywords(payload, *, factor, label="none"):
    return {"value": payload * factor, "label": label}

def optional(dry_run=False):
    return dry_run

async def later(payload):
    await asyncio.sleep(0)
    return ["async", payload]

class Group:
    @staticmethod
    def member():
        return os.getpid()

def surroundings():
    return {"env": dict(os.environ), "cwd": os.getcwd(), "zone": time.tzname[0], "pid": os.getpid()}

def spoil():
    os.environ["LEAKED"] = "yes"
    os.chdir("/")
    os.umask(0)
    sys.stdout = open(os.devnull, "w")
    return os.getpid()

def prints():
    print("to stdout")
    print("to stderr", file=sys.stderr)
    subprocess.run(["echo", "from a child"], check=True)
    os.write(1, b"raw\\n")

def files(payload):
    found = {}
    for name in ("SCHED_PAYLOAD_FILE", "SCHED_CHECKPOINT_FILE"):
        path = os.environ[name]
        child = subprocess.run(["cat", path], check=True, capture_output=True)
        found[name] = [json.load(open(path)), json.loads(child.stdout)]
    on_disk = os.listdir(os.path.dirname(os.environ["SCHED_REPORT_FILE"]))
    kinds = sorted(name.rpartition(".")[2] for name in on_disk)
    return {**found, "on disk": kinds, "paths": os.environ["SCHED_PAYLOAD_FILE"]}

def takes_its_number(payload):
    global kept
    number = int(os.environ["SCHED_PAYLOAD_FILE"].rpartition("/")[2])
    os.close(number)
    kept = open(os.devnull)
    return kept.fileno() == number

def still_open():
    return os.fstat(kept.fileno()).st_rdev > 0

def thread():
    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
    return os.getpid()

def child():
    subprocess.Popen(["sleep", "600"])
    return os.getpid()

def forks(how):
    pid = os.fork()
    if pid == 0:
        if how == "exit":
            sys.exit(3)
        if how == "raise":
            raise ValueError("of the fork")
        return "of the fork"
    return [os.waitpid(pid, 0)[1] >> 8, os.getpid()]

def fork_lives_on():
    if os.fork() == 0:
        time.sleep(600)
    return os.getpid()

def grandchild():
    subprocess.run("setsid sleep 600 & exit 0", shell=True, check=True)
    return os.getpid()

def unread_child():
    process = subprocess.Popen(["true"], stdout=subprocess.PIPE)
    process.stdout.read()
    process.stdout.close()
    return os.getpid()

def broken():
    raise ValueError("no such order")

def exits(payload):
    sys.exit(payload)

def dies():
    os.kill(os.getpid(), 9)

def closes(first):
    print("closing")
    os.closerange(first, 64)
    print("closed")

def puts_in_its_place():
    os.dup2(os.open(os.devnull, os.O_WRONLY), 3)

def closes_and_goes_on():
    os.closerange(3, 64)
    time.sleep(600)

def vanishes():
    os._exit(4)

def not_json():
    return {1, 2}

def too_large():
    return "x" * 300_000

def reports():
    with open(os.environ["SCHED_REPORT_FILE"], "a") as file:
        file.write('{"progress": 50, "result": "reported"}\\n')

def hangs():
    print("hanging", flush=True)
    while True:
        try:
            time.sleep(600)
        except BaseException:
            pass

def tells(payload):
    print(os.environ["PASSWORD"])
    return os.environ["PASSWORD"]

def pid():
    return os.getpid()
"""


@pytest.fixture(autouse=True)
def source(bench: Bench) -> None:
    (bench.state / "work.py").write_text(SOURCE)


def start(bench: Bench, function: str, **how: object) -> Going:
    options: dict[str, object] = {"function": f"work:{function}"}
    if "arguments" in how:
        options["with"] = how.pop("arguments")
    return bench.start("call", options, **how)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("function", "run", "arguments", "result"),
    [
        ("plain", {}, {}, "no arguments"),
        ("optional", {}, {}, False),
        ("optional", {"payload": True}, {}, True),
        ("keywords", {"payload": 3}, {"factor": 2}, {"value": 6, "label": "none"}),
        ("keywords", {"payload": "a"}, {"factor": 2, "label": "x"}, {"value": "aa", "label": "x"}),
        ("later", {"payload": None}, {}, ["async", None]),
    ],
)
def test_arguments(
    bench: Bench, function: str, run: dict[str, object], arguments: dict[str, object], result: object
) -> None:
    assert start(bench, function, run=run, arguments=arguments).succeeded().result == result


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("work:plan", "work has no plan; did you mean plain?"),
        ("work:os", "is no function: its type is module"),
        ("nowhere.at_all:f", "there is no module nowhere; looked in the work directory"),
        ("work:keywords", "cannot be called with"),
        ("work:not_json", "result cannot be kept: Object of type set"),
        ("work:too_large", "at most 262,144 are kept"),
    ],
)
def test_mistakes_are_named_and_not_tried_again(bench: Bench, function: str, words: str) -> None:
    going = bench.start("call", {"function": function}, run={"payload": 1} if "keywords" in function else {})
    failed = going.failed()
    assert (failed.reason, failed.retryable) == (FailReason.ERROR, False)
    assert words in failed.error
    assert words in going.output()


def test_an_import_that_fails_inside_the_module_shows_its_traceback(bench: Bench) -> None:
    (bench.state / "half.py").write_text("import not_installed_here\n")
    going = bench.start("call", {"function": "half:f"})
    assert "ModuleNotFoundError: No module named 'not_installed_here'" in going.failed().error
    assert "half.py" in going.output()


def test_an_exception_is_a_failure_with_a_traceback_of_the_jobs_own(bench: Bench) -> None:
    going = start(bench, "broken")
    failed = going.failed()
    assert (failed.reason, failed.error, failed.retryable) == (FailReason.ERROR, "ValueError: no such order", True)
    assert "work.py" in going.output()
    assert "executors" not in going.output()


@pytest.mark.parametrize(("code", "words"), [(3, "sys.exit(3)"), ("stop", "sys.exit(1)")])
def test_sys_exit(bench: Bench, code: object, words: str) -> None:
    going = start(bench, "exits", run={"payload": code})
    failed = going.failed()
    assert failed.reason is FailReason.EXIT
    assert words in failed.error
    assert start(bench, "exits", run={"payload": 0}).succeeded().result is None


def test_everything_printed_is_its_output(bench: Bench) -> None:
    going = start(bench, "prints")
    going.succeeded()
    assert going.output().splitlines() == ["to stdout", "to stderr", "from a child", "raw"]


def test_environment_is_for_one_run_only(bench: Bench) -> None:
    bench.environ["SOURCE"] = "sesame-open"
    first = start(bench, "surroundings", env={"ONLY_FIRST": "1", "TZ": "XYZ-9"}, secrets={"KEY": secret("SOURCE")})
    one = first.succeeded().result
    assert one["env"] == {**first.launch.environment, "KEY": "***"}
    assert one["zone"] == "XYZ"
    two = start(bench, "surroundings").succeeded().result
    assert two["pid"] == one["pid"]
    assert "ONLY_FIRST" not in two["env"]
    assert "KEY" not in two["env"]
    assert two["zone"] != "XYZ"


def test_what_a_run_spoils_is_restored(bench: Bench) -> None:
    pid = start(bench, "spoil").succeeded().result
    after = start(bench, "surroundings").succeeded().result
    assert after["pid"] == pid
    assert "LEAKED" not in after["env"]
    assert after["cwd"] == str(bench.state)
    going = start(bench, "prints")
    going.succeeded()
    assert "to stdout" in going.output()


@pytest.mark.parametrize("function", ["thread", "child", "grandchild"])
def test_what_is_left_ends_with_the_worker(bench: Bench, function: str) -> None:
    going = start(bench, function)
    succeeded = going.succeeded()
    assert succeeded.left == (0 if function == "thread" else 1)
    assert "left" in going.output()
    assert alive(going.launch.run.id) == []
    assert start(bench, "pid").succeeded().result != succeeded.result


def test_a_child_that_has_ended_is_no_leftover(bench: Bench) -> None:
    pid = start(bench, "unread_child").succeeded().result
    assert start(bench, "pid").succeeded().result == pid


def test_a_hanging_call_is_killed_and_its_worker_replaced(bench: Bench) -> None:
    going = start(bench, "hangs", kill_after=timedelta(seconds=0.3))
    going.until_output("hanging")
    going.end("cancel")
    assert isinstance(going.outcome(), Canceled)
    until(lambda: living_in(bench.state) == [], "the worker to go")
    assert start(bench, "plain").succeeded().result == "no arguments"


def test_a_worker_that_dies_by_itself_says_how(bench: Bench) -> None:
    killed = start(bench, "dies").failed()
    assert (killed.reason, killed.signal) == (FailReason.SIGNAL, 9)
    assert "worker process was killed by signal 9" in killed.error
    vanished = start(bench, "vanishes").failed()
    assert (vanished.reason, vanished.exit_code) == (FailReason.EXIT, 4)
    assert start(bench, "plain").succeeded()


@pytest.mark.parametrize("first", [0, 3, 4])
def test_a_call_that_closes_what_is_not_its_own_is_told_so(bench: Bench, first: int) -> None:
    """Its worker can answer no more."""
    going = start(bench, "closes", run={"payload": first})
    failed = going.failed()
    assert (failed.reason, failed.retryable) == (FailReason.ERROR, False)
    assert "process could not go on: it closed file descriptors that it had not opened" in failed.error
    said = ["closing", "closed", "call: it closed file descriptors that it had not opened"]
    assert going.output().split(",")[0].splitlines() == (said if first else ["closing"])
    assert start(bench, "plain").succeeded().result == "no arguments"


def test_a_call_that_puts_something_else_in_the_place_of_the_channel_is_told_so(bench: Bench) -> None:
    """The answer would go to somebody else."""
    assert "it closed file descriptors" in start(bench, "puts_in_its_place").failed().error


def test_a_call_that_closes_what_is_not_its_own_and_goes_on_is_ended(bench: Bench) -> None:
    going = start(bench, "closes_and_goes_on")
    until(lambda: bench.executors["call"].tick(float("inf")), "the time to be over")
    failed = going.failed()
    assert "it closed file descriptors that it had not opened" in failed.error
    assert start(bench, "plain").succeeded().result == "no arguments"


def test_reports_count_where_nothing_is_returned(bench: Bench) -> None:
    assert start(bench, "reports").succeeded().result == "reported"
    [report] = bench.records.reports()
    assert report.progress == 50


def test_secrets_are_masked_in_output_and_result(bench: Bench) -> None:
    bench.environ["SOURCE"] = "sesame-open"
    going = start(bench, "tells", run={"payload": 1}, secrets={"PASSWORD": secret("SOURCE")})
    assert going.succeeded().result == "***"
    assert going.output() == "***\n"


def test_code_changed_on_disk_is_used_by_the_next_run(bench: Bench) -> None:
    path = bench.state / "work.py"
    first = start(bench, "pid").succeeded().result
    assert start(bench, "pid").succeeded().result == first
    path.write_text(SOURCE + "\ndef fresh():\n    return 'new code'\n")
    assert start(bench, "fresh").succeeded().result == "new code"


def test_work_directories_do_not_share_a_process(bench: Bench) -> None:
    for name in ("one", "two"):
        (bench.state / name).mkdir()
        (bench.state / name / "same.py").write_text(f"def f():\n    return {name!r}\n")
    assert bench.start("call", {"function": "same:f"}, workdir="one").succeeded().result == "one"
    assert bench.start("call", {"function": "same:f"}, workdir="two").succeeded().result == "two"


def test_a_folder_like_ours_in_the_work_directory_is_no_trap(bench: Bench) -> None:
    (bench.state / "scheduler").mkdir()
    (bench.state / "scheduler" / "__init__.py").write_text("raise SystemExit('wrong package')\n")
    assert start(bench, "plain").succeeded()


def test_pythonpath_of_the_job_is_searched(bench: Bench, tmp_path: Path) -> None:
    library = tmp_path / "library"
    library.mkdir()
    (library / "extra.py").write_text("def f():\n    return 'from the library'\n")
    going = bench.start("call", {"function": "extra:f"}, env={"PYTHONPATH": str(library)})
    assert going.succeeded().result == "from the library"


def test_a_user_is_refused_with_a_reason(bench: Bench) -> None:
    failed = start(bench, "plain", user="root").failed()
    assert "user:" in failed.error
    assert not failed.retryable


def test_as_many_at_once_as_there_are_slots(bench: Bench) -> None:
    meeting = bench.state / "meeting"
    meeting.mkdir()
    (bench.state / "meet.py").write_text(
        "import os, time\n"
        "def f(n):\n"
        f"    open({str(meeting)!r} + '/' + str(n), 'w').close()\n"
        f"    while len(os.listdir({str(meeting)!r})) < 8:\n"
        "        time.sleep(0.01)\n"
        "    return os.getpid()\n"
    )
    many = [bench.start("call", {"function": "meet:f"}, run={"payload": number}) for number in range(8)]
    assert len({one.succeeded().result for one in many}) == 8


def test_ends_from_other_threads_while_workers_start(bench: Bench) -> None:
    many = [start(bench, "hangs", kill_after=timedelta(seconds=0.1)) for _ in range(6)]
    threads = [threading.Thread(target=one.end, args=("cancel",)) for one in many]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(isinstance(one.outcome(), Canceled) for one in many)
    assert json.dumps([len(one.outcomes) for one in many]) == json.dumps([1] * 6)
    until(lambda: living_in(bench.state) in ([], [os.getpid()]), "the workers to go")


def test_short_calls_that_come_together_share_few_processes(bench: Bench) -> None:
    """A process each would cost a hundred times what they do."""
    many = [start(bench, "Group.member") for _ in range(60)]
    assert len({one.succeeded().result for one in many}) < 30


def test_calls_that_wait_for_a_process_can_be_ended(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roster, "STARTING", 1)
    first, *others = [start(bench, "hangs", kill_after=timedelta(seconds=0.1)) for _ in range(5)]
    for one in others:
        one.end("cancel")
    assert all(isinstance(one.outcome(), Canceled) for one in others)
    first.end("cancel")
    assert isinstance(first.outcome(), Canceled)
    assert start(bench, "plain").succeeded().result == "no arguments"


def test_nobody_waits_for_ever_for_a_process_that_does_not_come_up(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(roster, "STARTING", 1)
    monkeypatch.setattr(roster, "STARTED_WITHIN", 0.1)
    stalled = tmp_path / "stalled"
    stalled.mkdir()
    first = stalled / "first"
    program = (
        f"import os, time\nif not os.path.exists({str(first)!r}):\n    open({str(first)!r}, 'w')\n    time.sleep(600)\n"
    )
    (stalled / "sitecustomize.py").write_text(program)
    bench.executors["call"]._pool._environment = {  # type: ignore[attr-defined]
        **bench.executors["call"]._pool._environment,  # type: ignore[attr-defined]
        "PYTHONPATH": str(stalled),
    }
    one = start(bench, "plain", kill_after=timedelta(seconds=0.1))
    until(first.exists, "the first process to be stuck")
    other = start(bench, "plain")
    until(lambda: bench.executors["call"].tick(0.0) or other.outcomes, "a second process")
    assert other.succeeded().result == "no arguments"
    one.end("cancel")
    assert isinstance(one.outcome(), Canceled)


def test_payload_and_checkpoint_are_files_also_for_its_children_but_not_on_disk(bench: Bench) -> None:
    payload = {"text": "é" * 10_000}
    found = start(bench, "files", run={"payload": payload, "checkpoint": {"page": 3}}).succeeded().result
    assert found["SCHED_PAYLOAD_FILE"] == [payload] * 2
    assert found["SCHED_CHECKPOINT_FILE"] == [{"page": 3}] * 2
    assert found["on disk"] == ["output"]
    assert not os.path.exists(found["paths"]), "the next run must not see it"


@pytest.mark.parametrize("missing", [True, False])
def test_where_files_in_memory_cannot_be_had_they_lie_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: bool
) -> None:
    if missing:
        monkeypatch.delattr(os, "memfd_create")
    else:
        monkeypatch.setattr(os, "memfd_create", _forbidden)
    paths = {name: str(tmp_path / name) for name in ("payload", "checkpoint", "report")}
    environment = {f"SCHED_{name.upper()}_FILE": path for name, path in paths.items()}
    order = {"environment": environment, "output": str(tmp_path / "output"), "payload": {"a": 1}, "checkpoint": None}
    files = CallFiles(order)
    os.close(files.make())
    assert files.environment["SCHED_PAYLOAD_FILE"] == paths["payload"]
    assert json.loads(Path(paths["payload"]).read_text()) == {"a": 1}
    files.close()
    assert files.remove_unused()
    assert not any(map(os.path.exists, [*paths.values(), order["output"]]))


def _forbidden(*_: object) -> int:
    raise PermissionError(errno.EACCES, "by vm.memfd_noexec")


def test_a_call_may_close_its_payload(bench: Bench) -> None:
    assert start(bench, "takes_its_number", run={"payload": 1}).succeeded().result is True, (
        "its number was not given again"
    )
    assert start(bench, "still_open").succeeded().result is True


def test_a_call_that_says_nothing_leaves_no_file(bench: Bench) -> None:
    going = start(bench, "plain")
    assert going.succeeded().result == "no arguments"
    assert list((bench.state / "runs").iterdir()) == []
    assert going.output() == ""
    assert bench.records.outputs([(going.launch.run.id, 1)]) == []
    bench.records.forget([(going.launch.run.id, 1)])
    said = start(bench, "prints")
    said.succeeded()
    assert "to stdout" in said.output()
    bench.records.forget([(said.launch.run.id, 1)])
    assert list((bench.state / "runs").iterdir()) == []


def test_a_disk_that_takes_no_files_costs_no_retry(bench: Bench) -> None:
    assert start(bench, "plain").succeeded()
    (bench.state / "runs").rmdir()
    (bench.state / "runs").write_text("not a directory")
    outcome = start(bench, "plain").outcome()
    assert isinstance(outcome, Snoozed)
    assert "make room or access in the state directory" in outcome.error


def test_a_call_does_not_wait_long_for_those_that_are_busy(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A further process is started for it, although nothing happens that could remind anybody of it."""
    monkeypatch.setattr(roster, "STARTING", 1)
    busy = start(bench, "hangs", kill_after=timedelta(seconds=0.1))
    busy.until_output("hanging")
    assert start(bench, "plain").succeeded().result == "no arguments"
    busy.end("cancel")
    assert isinstance(busy.outcome(), Canceled)


@pytest.mark.parametrize(("how", "code"), [("exit", 3), ("raise", 1), ("return", 0)])
def test_a_fork_does_not_speak_for_the_run(bench: Bench, how: str, code: int) -> None:
    """It would answer first, and go on as a second worker: the next run of the job would overlap this one."""
    going = start(bench, "forks", run={"payload": how})
    found, pid = going.succeeded().result
    assert found == code
    assert ("ValueError: of the fork" in going.output()) == (how == "raise")
    assert start(bench, "Group.member").succeeded().result == pid, "the worker itself takes the next one"
    assert len(living_in(bench.state)) <= 2


def test_a_fork_that_lives_on_is_left_behind(bench: Bench) -> None:
    going = start(bench, "fork_lives_on", kill_after=timedelta(seconds=0.1))
    pid = going.succeeded().result
    assert "left 1 process and 0 threads, ended" in going.output()
    assert start(bench, "Group.member").succeeded().result != pid
