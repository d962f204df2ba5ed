"""Examples and chance are chosen as in all simulations, also if these run alone."""

from simulation.conftest import chance
from support.effort import load_profile

__all__ = ["chance"]

load_profile()
