"""Whether classes that stand in for each other have the methods of the interface they share, as a test sees it."""

import inspect


def methods(interface: type) -> dict[str, inspect.Signature]:
    """The public methods of a protocol or class, its own and inherited ones, with their parameters."""
    return {
        name: inspect.signature(method)
        for name, method in inspect.getmembers(interface, inspect.isfunction)
        if not name.startswith("_")
    }


def missing(interface: type, implementation: type) -> set[str]:
    """The methods of the interface that an implementation lacks, or has with other parameters."""
    own = methods(implementation)
    return {name for name, signature in methods(interface).items() if own.get(name) != signature}
