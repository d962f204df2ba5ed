"""What a service writes as its log."""

import asyncio
import json
import logging
import threading

from sluice.service_context import as_this_service, begin_service
from sluice.telemetry.logs import AtMost, JsonFormatter


def test_what_a_caller_has_logged_is_one_line_and_commands_no_terminal() -> None:
    """U+0085 and U+2028 end a line for some readers, U+009B begins a terminal's command."""
    said = "a\nb\x85c\u2028d\x9b2Je\x1b[2Jé"
    record = logging.makeLogRecord({"msg": said, "path": said, "color_message": "said in \x1b[36mcyan"})
    line = JsonFormatter("api-gateway", "api-gateway-0").format(record)
    assert line.splitlines() == [line] and not set(line) & {"\x9b", "\x1b"}
    read = json.loads(line)
    assert read["message"] == read["path"] == said and "color_message" not in read


def test_what_any_caller_may_have_logged_hides_no_error() -> None:
    at_most = AtMost(records=2, seconds=10.0)

    def passed(level: int) -> bool:
        return at_most.filter(logging.LogRecord("grpc", level, "", 0, "", (), None))

    assert [passed(logging.INFO) for _ in range(3)] == [True, True, False]
    assert [passed(logging.ERROR) for _ in range(3)] == [True, True, False]


async def test_each_line_names_the_service_whose_task_or_thread_logs_it() -> None:
    formatter, named = JsonFormatter("api-gateway", "api-gateway-0"), dict[str, list[str]]()

    def say(message: str) -> None:
        line = json.loads(formatter.format(logging.makeLogRecord({"msg": message})))
        named[message] = [line["service"], line["instance"]]

    async def beside() -> None:
        begin_service("txn-manager", "txn-manager-0")
        loop = asyncio.get_running_loop()
        polls = threading.Thread(target=as_this_service(loop.call_soon_threadsafe), args=(say, "from its thread"))
        polls.start()
        polls.join()
        await loop.create_task(asyncio.to_thread(say, "from its task"))

    await asyncio.get_running_loop().create_task(beside())
    say("from the host")
    other = ["txn-manager", "txn-manager-0"]
    assert named == {
        "from its thread": other,
        "from its task": other,
        "from the host": ["api-gateway", "api-gateway-0"],
    }
