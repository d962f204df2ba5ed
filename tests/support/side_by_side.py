"""How processes share the tests: what asks for the session's system stays together, so that there is one of it.

So does what asks for its containers. Otherwise a file is what a process takes at a time. Much of an integration test is
waiting, for a lease to run out or a process to come back; three of them take little longer than one.
"""

from pathlib import PurePath

from xdist.scheduler import LoadScopeScheduling

SYSTEM_OF_THEIR_OWN = {
    "test_coordination",
    "test_crash_points",
    "test_faults",
    "test_leases",
    "test_platform",
    "test_retention_spark",
    "test_scaling_and_retention",
    "test_secured_kafka",
    "test_segmentstore",
    "test_transactions_faults",
}
"""The files of `integration` that do not use the session's."""


class SideBySide(LoadScopeScheduling):  # type: ignore[misc]
    def _split_scope(self, nodeid: str) -> str:
        """What a test belongs to, by its id: `tests/<folder>/<file>::<test>`."""
        file = nodeid.partition("::")[0]
        path = PurePath(file)
        if "containers" in path.parts:
            return "containers"
        on_the_system = "integration" in path.parts and path.stem not in SYSTEM_OF_THEIR_OWN
        return "system" if on_the_system or "conformance" in path.parts else file
