"""The Lua scripts as one client runs them: by their hash, loaded again by themselves when Redis has forgotten them.

Each script begins with what they share. Their text is part of the package; the format it works on stands in its head.
"""

from importlib.resources import files

from redis.asyncio import Redis
from redis.commands.core import AsyncScript

_FOLDER = files("txn_manager.wheel") / "scripts"


class Scripts:
    """One script for each kind of call. Belongs to the client's event loop."""

    def __init__(self, client: Redis) -> None:
        self._client = client
        self._common = _text("common")
        self.change = self._register("change")
        self.claim = self._register("claim")
        self.stage = self._register("stage")
        self.publish = self._register("publish")

    def _register(self, name: str) -> AsyncScript:
        return self._client.register_script(self._common + "\n" + _text(name))


def _text(name: str) -> str:
    return (_FOLDER / f"{name}.lua").read_text(encoding="utf-8")
