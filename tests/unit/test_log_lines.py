"""What the log of a failed test shows."""

import logging

import pytest


def test_the_log_of_a_failed_test_shows_what_was_given_beside_the_message(request: pytest.FixtureRequest) -> None:
    extra = {"error": "no leader", "partition": 3}
    record = logging.getLogger("a.name").makeRecord(
        "a.name", logging.WARNING, "f.py", 7, "unknown", (), None, extra=extra
    )
    shown = request.config.pluginmanager.getplugin("logging-plugin").report_handler.format(record)
    assert shown.startswith("WARNING  a.name:f.py:7 unknown error='no leader' partition=3")
