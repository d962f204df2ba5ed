"""Which modules code loads: its own, and through those the modules of others."""

import ast
import sys
from collections.abc import Iterable, Mapping

Sources = Mapping[str, str]
"""The text of modules by their path below the folder of their package: `sluice/domain/ids.py`."""


def others_reached(start: Iterable[str], sources: Sources) -> dict[str, str]:
    """The packages of others that these files load, or files of `sources` that they reach; each with one that does."""
    own = {path.partition("/")[0] for path in sources}
    found: dict[str, str] = {}
    waiting, seen = sorted(start), set[str]()
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        for module in _modules_of(sources[path]):
            package = module.partition(".")[0]
            if package in own:
                waiting += _files_of(module, sources)
            elif package not in sys.stdlib_module_names:
                found[package] = path
    return found


def others_imported(sources: Sources) -> set[str]:
    """The packages that these files themselves load, but the standard library and their own."""
    own = {path.partition("/")[0] for path in sources}
    modules = {module.partition(".")[0] for source in sources.values() for module in _modules_of(source)}
    return modules - own - sys.stdlib_module_names


def _modules_of(source: str) -> set[str]:
    modules: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return modules


def _files_of(module: str, sources: Sources) -> list[str]:
    """The file of a module, and those of the packages around it; of what is no module (a class), its package's."""
    parts = module.split(".")
    paths = ["/".join(parts[: end + 1]) for end in range(len(parts))]
    candidates = [f"{path}{ending}" for path in paths for ending in (".py", "/__init__.py")]
    return [candidate for candidate in candidates if candidate in sources]
