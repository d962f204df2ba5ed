"""Tests of one world: how it begins, and what must be true of it in the end."""

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, TypeVar

from simulation import invariants
from simulation.lives import run
from simulation.world import World

from sluice.domain.scope.commands import CreateScope

W = TypeVar("W", bound=World)


def in_a_world(make: Callable[[], W]) -> Callable[[Callable[[W], Coroutine[Any, Any, None]]], Callable[[], None]]:
    """Run a test in a world with the scope `sc`. At its end nothing fails any more, and all comes to rest."""

    def decorated(test: Callable[[W], Coroutine[Any, Any, None]]) -> Callable[[], None]:
        async def scene() -> None:
            world = make()
            assert (await world.ask(CreateScope("sc"))).status == "SUCCESS"
            await test(world)
            world.heal()
            await world.until(world.is_at_rest)
            invariants.check(world)

        @wraps(test)
        def in_virtual_time() -> None:
            run(scene())

        del in_virtual_time.__wrapped__
        return in_virtual_time

    return decorated
