"""The rooms keep their direction, and only two of them may touch protecting randomness (docs/decisions.md)."""

from __future__ import annotations

import ast
from pathlib import Path

import grimp
import pytest

PACKAGE = Path(__file__).parent.parent / "tacit"

# each room, and the rooms that its modules may import directly
ALLOWED = {
    "errors": set(),
    "rational": {"errors"},
    "domain": {"errors", "rational"},
    "privacy": {"errors", "rational"},
    "primitives": {"errors", "rational", "domain", "privacy"},
    "curator": {"errors", "rational", "domain", "privacy", "primitives"},
    "mechanisms": {"errors", "rational", "domain", "privacy", "primitives", "curator"},
    "engines": {"errors", "rational", "domain"},
    "service": {"errors", "rational", "domain", "privacy", "primitives", "curator", "mechanisms", "engines"},
}


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("tacit", include_external_packages=True)


def room(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def imports(graph: grimp.ImportGraph) -> list[tuple[str, str]]:
    inside = [module for module in graph.modules if module.startswith("tacit.")]
    return [(one, other) for one in inside for other in graph.find_modules_directly_imported_by(one)]


def test_every_room_is_known(graph: grimp.ImportGraph) -> None:
    assert {room(module) for module in graph.modules if module.startswith("tacit.")} == set(ALLOWED)


def test_rooms_import_only_what_lies_beneath_them(graph: grimp.ImportGraph) -> None:
    crossings = {
        (one, other)
        for one, other in imports(graph)
        if other.startswith("tacit.") and room(one) != room(other) and room(other) not in ALLOWED[room(one)]
    }
    assert not crossings


def test_no_module_imports_itself_by_a_detour(graph: grimp.ImportGraph) -> None:
    inside = [module for module in graph.modules if module.startswith("tacit.")]
    circles = {
        (module, other)
        for module in inside
        for other in graph.find_modules_directly_imported_by(module)
        if other.startswith("tacit.") and graph.chain_exists(importer=other, imported=module)
    }
    assert not circles


def test_only_primitives_and_the_curator_reach_the_noise(graph: grimp.ImportGraph) -> None:
    sources = {module for module in graph.modules if module.startswith("tacit.primitives.noise")} | {
        module for module in graph.modules if module in {"tacit.primitives.entropy", "tacit.primitives.tables"}
    }
    callers = {one for one, other in imports(graph) if other in sources}
    assert {room(caller) for caller in callers} <= {"primitives", "curator"}


def test_only_the_noise_draws_from_the_operating_system() -> None:
    drawing = {"secrets", "random", "cryptography"}
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        named = {
            alias.name.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names
        }
        named |= {
            node.module.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module
        }
        if path.parent.name != "primitives":
            assert not named & drawing, f"{path.name} imports {named & drawing}"
        assert "random" not in named, path.name
        urandom = any(isinstance(node, ast.Attribute) and node.attr == "urandom" for node in ast.walk(tree))
        assert not urandom or path.parent.name == "primitives", path.name


def test_nothing_is_ever_evaluated_or_unpickled() -> None:
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in {"eval", "exec", "compile", "__import__"}, f"{path.name}:{node.lineno}"
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = {alias.name for alias in node.names} | {getattr(node, "module", "") or ""}
                assert not names & {"pickle", "marshal", "shelve", "dill"}, f"{path.name}:{node.lineno}"


def test_the_domain_needs_numpy_alone_and_privacy_not_even_that(graph: grimp.ImportGraph) -> None:
    heavy = {"numpy", "pyarrow", "duckdb", "pandas", "polars", "cryptography", "typer", "rich"}
    for one, other in imports(graph):
        if room(one) == "domain":
            assert other not in heavy - {"numpy"}, one
        if room(one) == "privacy":
            assert other not in heavy, one


def test_modules_are_short() -> None:
    lengths = {
        path.relative_to(PACKAGE): len(path.read_text(encoding="utf-8").splitlines()) for path in PACKAGE.rglob("*.py")
    }
    assert {path: length for path, length in lengths.items() if length > 400} == {}
