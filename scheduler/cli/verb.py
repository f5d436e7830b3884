"""How a verb is declared: with examples, and with the options that all verbs share, in any position."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
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

    def get_short_help_str(self, limit: int = 45) -> str:
        """Its first sentence, whole: the list of a group folds it, where click would cut it off."""
        first, _, _ = " ".join((self.help or "").split()).partition(". ")
        return first.removesuffix(".")

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_help_text(ctx, formatter)
        if self.examples:
            with formatter.section("Examples"):
                formatter.write("".join(f"  {example}\n" for example in self.examples))


class Listing(click.Group):
    """A group that lists when no word says what to do."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0].startswith("-") and args[0] not in ctx.help_option_names):
            args = ["list", *args]
        return super().parse_args(ctx, args)


def verb(*examples: str, name: str | None = None, watched: bool = False) -> Callable[[Callable[..., Any]], Verb]:
    """Makes a function that takes a Surface a verb. It returns the exit code, None for 0. `watched`: --watch draws its
    answer again and again."""

    def declare(function: Callable[..., Any]) -> Verb:
        passed = click.make_pass_decorator(Surface, ensure=True)(_repeated(function) if watched else function)
        command = click.command(name, cls=Verb, examples=examples, context_settings=SETTINGS)(passed)
        if watched:
            command.params[-len(shared_options()) : 0] = watch_options()
        return command

    return declare


def _repeated(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def run(surface: Surface, *arguments: Any, **options: Any) -> Any:
        if not surface.watching:
            return function(surface, *arguments, **options)
        from scheduler.cli.watch import watch

        return watch(surface, lambda: function(surface, *arguments, **options))

    return run


def _put(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    """A callback that keeps what was typed in that attribute of the Surface."""

    def callback(ctx: click.Context, parameter: click.Parameter, value: Any) -> None:
        if value is not None and value is not False:
            setattr(ctx.ensure_object(Surface), name, value)

    return callback


def exact_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a verb that shows what runs printed the option --raw."""
    return click.option(
        "--raw",
        is_flag=True,
        expose_value=False,
        callback=_put("exact"),
        help="Its output byte by byte, also what acts upon the terminal.",
    )(command)


def watch_options() -> list[click.Option]:
    def often(ctx: click.Context, parameter: click.Parameter, value: str | None) -> None:
        if value is not None:
            surface = ctx.ensure_object(Surface)
            surface.every, surface.watching = value, True

    return [
        click.Option(
            ["-w", "--watch"],
            is_flag=True,
            expose_value=False,
            callback=_put("watching"),
            help="Draw it again and again, until Ctrl-C.",
        ),
        click.Option(
            ["--every"],
            metavar="DURATION",
            expose_value=False,
            callback=often,
            help="The same, so often (default: 2s).",
        ),
    ]


def shared_options() -> list[click.Option]:
    """Fresh ones: click ties an option to its command."""

    def as_json(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
        if value:
            ctx.ensure_object(Surface).format = "json"

    return [
        click.Option(
            ["-o", "--output"],
            type=click.Choice(FORMATS),
            expose_value=False,
            callback=_put("format"),
            help="How the answer is written (default: table).",
        ),
        click.Option(["--json"], is_flag=True, expose_value=False, callback=as_json, help="The same as -o json."),
        click.Option(
            ["--socket"],
            metavar="PATH",
            expose_value=False,
            callback=_put("socket"),
            help="The daemon's socket (default: SCHEDULER_SOCKET, ./var, /run/schedulerd, the state directory; "
            "on another machine SCHEDCTL_URL and SCHEDCTL_TOKEN_FILE).",
        ),
        click.Option(
            ["--no-color"], is_flag=True, expose_value=False, callback=_put("no_color"), help="Never any colour."
        ),
    ]
