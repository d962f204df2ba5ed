"""How many instances of each service of a system run. Blocking."""

from harness import System
from sluice_local.services import API_GATEWAY, SERVICES


def have_instances(system: System, count: int, deadline_s: float) -> System:
    """Have the first `count` instances of each service run, and no other; all are ready on return."""
    services = {service.name for service in (API_GATEWAY, *SERVICES)}
    wanted: list[str] = []
    for name in system.names:
        service, _, number = name.rpartition("-")
        if service not in services:
            continue
        if int(number) < count:
            wanted.append(name)
        elif system.is_running(name):
            system.stop(name)
    for name in wanted:
        if not system.is_running(name):
            system.start(name, wait=False)
    for name in wanted:
        system.wait_ready(name, deadline_s)
    return system
