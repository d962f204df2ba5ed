"""Two hundred transactions of a stream on its page: the queue of commits in order, outcomes that are the journal's."""

from collections import Counter
from collections.abc import Iterator
from functools import partial
from random import Random
from typing import NamedTuple

import pytest
from page.fixtures import DEADLINE_S, Open
from page.gateway import InThread, PageGateway, in_thread
from page.sample_data import HOUR, MINUTE, abort, commit, create, merge, merged_in, opened
from page.sample_log import SampleLog
from playwright.sync_api import Locator, Page, Route, expect
from support.wait import eventually

from sluice.domain.config import StreamConfig
from sluice.domain.ids import StreamId
from sluice.domain.model import decode_record
from sluice.domain.scope.commands import CreateScope
from sluice.domain.transaction import batch
from sluice.domain.transaction.commands import AbortReason
from sluice.domain.transaction.events import TransactionAborted, TransactionAborting, TransactionCommitted
from sluice.kafka.topics import JOURNAL

COUNT = 200
WAITING = 40
MOST_OF_A_BATCH = 15
SEED = 11

STREAM = StreamId("bank", "transfers")
LABELS = {"committed": "committed", "user": "aborted by their user", "lease": "lease ran out", "seal": "stream sealed"}
"""What the page calls an outcome."""


class Bank(NamedTuple):
    served: InThread
    waiting: list[str]
    """Whose commits wait, in the order in which they were requested."""


@pytest.fixture(scope="module")
def bank() -> Iterator[Bank]:
    waiting: list[str] = []

    def write(log: SampleLog, now: int) -> None:
        """Transactions of five hours; a few seem to have been aborted by the stream's sealing."""
        random = Random(SEED)
        log.at(now - 5 * HOUR)
        log.ask(CreateScope(STREAM.scope))
        create(log, STREAM, StreamConfig())
        ids = [opened(log, STREAM, 10 * MINUTE) for _ in range(COUNT)]
        # They are requested to end neither in the order in which they were opened, nor in that of their ids.
        random.shuffle(ids)
        for id in ids[WAITING:]:
            log.later(random.randrange(MINUTE))
            if random.randrange(4) == 0:
                abort(log, STREAM, id, random.choice((AbortReason.USER, AbortReason.LEASE, AbortReason.SEAL)))
            else:
                commit(log, STREAM, id, "writer-1")
                merge(log, STREAM)
        log.at(now - 3 * MINUTE)
        for id in ids[:WAITING]:
            log.later(1_000)
            commit(log, STREAM, id, "writer-1")
        waiting.extend(ids[:WAITING])

    with in_thread(past=write) as served:
        yield Bank(served, waiting)


def test_the_queue_is_in_the_order_of_requests_and_outcomes_are_the_journals(bank: Bank, visit: Open) -> None:
    served, left = bank
    page = visit(served.url).go(f"#/streams/{STREAM}?tab=transactions")
    show_outcomes_of_a_day(page)
    eventually(lambda: shown_outcomes(page).total() == COUNT - WAITING, DEADLINE_S, "all that have ended are shown")
    size = 1
    while left:
        eventually(partial(shows_queue, page, left), DEADLINE_S, f"the page shows these: {left}")
        served.run(end_batch)
        left, size = left[size:], MOST_OF_A_BATCH
    expect(page.get_by_text("No commit waits.")).to_be_visible()
    page.reload()
    expect(page.get_by_role("application", name="How transactions ended")).to_be_visible()
    ended = served.do(journal_outcomes)
    assert sum(ended.values()) == COUNT and len(ended) == len(LABELS)
    show_outcomes_of_a_day(page)
    eventually(lambda: shown_outcomes(page) == ended, DEADLINE_S, f"the page shows these: {ended}")


def test_the_stream_that_is_shown_stays_while_it_is_listed(bank: Bank, visit: Open) -> None:
    opened = visit(bank.served.url)
    listed = ["bank/transfers", "bank/second"]

    def answer(route: Route) -> None:
        counts = {"open": 1, "aborting": 0, "ended": 0, "oldestWaitingAt": 1_763_899_000_000}
        route.fulfill(json={"items": [{"stream": name, "waiting": 2, **counts} for name in listed]})

    opened.page.route("**/sluice/v1/transactions?*", answer)
    opened.page.route("**/streams/second**", lambda route: route.fulfill(status=404, json={"detail": "none"}))
    opened.expected = ["404"]
    page = opened.go("#/transactions")
    shown, first = page.locator("h2.of"), page.get_by_role("region", name="Streams with transactions").locator("td")
    expect(shown).to_have_text("bank/transfers")
    listed.reverse()
    expect(first.first).to_have_text("bank/second")
    expect(shown).to_have_text("bank/transfers")
    listed.remove("bank/transfers")
    expect(shown).to_have_text("bank/second")


def shows_queue(page: Page, expected: list[str]) -> bool:
    """Whether the batch that is merged, then those behind it are these."""
    queue = page.get_by_role("region", name="Queue of commits")
    return expected == [
        *queue.locator(".batch code.id").all_text_contents(),
        *queue.locator("ol a.id").all_text_contents(),
    ]


def show_outcomes_of_a_day(page: Page) -> None:
    """Those of the last hour stay until these are there."""
    page.get_by_role("button", name="a day, by 5 min").click()
    outcomes(page).get_by_text("As a table").click()


def outcomes(page: Page) -> Locator:
    return page.locator("figure", has=page.get_by_role("application", name="How transactions ended"))


def shown_outcomes(page: Page) -> Counter[str]:
    """What the table beside the picture adds up to, which the legend must say, too."""
    figure = outcomes(page)
    names = {label: name for name, label in LABELS.items()}
    heads = figure.locator("thead th").all_text_contents()[1:]
    rows = [row.locator("td").all_text_contents()[1:] for row in figure.locator("tbody tr").all()]
    sums = [sum(map(int, column)) for column in zip(*rows, strict=True)]
    legend = figure.locator(".legend > span").all_text_contents()
    assert [said.replace(" ", "") for said in legend] == [
        f"{head}{total}".replace(" ", "") for head, total in zip(heads, sums, strict=True)
    ]
    return Counter({names[head]: total for head, total in zip(heads, sums, strict=True)})


async def end_batch(gateway: PageGateway) -> None:
    """The batch that runs is merged, and the next one begins."""
    await gateway.world.system.journal.propose(
        STREAM.key,
        lambda reader, context: batch.end_batch(reader, STREAM, context, merged_in(reader, STREAM), MOST_OF_A_BATCH),
    )


def journal_outcomes(gateway: PageGateway) -> Counter[str]:
    """How transactions ended, as the records of the journal have it."""
    found, reasons = Counter[str](), dict[str, str]()
    for message in gateway.world.records(JOURNAL.name):
        for event in (event for entry in decode_record(message.value()).entries for event in entry.events):
            match event:
                case TransactionCommitted():
                    found["committed"] += 1
                case TransactionAborting():
                    reasons[event.transaction] = event.reason.value
                case TransactionAborted():
                    found[reasons[event.transaction]] += 1
                case _:
                    pass
    return found
