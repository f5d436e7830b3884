"""import-crontab: what the person is told: differences, losses, times, steps."""

from __future__ import annotations

import pytest

from scheduler.config.crontab_homes import Homes
from scheduler.config.crontab_notes import grouped
from scheduler.core.job import CatchUp, Leftovers, OnLost, Overlap
from tests.config.crontabs import USER, read


def test_every_lost_line_is_told_with_its_number_and_reason() -> None:
    lines = read(USER)[0].messages()
    assert "60 is out of range" in lines[1]
    assert [line for line in lines if line.startswith("lost: ")] == [
        "lost: crontab:15: 60 * * * * bad",
        "lost: crontab:16: 0 0 * * foo",
        "lost: crontab:17: @daily",
    ]
    assert "✗ 3 lines were lost; what they did is yours to write: crontab:15, crontab:16, crontab:17" in lines
    assert not any("lost" in line for line in read("0 5 * * * x\n")[0].messages()[1:])


def test_reboot_becomes_a_job_that_a_unit_or_a_person_starts() -> None:
    found, configuration = read("@reboot /opt/start.sh --all\n0 5 * * * x\n")
    job = configuration.jobs["start"]
    assert (job.schedule, job.enabled, job.action.options["command"]) == (None, True, "/opt/start.sh --all")
    assert not found.left_out
    assert any("schedctl run-now" in note for note in found.notes["start"])
    assert "  ExecStart=/usr/local/bin/schedctl run-now start" in found.boot
    assert set(found.boot) <= set(found.messages())
    assert not read("0 5 * * * x\n")[0].boot


def test_when_each_job_runs_next_is_told() -> None:
    found, _ = read("0 5 * * * a\nCRON_TZ=Asia/Tokyo\n0 5 13 * 5 b\n@reboot c\n")
    assert list(found.times) == [
        "",
        "Next times:",
        "  Thu 2026-01-01 05:00 Europe/Berlin  a",
        "  Fri 2026-01-02 05:00 Asia/Tokyo  b",
    ]


def test_either_day_is_said_plainly() -> None:
    _, configuration = read("0 5 13 * 5 a\n0 5 */2 * 5 b\n0 5 13 * * c\n")
    assert {job.name: job.schedule.day_match for job in configuration.jobs.values() if job.schedule is not None} == {
        "a": "or",
        "b": "cron",
        "c": "cron",
    }


def test_notes_are_told_once_with_the_jobs_they_are_about() -> None:
    text = "".join(f"0 {hour} * * * /opt/job{hour}\n" for hour in range(7)) + "0 9 * * * x &\n"
    lines = read(text)[0].messages()
    assert lines[0].startswith("all 8 jobs: overlap: skip")
    assert next(line for line in lines if "into the background" in line).startswith("x: ")
    assert grouped({name: ["n"] for name in "abcdefg"} | {"h": []}) == ["a, b, c, d, e and 2 more: n"]


def test_ours_is_the_default_and_the_difference_is_told_per_job() -> None:
    found, configuration = read(USER)
    for name, job in configuration.jobs.items():
        assert (job.overlap, job.catch_up, job.on_lost, job.leftovers) == (
            Overlap.SKIP if job.schedule is not None else Overlap.ALLOW,
            CatchUp.LATEST,
            OnLost.RETRY,
            Leftovers.END,
        )
        assert any("(cron: " in note for note in found.notes[name])
    assert any("is ended with the run" in note for note in found.notes["x"])
    assert any("either is enough" in note for note in found.notes["mail"])


def test_faithful_is_as_cron_does_it() -> None:
    found, configuration = read(USER, faithful=True)
    for name, job in configuration.jobs.items():
        assert (job.overlap, job.catch_up, job.on_lost, job.leftovers) == (
            Overlap.ALLOW,
            CatchUp.NONE,
            OnLost.FAIL,
            Leftovers.KEEP,
        )
        assert not any("(cron: " in note for note in found.notes[name])
    assert any("goes on until schedulerd ends" in note for note in found.notes["x"])
    assert "# processes that a run leaves behind go on, until schedulerd ends (with cron: for ever)" in found.yaml


def test_faithful_has_the_variables_that_cron_sets() -> None:
    homes = Homes(owner="alice")
    _, configuration = read("0 1 * * * a\nPATH=/opt:/bin\n0 1 * * * b\n", faithful=True, homes=homes)
    assert configuration.jobs["a"].child.env == {"PATH": "/usr/bin:/bin", "SHELL": "/bin/sh", "LOGNAME": "alice"}
    assert configuration.jobs["b"].child.env["PATH"] == "/opt:/bin"
    _, configuration = read("0 1 * * * www-data a\n", system=True, faithful=True, homes=homes)
    assert configuration.jobs["a"].child.env["LOGNAME"] == "www-data"


def test_a_command_that_asks_for_its_user_is_told_that_nobody_says() -> None:
    found, _ = read("0 1 * * * mail $LOGNAME < /x\n0 1 * * * mail me\n")
    assert any("cron sets LOGNAME" in note for note in found.notes["mail"])
    assert not any("cron sets LOGNAME" in note for note in found.notes["mail-2"])


def test_shadow_runs_nothing() -> None:
    _, configuration = read(USER, shadow=True)
    assert configuration.jobs
    assert not any(job.enabled for job in configuration.jobs.values())


@pytest.mark.parametrize("shadow", [False, True])
def test_the_last_words_are_the_steps_of_the_switch(shadow: bool) -> None:
    lines = read(USER, shadow=shadow)[0].messages()
    start = next(index for index, line in enumerate(lines) if "The switch" in line)
    steps = lines[start + 1 :]
    assert [line.split()[0] for line in steps] == [f"{number}." for number in range(1, len(steps) + 1)]
    assert "schedctl check jobs.yaml" in steps[0]
    assert any("schedctl reload" in line for line in steps)
    assert any("(crontab -e)" in line for line in steps)
    assert ("run-now" in "".join(steps)) is shadow
