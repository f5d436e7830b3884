"""Jinja2 templates in jobs.yaml: whether they can be read. Nothing is filled in here."""

from __future__ import annotations

from scheduler.config.refusal import refuse

MARKS = ("{{", "{%", "{#")


def check_template(text: str) -> None:
    """Refused if it is a template that cannot be read."""
    if not any(mark in text for mark in MARKS):
        return
    from jinja2 import Environment, TemplateSyntaxError  # only few texts are templates

    try:
        Environment().compile(text, raw=True)  # noqa: S701  # nothing is rendered here
    except TemplateSyntaxError as error:
        refuse(
            f"line {error.lineno} of the template: {error.message}",
            "correct it; values are written {{ payload.id | tojson }}",
        )
