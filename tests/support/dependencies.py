"""Whether a distribution depends on what it imports, and on nothing else."""

import ast
import re
import sys
import tomllib
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

_OWN = {
    "sluice": "sluice-streams",
    "sluice_cli": "sluice-streams-cli",
    "sluice_client": "sluice-streams-client",
    "sluice_coordination": "sluice-streams-coordination",
}
"""Our own packages, by import name: they need not be installed to be tested."""


@dataclass(frozen=True)
class Dependencies:
    """What a pyproject.toml names without need, and which imported modules no named distribution provides."""

    unused: set[str]
    missing: set[str]


def check(project: Path, package: str) -> Dependencies:
    """Compare the pyproject.toml of a folder, extras included, with what the package inside it imports."""
    described = tomllib.loads((project / "pyproject.toml").read_text())["project"]
    extras = described.get("optional-dependencies", {}).values()
    named = [*described["dependencies"], *(name for extra in extras for name in extra)]
    declared = {_canonical(re.split(r"[\s\[<>=!~;]", requirement, maxsplit=1)[0]) for requirement in named}
    imported = _imported(project / package) - {package, *sys.stdlib_module_names}
    installed = metadata.packages_distributions()
    providers = {
        module: {_OWN[module]} if module in _OWN else {_canonical(name) for name in installed.get(module, [])}
        for module in imported
    }
    return Dependencies(
        unused=declared - {name for names in providers.values() for name in names},
        missing={module for module, names in providers.items() if not names & declared},
    )


def _imported(package: Path) -> set[str]:
    modules: set[str] = set()
    for path in package.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                modules |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                modules.add(node.module)
    return {module.partition(".")[0] for module in modules}


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
