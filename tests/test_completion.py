"""What shells complete: the scripts are asked by the shells themselves, where they are installed."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import typer

from tacit.service import cli
from tacit.service.completion import SHELLS, Node, tree

NODES = list(tree(typer.main.get_command(cli.app)))

# what is said, of which the last word is not finished, and all that it may become; None where files are looked for
CASES: list[tuple[str, set[str] | None]] = [
    ("tacit exp", {"export"}),
    ("tacit ledger ", {"create", "show"}),
    ("tacit ledger sh", {"show"}),
    ("tacit completion ", {"bash", "zsh", "fish"}),
    ("tacit release --w", {"--workload"}),
    ("tacit ledger show people.toml --p", {"--plot"}),
    ("tacit plan people.toml -e 1 --re", {"--rehearse"}),
    ("tacit export released x --format ", {"csv", "parquet", "duckdb"}),
    ("tacit ask rel", None),
    ("tacit release -o rel", None),
]


def shell(name: str, script: str) -> list[str]:
    if shutil.which(name) is None:
        pytest.skip(f"there is no {name} here")
    options = {"bash": ["--norc"], "zsh": ["-f"], "fish": ["--no-config"]}[name]
    run = subprocess.run([name, *options, "-c", script], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")
    return run.stdout.splitlines()


def words(said: str) -> list[str]:
    return [*shlex.split(said), *([""] if said.endswith(" ") else [])]


@pytest.mark.parametrize(("said", "meant"), CASES, ids=[said for said, _ in CASES])
def test_bash_completes_commands_options_and_files(said: str, meant: set[str] | None) -> None:
    parts = words(said)
    script = "\n".join(SHELLS["bash"](NODES))
    listed = " ".join(map(shlex.quote, parts))
    found = shell(
        "bash",
        f'{script}\nCOMP_WORDS=({listed}) COMP_CWORD={len(parts) - 1}\n_tacit\nprintf "%s\\n" "${{COMPREPLY[@]}}"',
    )
    assert set(filter(None, found)) == (meant or set())


def test_bash_takes_the_script_and_looks_for_files_where_nothing_fits() -> None:
    script = "\n".join(SHELLS["bash"](NODES))
    assert shell("bash", f"set -eu\neval {shlex.quote(script)}\ncomplete -p tacit") == [
        "complete -o default -F _tacit tacit"
    ]


@pytest.mark.parametrize(("said", "meant"), CASES, ids=[said for said, _ in CASES])
def test_zsh_completes_commands_options_and_files(said: str, meant: set[str] | None) -> None:
    parts = words(said)
    stubs = "compdef() { }; _files() { print files }; compadd() { shift; print -l -- $@ }\n"
    stubs += "_describe() { print -l -- ${found%%:*} }"
    script = "\n".join(SHELLS["zsh"](NODES))
    listed = " ".join(map(shlex.quote, parts))
    where = f"words=({listed}) CURRENT={len(parts)} PREFIX={shlex.quote(parts[-1])}"
    found = shell("zsh", f"{stubs}\n{script}\n{where}\n_tacit")
    fitting = {word for word in found if word.startswith(parts[-1])}  # which is left to zsh
    assert fitting == meant if meant else found == ["files"]


@pytest.mark.parametrize(("said", "meant"), CASES, ids=[said for said, _ in CASES])
def test_fish_completes_commands_options_and_files(said: str, meant: set[str] | None, tmp_path: Path) -> None:
    (tmp_path / "released").mkdir()
    script = "\n".join(SHELLS["fish"](NODES))
    found = shell("fish", f"cd {tmp_path}\n{script}\ncomplete -C {shlex.quote(said)}")
    assert {line.partition("\t")[0] for line in found} == (meant or {"released/"})


@pytest.mark.parametrize("name", SHELLS)
def test_a_script_holds_every_command_and_option(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["completion", name]) == 0
    printed = capsys.readouterr().out
    assert printed.splitlines() == list(SHELLS[name](NODES))
    for node in NODES:
        assert node.words[-1] in printed
        for option in node.options:
            long = max(option.names, key=len)
            assert (long.removeprefix("--") if name == "fish" else long) in printed
    assert cli.run(["completion", name, "-q"]) == 0
    assert capsys.readouterr().out == printed


def test_a_help_of_any_letters_is_one_word() -> None:
    odd = Node(("tacit",), (("a", 'it\'s a\\ "$(touch x)" `y`'),), (), ())
    stubs = "compdef() { }; _files() { print files }; _describe() { print -rl -- $found }"
    script = "\n".join(SHELLS["zsh"]([odd, Node(("tacit", "a"), (), (), ())]))
    assert shell("zsh", f"{stubs}\n{script}\nwords=(tacit '') CURRENT=2 PREFIX=''\n_tacit") == ["a:" + odd.inner[0][1]]
