"""The command line of `sluice dev`: what it refuses."""

import pytest
from typer.testing import CliRunner

from sluice_dev.commands import FORGETS, app


@pytest.mark.parametrize(
    "option", [("--load-interval", "0"), ("--cooldown", "-1"), ("--store-port", "99999"), ("--stream", "orders")]
)
def test_an_option_that_cannot_work_is_refused_before_anything_begins(option: tuple[str, str]) -> None:
    refused = CliRunner().invoke(app, option)
    assert (refused.exit_code, FORGETS in refused.output) == (2, False)
