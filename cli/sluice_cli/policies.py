"""Policies as users write them, and as the API takes them. Pure."""

from typing import Any

from sluice.lookback.times import duration_of
from sluice_cli.errors import UsageError
from sluice_cli.units import show_duration, show_size, size_of

UNBOUNDED = 2**63 - 1
"""What a retention without a maximum has for one."""


_FACTOR, _MINIMUM = 2, 1


def scaling_of(segments: int | None, scale: str | None, factor: int | None, minimum: int | None) -> dict[str, Any]:
    """The API's `scaling`; `scale` is `events:RATE` or `kbytes:RATE`, per segment and second. Raises UsageError."""
    if scale is None:
        if factor is not None or minimum is not None:
            raise UsageError("--factor and --min belong to --scale", "for a fixed number of segments: --segments N")
        return _fixed(1 if segments is None else segments)
    if segments is not None:
        raise UsageError("--segments and --scale exclude each other", "with --scale, --min says how many to begin with")
    begun = {"scaleFactor": _FACTOR, "minSegments": _MINIMUM}
    return {**begun, **_rate_of(scale), **_given(factor, minimum)}


def changed_scaling(
    present: dict[str, Any], segments: int | None, scale: str | None, factor: int | None, minimum: int | None
) -> dict[str, Any]:
    """`present`, the API's `scaling`, with what is given; factor and least number are those of a scaling by load.

    Raises UsageError.
    """
    by_load = present.get("type") != "fixed"
    if segments is not None or (scale is not None and not by_load):
        return scaling_of(segments, scale, factor, minimum)
    if scale is None and not by_load:
        raise UsageError(
            "--factor and --min belong to --scale, and the stream has a fixed number of segments",
            "change that with --segments N, or let it scale with --scale events:100",
        )
    return {**present, **(_rate_of(scale) if scale is not None else {}), **_given(factor, minimum)}


def check_scaling(segments: int | None, scale: str | None, factor: int | None, minimum: int | None) -> None:
    """What a change comes to before the present scaling is known. Raises UsageError."""
    if segments is not None and (factor, minimum) != (None, None):
        raise UsageError("--factor and --min belong to --scale", "for a fixed number of segments: --segments N")
    if segments is not None or scale is not None:
        scaling_of(segments, scale, factor, minimum)


def _fixed(segments: int) -> dict[str, Any]:
    return {"type": "fixed", "targetRate": 0, "scaleFactor": 0, "minSegments": segments}


def _rate_of(scale: str) -> dict[str, Any]:
    kind, _, rate = scale.partition(":")
    if kind not in ("events", "kbytes") or not rate.isdecimal() or int(rate) == 0:
        raise UsageError(f"{scale!r} is no scaling", "write it as events:100 or kbytes:512, per segment and second")
    return {"type": kind, "targetRate": int(rate)}


def _given(factor: int | None, minimum: int | None) -> dict[str, Any]:
    given = {"scaleFactor": factor, "minSegments": minimum}
    return {name: value for name, value in given.items() if value is not None}


def retention_of(text: str) -> dict[str, Any] | None:
    """The API's `retention`: `size=MIN..MAX`, `time=MIN..MAX`, without a maximum if that is left out, or `none`.

    Raises UsageError.
    """
    if text == "none":
        return None
    kind, _, bounds = text.partition("=")
    amount = {"size": size_of, "time": duration_of}.get(kind)
    if amount is None:
        raise UsageError(f"{text!r} is no retention", "write it as size=1GiB..10GiB, time=1h..2d or none")
    least, dots, most = bounds.partition("..")
    minimum, maximum = amount(least), amount(most) if dots else UNBOUNDED
    if maximum < minimum:
        raise UsageError(
            f"{text!r} would keep at least {least} and at most {most}",
            f"write the smaller first: {kind}={most}..{least}",
        )
    return {"type": kind, "min": minimum, "max": maximum}


def show_scaling(scaling: dict[str, Any]) -> str:
    """One line for users."""
    least = scaling.get("minSegments", 1)
    if scaling.get("type") == "fixed":
        return f"fixed, {least} segment{'s' if least != 1 else ''}"
    rate, factor = scaling.get("targetRate"), scaling.get("scaleFactor")
    return f"{scaling.get('type')}:{rate} per segment and second, factor {factor}, at least {least}"


def show_retention(retention: dict[str, Any] | None) -> str:
    """One line for users, written as it is given."""
    if not retention:
        return "none"
    amount = show_size if retention["type"] == "size" else show_duration
    most = retention.get("max")
    end = "" if most is None or most >= UNBOUNDED else f"..{amount(most)}"
    return f"{retention['type']}={amount(retention['min'])}{end}"
