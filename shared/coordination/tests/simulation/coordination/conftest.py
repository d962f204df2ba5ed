"""Examples and chance are chosen as in all simulations, also if these run alone."""

import logging
from collections.abc import Iterator

import pytest
from simulation.conftest import chance
from support.effort import load_profile

__all__ = ["chance"]

load_profile()


@pytest.fixture(autouse=True, scope="module")
def quiet() -> Iterator[None]:
    """Outages fill the log, and are what is wanted here."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)
