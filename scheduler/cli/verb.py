"""How a verb is declared: with examples, and with the options that all verbs share, in any position."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from scheduler.cli.surface import FORMATS, Surface

SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class Verb(click.Command):
    """Shows its examples before its options: they are what people look for."""

    def __init__(self, *args: Any, examples: tuple[str, ...] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.examples = examples
        self.params.extend(shared_options())

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_help_text(ctx, formatter)
        if self.examples:
            with formatter.section("Examples"):
                formatter.write("".join(f"  {example}\n" for example in self.examples))


def verb(*examples: str, name: str | None = None) -> Callable[[Callable[..., Any]], Verb]:
    """Makes a function that takes a Surface a verb. It returns the exit code, None for 0."""

    def declare(function: Callable[..., Any]) -> Verb:
        passed = click.make_pass_decorator(Surface, ensure=True)(function)
        return click.command(name, cls=Verb, examples=examples, context_settings=SETTINGS)(passed)

    return declare


def shared_options() -> list[click.Option]:
    """Fresh ones: click ties an option to its command."""

    def put(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
        def callback(ctx: click.Context, parameter: click.Parameter, value: Any) -> None:
            if value is not None and value is not False:
                setattr(ctx.ensure_object(Surface), name, value)

        return callback

    def as_json(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
        if value:
            ctx.ensure_object(Surface).format = "json"

    return [
        click.Option(
            ["-o", "--output"],
            type=click.Choice(FORMATS),
            expose_value=False,
            callback=put("format"),
            help="How the answer is written (default: table).",
        ),
        click.Option(["--json"], is_flag=True, expose_value=False, callback=as_json, help="The same as -o json."),
        click.Option(
            ["--socket"],
            metavar="PATH",
            expose_value=False,
            callback=put("socket"),
            help="The daemon's socket (default: SCHEDULER_SOCKET, ./var, /run/schedulerd, the state directory).",
        ),
        click.Option(
            ["--no-color"], is_flag=True, expose_value=False, callback=put("no_color"), help="Never any colour."
        ),
    ]
