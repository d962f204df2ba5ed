"""ZooKeeper's refusals as the container manager hears of them."""

from collections.abc import Callable
from typing import Any

import pytest
from kazoo.exceptions import KazooException, NoNodeError
from kazoo.protocol.states import ZnodeStat

from cluster_manager.nodes import NodesError, ZooKeeperNodes


class Answer:
    """An answer of kazoo that has come already."""

    def __init__(self, value: Any = None, exception: KazooException | None = None) -> None:
        self.value = value
        self.exception = exception

    def rawlink(self, link: Callable[["Answer"], None]) -> None:
        link(self)


class NothingThere:
    """A client of kazoo whose root is missing, so that nothing can be made below it."""

    def add_listener(self, _listener: Callable[[Any], None]) -> None:
        return None

    def get_children_async(self, _path: str, watch: Callable[[Any], None]) -> Answer:
        return Answer(exception=NoNodeError())

    def ensure_path_async(self, _path: str) -> Answer:
        return Answer(exception=NoNodeError())


async def test_a_path_that_cannot_be_made_is_an_error_like_others() -> None:
    nodes = ZooKeeperNodes("127.0.0.1:1/missing", "cluster", 10.0, 5.0, lambda: None, NothingThere())
    with pytest.raises(NodesError, match="cannot be made"):
        await nodes.hosts()


class WithoutSession:
    """A client of kazoo that loses ZooKeeper behind its answers; a gateway that has gone still stands there."""

    client_id: tuple[int, bytes] | None = None

    def add_listener(self, _listener: Callable[[Any], None]) -> None:
        return None

    def get_children_async(self, _path: str, watch: Callable[[Any], None]) -> Answer:
        return Answer(["10.0.0.1:9090:gw-1"])

    def get_async(self, _path: str) -> Answer:
        return Answer((b"", ZnodeStat(*range(11))))


async def test_a_session_that_is_lost_while_gateways_are_registered_is_an_error_like_others() -> None:
    nodes = ZooKeeperNodes("127.0.0.1:1", "cluster", 10.0, 5.0, lambda: None, WithoutSession())
    with pytest.raises(NodesError, match="no session"):
        await nodes.register(())


class OfAnotherSession(WithoutSession):
    """A client of kazoo with a session, which that gateway is not of."""

    client_id = (5, b"")


async def test_a_node_of_another_session_is_named_and_left_alone() -> None:
    nodes = ZooKeeperNodes("127.0.0.1:1", "cluster", 10.0, 5.0, lambda: None, OfAnotherSession())
    assert await nodes.register(()) == {"10.0.0.1:9090:gw-1"}
