"""A process that counts in a shared state and compacts it: what tests of the client library start several of.

Each step says what the count is to become, so that one that was decided on an older state cannot be applied.
"""

import asyncio
import sys

import msgspec

from sluice_client import JsonCodec, RevisionedStream, StateSynchronizer, open_client

COMPACTS_EVERY = 5


class Step(msgspec.Struct, frozen=True):
    who: str
    becomes: int


class Counted(msgspec.Struct, frozen=True):
    """How far all counted together, and how much of it each did."""

    total: int = 0
    by: dict[str, int] = {}

    def step(self, step: Step) -> "Counted":
        assert step.becomes == self.total + 1, f"{step} on {self}"
        return Counted(step.becomes, {**self.by, step.who: self.by.get(step.who, 0) + 1})


def counting(stream: RevisionedStream) -> StateSynchronizer[Counted, Step]:
    return StateSynchronizer(
        stream, initial=Counted, apply=Counted.step, state_codec=JsonCodec(Counted), update_codec=JsonCodec(Step)
    )


async def count(address: str, scope: str, stream: str, who: str, steps: int) -> None:
    """Counts so many steps, and compacts now and then."""
    async with open_client(address) as client:
        counter = counting(await client.revisioned_stream(scope, stream))
        for number in range(1, steps + 1):
            await counter.update(lambda counted: [Step(who, counted.total + 1)])
            if number % COMPACTS_EVERY == 0:
                await counter.compact()


if __name__ == "__main__":
    _, address, scope, stream, who, steps = sys.argv
    asyncio.run(count(address, scope, stream, who, int(steps)))
