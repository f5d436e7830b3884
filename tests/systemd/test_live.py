"""The units under a real systemd, sandbox and all, in a machine made of namespaces."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from tests.systemd.machine import Machine, NoMachine, booted

pytestmark = [pytest.mark.crash, pytest.mark.timeout(240), pytest.mark.xdist_group("machine")]

STATE = "/var/lib/schedulerd"
CGROUP = "/sys/fs/cgroup/system.slice/schedulerd.service"
JOBS = """
defaults: {timezone: UTC}
jobs:
  quick: {command: "true"}
  nap: {command: "until test -e rise; do sleep 0.1; done; touch rested", workdir: /var/lib/schedulerd}
  stays:
    workdir: /var/lib/schedulerd
    command: "trap 'echo TERM >> ended; exit' TERM; setsid sleep 1000 & while :; do sleep 0.1; done"
"""


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    if shutil.which("systemctl") is None:
        pytest.skip("LOUDLY: no systemd here, so no unit is run; apt-get install systemd brings it")
    try:
        with booted(tmp_path_factory.mktemp("machine")) as machine:
            machine.run("systemd-sysusers && getent passwd schedulerd")
            yield machine
    except NoMachine as reason:
        pytest.skip(f"LOUDLY: the units are not run: {reason}")


@pytest.fixture
def unit(machine: Machine) -> Iterator[Machine]:
    """The unit, with JOBS, not started; without drop-ins."""
    reset(machine)
    machine.run("mkdir -p /etc/schedulerd")
    jobs(machine, JOBS)
    yield machine
    machine.run("systemctl kill -s KILL 'schedulerd*'; systemctl stop 'schedulerd*'", check=False)


def reset(machine: Machine) -> None:
    machine.run(
        "systemctl reset-failed 'schedulerd*'; rm -rf /run/systemd/system/* /etc/schedulerd /var/lib/schedulerd*; "
        "systemctl daemon-reload",
        check=False,
    )


def jobs(machine: Machine, text: str, folder: str = "/etc/schedulerd") -> None:
    machine.run(f"cat > {folder}/jobs.yaml <<'END'\n{text.strip()}\nEND\n")


def drop_in(machine: Machine, text: str) -> None:
    place = "/run/systemd/system/schedulerd.service.d"
    machine.run(f"mkdir -p {place}; cat > {place}/test.conf <<'END'\n[Service]\n{text}\nEND\nsystemctl daemon-reload")


def example(machine: Machine, name: str) -> None:
    place = "/run/systemd/system/schedulerd.service.d"
    machine.run(f"mkdir -p {place}; cp /opt/schedulerd/source/systemd/examples/{name} {place}; systemctl daemon-reload")


def run_now(machine: Machine, job: str, *, wait: bool = True) -> dict[str, Any]:
    """The run, as `schedctl runs` shows it; with `wait` when it is over."""
    machine.run(f"schedctl run-now {job}{' --wait' if wait else ''}", check=False)
    return latest(machine, job)


def latest(machine: Machine, job: str) -> dict[str, Any]:
    found: Any = json.loads(machine.shell(f"schedctl runs {job} -o json -n 1").stdout)
    while isinstance(found, dict) and "status" not in found:
        found = next(value for value in found.values() if isinstance(value, list | dict))
        found = found[0] if isinstance(found, list) else found
    run: dict[str, Any] = found[0] if isinstance(found, list) else found
    return run


def test_it_starts_ready_and_runs_each_job_in_a_cgroup_of_its_own(unit: Machine) -> None:
    jobs(unit, "jobs: {where: {command: 'cat /proc/self/cgroup; ls -d " + CGROUP + "/run-*'}}")
    unit.run("systemctl start schedulerd")
    assert unit.show("ActiveState") == "active"
    assert unit.show("StatusText") == "1 job, none running"
    assert run_now(unit, "where")["status"] == "COMPLETED"
    assert "/schedulerd.service/run-" in unit.run("schedctl logs where")
    unit.wait_for(f"! ls -d {CGROUP}/run-*")


def test_the_sandbox_holds_jobs_and_leaves_them_what_they_need(unit: Machine) -> None:
    script = """
      for place in /etc /usr /opt /root /home /sys/fs/cgroup /sys/fs/cgroup/system.slice; do
        mkdir $place/x && echo WROTE $place
      done
      touch /var/lib/schedulerd/x /tmp/x /run/schedulerd/x && echo ROOM
      env | grep -E "^(NOTIFY|WATCHDOG|CREDENTIALS|LISTEN|SCHEDULER)" && echo TOLD
      nproc && free > /dev/null && nice -n 5 true && getent ahosts localhost && echo WORKS
    """
    jobs(unit, "jobs:\n  probe:\n    command: |" + script)
    unit.run("systemctl start schedulerd")
    run_now(unit, "probe")
    said = unit.run("schedctl logs probe")
    assert "ROOM" in said
    assert "WORKS" in said
    assert "WROTE" not in said
    assert "TOLD" not in said


def test_every_kind_of_action_works_in_the_sandbox(unit: Machine) -> None:
    jobs(
        unit,
        "jobs:\n  a: {command: 'true'}\n  b: {call: 'os:getpid'}\n"
        "  c: {http: {method: GET, url: 'http://127.0.0.1:8780/healthz'}}\n",
    )
    unit.run("systemctl start schedulerd")
    assert {job: run_now(unit, job)["status"] for job in "abc"} == dict.fromkeys("abc", "COMPLETED")


def test_lines_are_found_in_the_journal_by_their_fields(unit: Machine) -> None:
    def found(where: str) -> list[dict[str, Any]]:
        lines = unit.run(f"journalctl --no-pager -o json -u schedulerd EVENT=run_settled {where}").splitlines()
        return [json.loads(line) for line in lines]

    jobs(unit, "jobs: {good: {command: 'true'}, bad: {command: 'exit 3'}}")
    unit.run("systemctl start schedulerd")
    good, bad = run_now(unit, "good"), run_now(unit, "bad")
    unit.wait_for("journalctl --no-pager -u schedulerd EVENT=run_settled JOB_NAME=bad | grep -q bad")
    (line,) = found("JOB_NAME=good")
    told = {"RUN_ID": good["run_id"], "STATUS": "completed", "ATTEMPT": "1", "PRIORITY": "6", "_TRANSPORT": "journal"}
    assert {name: line.get(name) for name in told} == told
    assert line["MESSAGE"].startswith("run_settled")
    assert [(one["RUN_ID"], one["REASON"]) for one in found("-p warning")] == [(bad["run_id"], "exit")]
    assert [one["JOB_NAME"] for one in found(f"RUN_ID={bad['run_id']}")] == ["bad"]


def test_a_reload_fails_when_the_file_is_bad(unit: Machine) -> None:
    unit.run("systemctl start schedulerd")
    unit.run("systemctl reload schedulerd")
    unit.run("echo '  bad: {schedule: never, command: x}' >> /etc/schedulerd/jobs.yaml")
    assert unit.shell("systemctl reload schedulerd").returncode != 0
    assert "jobs.yaml:8" in unit.journal()
    assert unit.show("ActiveState") == "active"
    unit.wait_for("systemctl show -p StatusText schedulerd | grep -q 'refused'")
    jobs(unit, JOBS)
    unit.run("systemctl reload schedulerd && schedctl run-now quick --wait")
    # By signal it cannot be told whether it worked; the unit is up again all the same.
    unit.run("systemctl kill -s HUP --kill-whom=main schedulerd")
    unit.wait_for("systemctl is-active schedulerd")


def test_a_bad_file_ends_in_failed_and_not_in_a_loop(unit: Machine) -> None:
    drop_in(unit, "RestartSec=1ms")
    unit.run("echo '  bad: {schedule: never, command: x}' >> /etc/schedulerd/jobs.yaml")
    assert unit.shell("systemctl start schedulerd").returncode != 0
    assert unit.show("ActiveState") == "failed"
    assert unit.show("ExecMainStatus") == "78"
    assert unit.show("NRestarts") == "0"
    jobs(unit, JOBS)
    unit.run("systemctl start schedulerd")


def test_a_drain_may_take_longer_than_the_stop_timeout(unit: Machine) -> None:
    drop_in(unit, "TimeoutStopSec=2s")
    unit.run("systemctl start schedulerd")
    run_now(unit, "nap", wait=False)
    unit.wait_for("schedctl runs nap | grep -q RUNNING")
    unit.run(f"systemctl stop --no-block schedulerd; sleep 4; ! test -e {STATE}/rested")
    assert unit.show("ActiveState") == "deactivating"
    unit.run(f"touch {STATE}/rise; systemctl stop schedulerd")
    assert unit.show("Result") == "success"
    unit.run(f"test -e {STATE}/rested")
    unit.run("systemctl start schedulerd")
    assert latest(unit, "nap")["status"] == "COMPLETED"


def test_a_hung_daemon_is_restarted_and_its_children_are_ended_in_order(unit: Machine) -> None:
    hang = f"/opt/schedulerd/bin/python3 -m tests.systemd.hanging {STATE}/hang"
    place = "WorkingDirectory=/opt/schedulerd/source"
    drop_in(unit, f"ExecStart=\nExecStart={hang}\n{place}\nWatchdogSec=4s\nRestartSec=1ms")
    unit.run("systemctl start schedulerd")
    run_now(unit, "stays", wait=False)
    unit.wait_for("schedctl runs stays | grep -q RUNNING")
    unit.run(f"touch {STATE}/hang")
    unit.wait_for("systemctl show -p NRestarts --value schedulerd | grep -qx 1", 60)
    unit.run(f"rm {STATE}/hang; grep TERM {STATE}/ended")
    assert "Failed with result 'watchdog'" in unit.journal()
    assert "hanging.py" in unit.journal(), "the stack of the loop that hangs is in the journal"
    unit.wait_for("systemctl is-active schedulerd", 60)


def test_a_killed_daemon_leaves_nothing_and_comes_back(unit: Machine) -> None:
    drop_in(unit, "RestartSec=1ms")
    unit.run("systemctl start schedulerd")
    run_now(unit, "stays", wait=False)
    unit.wait_for("schedctl runs stays | grep -q RUNNING && pgrep -f 'sleep 1000'")
    former = unit.run("pgrep -f 'sleep 1000'").split()
    unit.run("systemctl kill -s KILL --kill-whom=main schedulerd")
    unit.wait_for("systemctl is-active schedulerd && schedctl nodes")
    assert not set(former) & set(unit.run("pgrep -f 'sleep 1000'", check=False).split())
    assert unit.show("NRestarts") == "1"
    unit.wait_for("schedctl runs stays | grep -qE 'its node died|RUNNING'")


def test_credentials_reach_the_runs_that_name_them(unit: Machine) -> None:
    """The database's URL, too."""
    unit.run(
        "install -d -m 0700 /etc/schedulerd/credentials; cd /etc/schedulerd/credentials; "
        f"echo sesame > api-token; echo sqlite:///{STATE}/other.db > database-url; chmod 600 *"
    )
    example(unit, "secrets.conf")
    example(unit, "database-url.conf")
    place = "/run/credentials/schedulerd.service/api-token"
    jobs(unit, "jobs: {asks: {secrets: {TOKEN: {file: " + place + "}}, command: 'test \"$TOKEN\" = sesame'}}")
    unit.run("systemctl start schedulerd")
    assert run_now(unit, "asks")["status"] == "COMPLETED"
    assert f"{STATE}/other.db" in unit.run("schedctl db status")


def test_an_instance_has_everything_of_its_own(unit: Machine) -> None:
    unit.run("systemd-sysusers --inline 'u schedulerd-billing - \"Cron daemon\" /var/lib/schedulerd-billing'")
    unit.run("mkdir -p /etc/schedulerd/billing")
    jobs(unit, "jobs: {where: {command: 'id -un; cat /proc/self/cgroup'}}", "/etc/schedulerd/billing")
    unit.run("systemctl start schedulerd schedulerd@billing")
    ask = "schedctl --socket /run/schedulerd-billing/schedctl.sock"
    said = unit.run(f"{ask} run-now where --wait; {ask} logs where")
    assert "schedulerd-billing" in said
    assert "/system-schedulerd.slice/schedulerd@billing.service/run-" in said
    unit.run("systemctl reload schedulerd@billing && systemctl stop schedulerd@billing")


def test_who_is_in_the_group_may_act_and_is_named(unit: Machine) -> None:
    unit.run("id ana || useradd --create-home ana; id eve || useradd eve; usermod -aG schedulerd ana")
    unit.run("systemctl start schedulerd")
    as_user = "setpriv --reuid {0} --regid {0} --init-groups env HOME=/tmp schedctl"
    unit.run(f"{as_user.format('ana')} run-now quick --wait")
    assert "ana" in unit.run("schedctl runs quick")
    assert unit.shell(f"{as_user.format('eve')} run-now quick").returncode == 3


def test_jobs_of_other_users(unit: Machine) -> None:
    unit.run("id ana || useradd --create-home ana")
    example(unit, "other-users.conf")
    jobs(
        unit,
        "jobs:\n  hers: {user: ana, workdir: /home/ana, command: 'id -un; touch mine; cat $SCHED_PAYLOAD_FILE; "
        'echo "{\\"result\\": 1}" >> $SCHED_REPORT_FILE\'}\n  stuck: {user: ana, command: \'sleep 1000\'}\n',
    )
    unit.run("systemctl start schedulerd")
    assert run_now(unit, "hers")["status"] == "COMPLETED"
    assert unit.run("stat -c %U /home/ana/mine").strip() == "ana"
    assert "denied" not in unit.run("schedctl logs hers")
    run_now(unit, "stuck", wait=False)
    unit.wait_for("pgrep -u ana sleep")
    unit.run("schedctl cancel stuck")
    unit.wait_for("! pgrep -u ana sleep")


def test_jobs_that_write_elsewhere(unit: Machine) -> None:
    unit.run("id ana || useradd --create-home ana; mkdir -p /srv/backups /home/ana/reports")
    unit.run("chown schedulerd /srv/backups /home/ana/reports; chmod 755 /home/ana")
    example(unit, "paths.conf")
    jobs(unit, "jobs: {writes: {command: 'touch /srv/backups/x /home/ana/reports/x && ! touch /srv/x'}}")
    unit.run("systemctl start schedulerd")
    assert run_now(unit, "writes")["status"] == "COMPLETED"


def test_jobs_that_build_a_sandbox_of_their_own(unit: Machine) -> None:
    example(unit, "namespaces.conf")
    jobs(unit, "jobs: {nests: {command: 'unshare --user --map-root-user --mount mount -t tmpfs x /mnt'}}")
    unit.run("systemctl start schedulerd")
    assert run_now(unit, "nests")["status"] == "COMPLETED"


def test_the_ledger_backs_itself_up_and_is_restored(unit: Machine) -> None:
    """As docs/operations.md says it, word for word where a machine can follow it."""
    unit.run("id ana || useradd --create-home ana; usermod -aG schedulerd ana; mkdir -p /srv/backups")
    unit.run("rm -f /srv/backups/*; chown schedulerd /srv/backups; mkdir -p /home/ana/reports")
    example(unit, "paths.conf")
    jobs(
        unit,
        "jobs:\n  backup-ledger: {command: '/opt/schedulerd/bin/schedctl db backup /srv/backups/'}\n"
        "  tick: {schedule: '* * * * * *', timezone: UTC, catch_up: all, command: 'echo $SCHED_SCHEDULED_FOR >> "
        f"{STATE}/ticks'}}\n",
    )
    unit.run("systemctl start schedulerd")
    unit.wait_for(f"test $(wc -l < {STATE}/ticks) -ge 2")
    assert run_now(unit, "backup-ledger")["status"] == "COMPLETED"
    forbidden = "setpriv --reuid ana --regid ana --init-groups env HOME=/tmp schedctl db backup /tmp/copy.db"
    refused = unit.shell(forbidden)
    assert refused.returncode == 1
    assert "only its user and root may read it" in refused.stderr
    ticks = int(unit.run(f"wc -l < {STATE}/ticks"))
    unit.wait_for(f"test $(wc -l < {STATE}/ticks) -ge {ticks + 2}")

    unit.run("systemctl stop schedulerd")
    unit.run(f"cd {STATE} && mkdir damaged && mv scheduler.db* damaged/")
    unit.run(f"install -o schedulerd -g schedulerd -m 600 /srv/backups/scheduler-*.db {STATE}/scheduler.db")
    drop_in(unit, "ExecStart=\nExecStart=/opt/schedulerd/bin/schedulerd --after-restore")
    unit.run("systemctl start schedulerd")
    unit.run("rm /run/systemd/system/schedulerd.service.d/test.conf && systemctl daemon-reload")
    ticks = int(unit.run(f"wc -l < {STATE}/ticks"))
    unit.wait_for(f"test $(wc -l < {STATE}/ticks) -ge {ticks + 2}")
    unit.run(f'systemctl stop schedulerd; test -z "$(sort {STATE}/ticks | uniq -d)"')
    assert "owed_instants_written_off" in unit.journal()
