"""`tacit completion`."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from tacit.service.commands.command import Machine, Once, Quiet, app
from tacit.service.show import Screen


@app.command(cls=Once)
def completion(
    shell: Annotated[
        Literal["bash", "zsh", "fish"], typer.Argument(metavar="bash|zsh|fish", help="Which shell.", show_default=False)
    ],
    json: Machine = False,
    quiet: Quiet = False,
) -> None:
    """Print what makes a shell complete commands and options.

    The script knows every command and option by itself: to complete runs nothing, and nothing of yours is changed.

    \b
    Put the line of your shell where it reads its settings:
      ~/.bashrc                   eval "$(tacit completion bash)"
      ~/.zshrc, after compinit    eval "$(tacit completion zsh)"
      ~/.config/fish/config.fish  tacit completion fish | source

    \b
    Examples:
      tacit completion bash
      tacit completion zsh > ~/.zfunc/_tacit
    """
    from tacit.service.completion import SHELLS, tree

    screen, lines = Screen(json, quiet), list(SHELLS[shell](list(tree(typer.main.get_command(app)))))
    for line in lines:
        screen.say(line)
        screen.bare(line)
    screen.give({"shell": shell, "script": "".join(f"{line}\n" for line in lines)})
