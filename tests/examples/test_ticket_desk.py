"""The template of a compensator of one's own holds the contract, by the test that lies beside it."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

from compensators import registry

FOLDER = Path(__file__).parents[2] / "examples" / "compensators"


def _loaded() -> ModuleType:
    spec = importlib.util.spec_from_file_location("examples_test_ticket_desk", FOLDER / "test_ticket_desk.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TestTicketDesk = _loaded().TestTicketDesk


def test_only_the_template_is_a_compensator_there() -> None:
    assert set(registry.files([str(FOLDER)])) - set(registry.files()) == {"ticket_desk"}


def test_each_of_its_options_is_documented() -> None:
    assert [one.name for one in registry.options("ticket_desk", [str(FOLDER)]) if not one.doc] == []
