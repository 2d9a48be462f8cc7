"""What a shell completes of a command line of tacit: a script that knows every command and option, and runs nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Option:
    """An option by all its names, what it is for, and what may be said after it."""

    names: tuple[str, ...]
    about: str
    valued: bool
    choices: tuple[str, ...]


@dataclass(frozen=True)
class Node:
    """A command by the words that name it, those that may come next, its options, and what it may be asked."""

    words: tuple[str, ...]
    inner: tuple[tuple[str, str], ...]  # the words that may come next, and what they are for
    options: tuple[Option, ...]
    choices: tuple[str, ...]  # of its argument

    @property
    def path(self) -> str:
        return " ".join(self.words)

    @property
    def next(self) -> tuple[tuple[str, str], ...]:
        """The words that may come next and are no option."""
        return (*self.inner, *((choice, "") for choice in self.choices))


HELP = Option(("-h", "--help"), "Show what it does, its options and examples.", False, ())


def tree(command: Any, words: tuple[str, ...] = ("tacit",)) -> Iterator[Node]:
    """The commands within a command of typer's, and itself first."""
    inner = getattr(command, "commands", {})
    options, choices = [], list[str]()
    for parameter in command.params:
        shown = parameter.metavar or ""  # the one place where every release of typer has them
        known = tuple(shown.split("|")) if "|" in shown and shown.islower() else ()
        if not parameter.opts[0].startswith("-"):
            choices += known
        else:
            options.append(Option(tuple(parameter.opts), parameter.help or "", not parameter.is_flag, known))
    about = tuple((name, (inner[name].help or "").partition("\n")[0]) for name in inner)
    yield Node(words, about, (*options, HELP), tuple(choices))
    for name, each in inner.items():
        yield from tree(each, (*words, name))


def bash(nodes: Sequence[Node]) -> Iterator[str]:
    """For bash; where nothing fits, it completes the names of files."""
    yield "# tacit: completion for bash"
    yield "_tacit() {"
    yield '    local at=tacit word said="${COMP_WORDS[COMP_CWORD]}" found='
    yield '    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do'
    yield from _walk(nodes, "        ", "")
    yield "    done"
    yield '    case "$at ${COMP_WORDS[COMP_CWORD-1]}" in'
    for node in nodes:
        for option in node.options:
            if option.valued:
                words = f"found={_quoted(' '.join(option.choices))}" if option.choices else "said="
                either = "|".join(_quoted(f"{node.path} {name}") for name in option.names)
                yield f"        {either}) {words} ;;"
    yield '        *) case "$at" in'
    for node in nodes:
        options = " ".join(name for option in node.options for name in option.names if name.startswith("--"))
        first = " ".join(word for word, _ in node.next)
        yield f"            {_quoted(node.path)}) found={_quoted(first)}"
        yield f'                [[ "$said" == -* ]] && found={_quoted(options)} ;;'
    yield "        esac ;;"
    yield "    esac"
    yield '    COMPREPLY=($(compgen -W "$found" -- "$said"))'
    yield "}"
    yield "complete -o default -F _tacit tacit"


def zsh(nodes: Sequence[Node]) -> Iterator[str]:
    """For zsh, evaluated or as a file `_tacit` in its fpath."""
    yield "#compdef tacit"
    yield "_tacit() {"
    yield "    local at=tacit word"
    yield "    local -a found"
    yield '    for word in "${(@)words[2,CURRENT-1]}"; do'
    yield from _walk(nodes, "        ", "(")
    yield "    done"
    yield '    case "$at ${words[CURRENT-1]}" in'
    for node in nodes:
        for option in node.options:
            if option.valued:
                either = "|".join(_quoted(f"{node.path} {name}") for name in option.names)
                does = f"compadd -- {' '.join(option.choices)}" if option.choices else "_files"
                yield f"        ({either}) {does}; return ;;"
    yield "    esac"
    yield '    case "$at" in'
    for node in nodes:
        options = [(name, option.about) for option in node.options for name in option.names if name.startswith("--")]
        yield f"        ({_quoted(node.path)}) found=({_described(node.next)})"
        yield f"            [[ $PREFIX == -* ]] && found=({_described(options)}) ;;"
    yield "    esac"
    yield "    (( $#found )) && _describe tacit found || _files"
    yield "}"
    yield 'if [[ "$funcstack[1]" == _tacit ]]; then _tacit "$@"; else compdef _tacit tacit; fi'


def fish(nodes: Sequence[Node]) -> Iterator[str]:
    """For fish."""
    yield "# tacit: completion for fish"
    for node in nodes:
        seen = [f"__fish_seen_subcommand_from {word}" for word in node.words[1:]]
        if node.inner:
            seen.append(f"not __fish_seen_subcommand_from {' '.join(word for word, _ in node.inner)}")
        here = f"complete -c tacit -n {_fish('; and '.join(seen))}" if seen else "complete -c tacit"
        for word, about in node.next:
            yield f"{here} -f -a {word}" + (f" -d {_fish(about)}" if about else "")
        for option in node.options:
            names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
            values = f" -x -a {_fish(' '.join(option.choices))}" if option.choices else " -r" * option.valued
            yield f"{here} {names}{values} -d {_fish(option.about)}"


SHELLS = {"bash": bash, "zsh": zsh, "fish": fish}


def _walk(nodes: Sequence[Node], indent: str, opening: str) -> Iterator[str]:
    """Goes from word to word down to the command that is being said."""
    paths = "|".join(_quoted(node.path) for node in nodes if len(node.words) > 1)
    yield f'{indent}case "$at $word" in {opening}{paths}) at="$at $word" ;; esac'


def _described(words: Sequence[tuple[str, str]]) -> str:
    return " ".join(_quoted(f"{word}:{about}" if about else word) for word, about in words)


def _quoted(text: str) -> str:
    """One word of bash or zsh."""
    return "'" + text.replace("'", "'\\''") + "'"


def _fish(text: str) -> str:
    """One word of fish."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
