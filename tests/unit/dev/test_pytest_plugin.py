"""The fixture `sluice_dev`, as the tests of others have it: by installing the distribution."""

import re
import signal
import socket
from pathlib import Path

import pytest
from support.wait import eventually

pytest_plugins = ["pytester"]

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "testing" / "test_orders.py"
SEEN = """
def test_what_it_got(sluice_dev):
    print("SEEN", sluice_dev.controller, sluice_dev.scope)

def test_what_the_next_one_got(sluice_dev):
    print("SEEN", sluice_dev.controller, sluice_dev.scope)
"""
SECURED = """
import asyncio, os
from pathlib import Path
import pravega_client

def test_a_client_of_others(sluice_dev, monkeypatch):
    variable = "pravega_client_{}".format
    monkeypatch.setenv(variable("auth_method"), "Basic")
    monkeypatch.setenv(variable("auth_username"), "admin")
    monkeypatch.setenv(variable("auth_password"), Path(sluice_dev.passwords["admin"]).read_text())
    monkeypatch.setenv(variable("tls_cert_path"), sluice_dev.authority)
    streams = pravega_client.StreamManager(f"tls://{sluice_dev.controller}", auth_enabled=True, tls_enabled=True)
    streams.create_stream(sluice_dev.scope, "orders", 1)
    writer = streams.create_writer(sluice_dev.scope, "orders")
    writer.write_event("tea", "key")
    writer.flush()
    reader = streams.create_reader_group("shop", sluice_dev.scope, "orders").create_reader("reader")
    read = asyncio.run(asyncio.wait_for(first(reader), 60))
    assert read == [b"tea"]

async def first(reader):
    return [event.data() for event in await reader.get_segment_slice_async()]
"""
KILLED = """
import os, signal

def test_that_kills_the_run(sluice_dev):
    print("SEEN", sluice_dev.controller, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_example_passes_on_one_process_that_ends_with_the_run(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_orders=EXAMPLE.read_text(), test_seen=SEEN)
    ran = pytester.runpytest_subprocess("-s", "-p", "no:asyncio")
    ran.assert_outcomes(passed=4)
    seen = re.findall(r"SEEN (\S+) (\S+)", ran.stdout.str())
    assert len({controller for controller, _ in seen}) == 1
    assert len({scope for _, scope in seen}) == 2
    host, _, port = seen[0][0].rpartition(":")
    assert not listens(host, int(port))


def test_the_client_from_pypi_is_a_user_of_a_secured_one(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nsluice_dev_options = --secure")
    pytester.makepyfile(SECURED)
    pytester.runpytest_subprocess("-p", "no:asyncio").assert_outcomes(passed=1)


def test_the_process_ends_with_a_run_that_is_killed(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(KILLED)
    ran = pytester.runpytest_subprocess("-s", "-p", "no:asyncio")
    assert ran.ret == -signal.SIGKILL
    (controller,) = re.findall(r"SEEN (\S+)", ran.stdout.str())
    host, _, port = controller.rpartition(":")
    eventually(lambda: not listens(host, int(port)), 60, "the process has ended")


def listens(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=60).close()
    except ConnectionRefusedError:
        return False
    return True


def test_an_option_that_cannot_work_fails_the_tests_and_is_named(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nsluice_dev_options = --stream orders")
    pytester.makepyfile(SEEN)
    ran = pytester.runpytest_subprocess("-p", "no:asyncio")
    ran.assert_outcomes(errors=2)
    ran.stdout.fnmatch_lines(["*NotReadyError: *--stream orders*has ended*"])
    ran.stdout.fnmatch_lines(["*orders is not SCOPE/NAME*"])
