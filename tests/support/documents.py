"""The documents that are made from the code, as tests look at them."""

from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.protocols import Validator
from referencing import Registry, Resource

from sluice.catalog.schemas import DIALECT, files

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"

AGAIN = "run `python -m sluice.catalog docs`"


class Schemas:
    """Validators of messages, by the path of their schema."""

    def __init__(self) -> None:
        self.files = files()
        named = [(path, Resource.from_contents(schema)) for path, schema in self.files.items()]
        self._registry: Registry[Any] = Registry().with_resources(named)
        self._validators: dict[str, Validator] = {}

    def paths(self) -> list[str]:
        return sorted(self.files)

    def of(self, path: str) -> Validator:
        if path not in self._validators:
            reference = {"$schema": DIALECT, "$ref": path}
            self._validators[path] = Draft202012Validator(reference, registry=self._registry)
        return self._validators[path]

    def errors(self, path: str, value: Any) -> list[str]:
        """What is wrong with a value, each with its place."""
        return [f"{error.json_path}: {error.message}" for error in self.of(path).iter_errors(value)]


__all__ = ["AGAIN", "DOCS", "ROOT", "Schemas"]
