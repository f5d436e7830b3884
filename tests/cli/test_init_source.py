"""`schedctl init source NAME`: what it prints is a file that loads, and says which address to register."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest
import yaml

from scheduler.config.check import check
from scheduler.config.sources import Stored
from scheduler.signatures.registry import presets
from tests.cli.typed import NOW, Typist


@pytest.fixture
def schedctl(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Typist:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TZ", "Europe/Paris")
    return Typist(capsys)


@pytest.mark.parametrize("name", ["payments", "4-you", *presets()])
def test_it_is_good_without_a_warning_with_and_without_what_is_commented_out(schedctl: Typist, name: str) -> None:
    text = schedctl("init", "source", name).out
    for one in (text, re.sub(r"^  # (?! |No |If )", "  ", text, flags=re.MULTILINE).replace("\n  #   ", "\n    ")):
        report = check(Stored({"f": one}, "f"), NOW, environ={}, elsewhere=True)
        assert (list(report.errors), list(report.warnings)) == ([], [])
        assert report.configuration is not None
    source = report.configuration.sources[name]
    assert source.preset == (name if name in presets() else None)
    jobs = report.configuration.jobs
    assert list(jobs) == [f"{name}-events", f"{name}-scan"]
    subscribed, scan = jobs[f"{name}-events"].on_event, jobs[f"{name}-scan"].compensate
    assert subscribed is not None
    assert scan is not None
    assert (subscribed.source, scan.source) == (name, name)
    assert scan.margin == timedelta(hours=1)


@pytest.mark.parametrize(
    ("name", "compensator"),
    [("stripe", "stripe_events"), ("github", "github_deliveries"), ("shopify", "shopify_updated"), ("x", "http_list")],
)
def test_each_has_the_list_of_its_provider(schedctl: Typist, name: str, compensator: str) -> None:
    made = yaml.safe_load(schedctl("init", "source", name).out)
    assert made["jobs"][f"{name}-scan"]["compensate"]["compensator"] == compensator
    assert made["jobs"][f"{name}-scan"]["timezone"] == "Europe/Paris"


def test_a_provider_whose_list_is_not_known_has_its_scan_commented_out(schedctl: Typist) -> None:
    made = yaml.safe_load(schedctl("init", "source", "twilio").out)
    assert list(made["jobs"]) == ["twilio-events"]


def test_another_name_for_a_provider(schedctl: Typist) -> None:
    made = yaml.safe_load(schedctl("init", "source", "shop-eu", "--preset", "square", "--tz", "UTC").out)
    assert made["sources"]["shop-eu"] == {
        "preset": "square",
        "secrets": [{"env": "SHOP_EU_WEBHOOK_SECRET"}],
        "url": "https://your.host/webhooks/shop-eu",
    }


def test_the_address_to_register(schedctl: Typist) -> None:
    answer = schedctl("init", "source", "stripe", SCHEDULER_PUBLIC_URL="https://jobs.example.com/")
    assert "# Register this address with Stripe: https://jobs.example.com/webhooks/stripe\n" in answer.out
    assert "SCHEDULER_PUBLIC_URL" not in answer.err
    answer = schedctl("init", "source", "stripe")
    assert "https://your.host/webhooks/stripe" in answer.out
    assert "SCHEDULER_PUBLIC_URL says it" in answer.err
    assert answer.err.endswith("next: schedctl check\n")
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["source"], "schedctl init source NAME"),
        (["source", "a b"], "is not a good name"),
        (["source", "x", "--preset", "strip"], "did you mean `stripe`?"),
        (["source", "x", "--tz", "CST"], "CST"),
        (["jobs.yaml", "x"], "schedctl init source NAME"),
        (["--preset", "stripe"], "schedctl init source NAME"),
    ],
)
def test_what_is_no_source(schedctl: Typist, arguments: list[str], said: str) -> None:
    answer = schedctl("init", *arguments)
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err
    assert list(Path().iterdir()) == []
