"""`schedctl completion`: what makes a shell complete verbs, options, jobs and runs."""

from __future__ import annotations

from pathlib import PurePath

import click

from scheduler.cli.surface import Surface
from scheduler.cli.verb import verb

INSTALL = {
    "bash": "echo 'eval \"$(schedctl completion bash)\"' >> ~/.bashrc",
    "zsh": "echo 'eval \"$(schedctl completion zsh)\"' >> ~/.zshrc",
    "fish": "schedctl completion fish > ~/.config/fish/completions/schedctl.fish",
}
"""How to have it in every new shell."""
VARIABLE = "_SCHEDCTL_COMPLETE"


@verb('eval "$(schedctl completion bash)"', "schedctl completion fish | source")
@click.argument("shell", type=click.Choice(tuple(INSTALL)), required=False)
def completion(surface: Surface, shell: str | None) -> int:
    """Writes the script for SHELL (default: yours). Names of jobs come from the daemon, as they are at that moment."""
    from click.shell_completion import get_completion_class

    from scheduler.cli.main import program

    shell = shell or PurePath(surface.environ.get("SHELL", "")).name
    kind = get_completion_class(shell) if shell in INSTALL else None
    if kind is None:
        raise click.UsageError("which shell? bash, zsh or fish")
    surface.out(kind(program, {}, "schedctl", VARIABLE).source().strip("\n"))
    surface.say(f"to keep it: {INSTALL[shell]}")
    return 0
