"""Has a service call segment stores by its links: it learns their addresses from ZooKeeper, as all others do."""

import json
import os
from typing import Any

import uvloop

_BY_LINK = json.loads(os.environ["SLUICE_TEST_DETOUR"])
_connect = uvloop.Loop.create_connection


def _create_connection(self: uvloop.Loop, factory: Any, host: Any = None, port: Any = None, **more: Any) -> Any:
    host, port = _BY_LINK.get(f"{host}:{port}", (host, port))
    return _connect(self, factory, host, port, **more)


uvloop.Loop.create_connection = _create_connection  # type: ignore[method-assign,assignment]
