"""What a simulation finds."""


class Violation(AssertionError):
    """The product has done what it promises not to do."""
