"""What monitoring/ ships is what the tools accept, and every alert has its page."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import yaml

from scheduler.cli.main import program as schedctl
from tests.monitoring.tools import SHIPPED, checked, program

RUNBOOKS = SHIPPED.parent / "docs" / "runbooks"
RULES = [rule for group in yaml.safe_load((SHIPPED / "rules.yml").read_text())["groups"] for rule in group["rules"]]
ALERTS = {rule["alert"]: rule for rule in RULES if "alert" in rule}


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("promtool", ("check", "rules", "rules.yml")),
        ("promtool", ("test", "rules", "rules.test.yml", "rules.weeks.test.yml")),
        ("promtool", ("check", "config", "prometheus.yml")),
        ("amtool", ("check-config", "alertmanager.yml")),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_the_tools_are_content(tool: str, arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(SHIPPED)
    assert "SUCCESS" in checked(program(tool), *arguments)


def test_a_rule_that_is_wrong_is_found(tmp_path: Path) -> None:
    """The unit tests fail if the rule looks at the present alone, as people would write it first."""
    text = (SHIPPED / "rules.yml").read_text()
    naive = re.sub(r"last_over_time\((\w+)\[15m\]\)", r"\1", text)
    assert naive != text
    (tmp_path / "rules.yml").write_text(naive)
    (tmp_path / "rules.test.yml").write_text((SHIPPED / "rules.test.yml").read_text())
    with pytest.raises(AssertionError, match="FAILED"):
        checked(program("promtool"), "test", "rules", str(tmp_path / "rules.test.yml"))


@pytest.mark.parametrize("name", ALERTS)
def test_every_alert_says_what_to_type_and_leads_to_its_page(name: str) -> None:
    annotations = ALERTS[name]["annotations"]
    assert {"summary", "description", "runbook_url"} == set(annotations)
    page = RUNBOOKS / annotations["runbook_url"].rpartition("/")[2]
    assert page.name == f"{name}.md"
    text = page.read_text()
    assert text.startswith(f"# {name}\n")
    for command in re.findall(r"schedctl ([a-z-]+)", annotations["description"]):
        assert f"schedctl {command}" in text, "the page says nothing of what the alert tells to type"


def test_every_page_belongs_to_an_alert() -> None:
    assert {page.stem for page in RUNBOOKS.glob("*.md")} - {"README"} == set(ALERTS)


def test_every_alert_has_a_unit_test() -> None:
    texts = "".join(file.read_text() for file in SHIPPED.glob("rules*.test.yml"))
    assert {name for name in ALERTS if name not in texts} == set()


@pytest.mark.parametrize("page", sorted(RUNBOOKS.glob("*.md")), ids=lambda page: page.stem)
def test_what_a_page_tells_to_type_can_be_typed(page: Path) -> None:
    lines = list(_typed(page.read_text()))
    assert lines or page.stem == "Watchdog"
    for words in lines:
        _parse(schedctl, words)


def _typed(text: str) -> Iterator[list[str]]:
    """Command lines of schedctl in a page, in blocks and in running text."""
    for line in re.findall(r"^\$ schedctl (.+)$|`schedctl ([^`]+)`", text, re.MULTILINE):
        yield shlex.split("".join(line), comments=True)


def _parse(command: click.Command, words: list[str]) -> None:
    """Raises UsageError for a verb or an option that there is not; values are not looked at."""
    context = click.Context(command, resilient_parsing=True)
    if isinstance(command, click.Group) and words:
        name, *rest = words
        found = command.get_command(context, name)
        if found is not None:
            _parse(found, rest)
            return
        assert getattr(command, "default", None) or name.isupper(), f"there is no {name}"
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    assert {word for word in words if word.startswith("-")} <= known
