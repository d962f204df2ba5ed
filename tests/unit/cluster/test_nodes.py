"""ZooKeeper's refusals as the container manager hears of them."""

from collections.abc import Callable
from typing import Any

import pytest
from kazoo.exceptions import NoNodeError

from cluster_manager.nodes import NodesError, ZooKeeperNodes


class Refusal:
    """An answer of kazoo that has come already."""

    exception = NoNodeError()

    def rawlink(self, link: Callable[["Refusal"], None]) -> None:
        link(self)


class NothingThere:
    """A client of kazoo whose root is missing, so that nothing can be made below it."""

    def add_listener(self, _listener: Callable[[Any], None]) -> None:
        return None

    def get_children_async(self, _path: str, watch: Callable[[Any], None]) -> Refusal:
        return Refusal()

    def ensure_path_async(self, _path: str) -> Refusal:
        return Refusal()


async def test_a_path_that_cannot_be_made_is_an_error_like_others() -> None:
    nodes = ZooKeeperNodes("127.0.0.1:1/missing", "cluster", 10.0, 5.0, lambda: None, NothingThere())
    with pytest.raises(NodesError, match="cannot be made"):
        await nodes.hosts()
