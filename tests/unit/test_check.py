"""Which tests `make check` runs for a change."""

import runpy
from pathlib import Path

import pytest

CLONE = Path(__file__).resolve().parents[2]
CHECK = runpy.run_path(str(CLONE / ".ci" / "check"))


@pytest.mark.parametrize(
    ("changed", "tests"),
    [
        ("docs/cli.md", []),
        ("shared/sluice/kafka/log.py", ["tests/unit/kafka"]),
        ("shared/sluice/addresses.py", ["tests/unit/test_addresses.py"]),
        ("services/api-gateway/api_gateway/app.py", ["tests/unit/gateway"]),
        ("tests/unit/gateway/rest/world.py", ["tests/unit/gateway"]),
        ("tests/unit/test_settings.py", ["tests/unit/test_settings.py"]),
        ("tests/simulation/test_crossing.py", ["tests/simulation/test_crossing.py"]),
        ("tests/integration/test_cli.py", []),
    ],
)
def test_a_change_has_its_own_tests_run_beside_those_of_the_core(changed: str, tests: list[str]) -> None:
    assert CHECK["tests_of"]([changed]) == sorted({*CHECK["CORE"], *tests})


def test_every_folder_of_the_clone_that_is_named_is_there() -> None:
    named = [*CHECK["CORE"], *CHECK["TESTS"], *CHECK["TESTS"].values()]
    assert [name for name in named if not (CLONE / name).is_dir()] == []
