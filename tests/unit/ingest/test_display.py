"""What users see while it runs, where stderr is no terminal and where it is one."""

import io
import logging

import pytest
from rich.console import Console

from distributed_ingest import display
from distributed_ingest.display import Display
from distributed_ingest.feed import Reach
from distributed_ingest.tally import Counts

REACH = Reach(512, 2048, "bytes", finished=False)


def test_without_a_terminal_there_is_a_line_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr("distributed_ingest.display.time.monotonic", lambda: now)
    with Display(bars=True, verbose=False) as shown:
        for _ in range(3):
            shown.show(REACH, Counts(3, 300), Counts(5, 500), busy=1, workers=4, nodes=2)
            now += display.PLAIN_EVERY_S / 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "job: 512 B of 2 KiB; 5 records, 500 B, 2 nodes; this node: 3 records, 300 B" in said


def test_with_a_terminal_there_are_bars_and_messages_above_them(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    monkeypatch.setattr(display, "Console", lambda **_: Console(file=out, force_terminal=True, width=200))
    with Display(bars=True, verbose=False) as shown:
        shown.show(REACH, Counts(3, 300, skipped=2), Counts(5, 500), busy=1, workers=4, nodes=1)
        logging.getLogger("x").warning("take care")
    said = out.getvalue()
    assert "warning: take care" in said and "512 B of 2 KiB" in said and "2 left out" in said and "1 node" in said


@pytest.mark.parametrize("verbose", [False, True])
def test_an_error_is_a_line_and_with_verbose_all_of_it(capsys: pytest.CaptureFixture[str], verbose: bool) -> None:
    with Display(bars=False, verbose=verbose):
        try:
            raise ValueError("no good")
        except ValueError:
            logging.getLogger("distributed_ingest.x").exception("task failed")
            logging.getLogger("sluice_coordination.x").debug("details")
            logging.getLogger("opensearch").warning("GET 404, details")
    said = capsys.readouterr().err
    assert "task failed" in said and "ValueError: no good" in said and ("Traceback" in said) == verbose
    assert ("details" in said) == verbose
    assert verbose or said.count("\n") == 1
