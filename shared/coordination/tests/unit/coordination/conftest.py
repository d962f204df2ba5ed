"""Examples are chosen as in all tests, also if these run alone."""

from support.effort import load_profile

load_profile()
