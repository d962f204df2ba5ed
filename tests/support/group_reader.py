"""Reading in a group: in a process that prints what it gets as `GroupPeer` of the tests in Java does, or here."""

import asyncio
import sys

from sluice_client import CheckpointReached, Event, EventReader, open_client, open_reader


async def next_events(reader: EventReader, count: int, deadline_s: float) -> list[Event]:
    """The next events, checkpoints left out."""
    found: list[Event] = []
    async with asyncio.timeout(deadline_s):
        while len(found) < count:
            item = await reader.next()
            found += [item] if isinstance(item, Event) else []
    return found


async def main(address: str, scope: str, group: str, reader: str) -> None:
    async with open_client(address) as client, await open_reader(client, scope, group, reader) as opened:
        print("joined", flush=True)
        async for item in opened:
            match item:
                case Event():
                    print(f"event {item.data.decode()}", flush=True)
                case CheckpointReached():
                    print(f"checkpoint {item.name}", flush=True)
    print("left", flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
