"""An expression held against the metrics there are: what it names, and Prometheus' grammar and types, by a package.

What an expression means is not tested here, only that Prometheus takes it, that it names metrics and labels that exist,
and that rates are taken of counters.
"""

from collections.abc import Iterator, Mapping

from promql_parser import AggregateExpr, BinaryExpr, Call, Expr, MatrixSelector, VectorSelector, parse, walk

_OF_COUNTERS = frozenset({"rate", "increase"})
_COUNTED = ("_total", "_bucket", "_sum", "_count")


class PromQLError(Exception):
    """Prometheus would refuse the expression, or it names what does not exist."""


def metrics_of(expression: str, known: Mapping[str, frozenset[str]], common: frozenset[str]) -> set[str]:
    """The metrics that the expression is about. Raises PromQLError. `common` labels may be used of any metric."""
    parts: list[Expr] = []
    try:
        # Grafana puts a duration there.
        walk(parse(expression.replace("$__rate_interval", "5m")), parts.append)
    except ValueError as error:
        raise PromQLError(str(error)) from None
    used = {str(part.name) for part in parts if isinstance(part, VectorSelector)}
    _require(bool(used), "it is about no metric")
    for name in used:
        _require(name in known, f"there is no metric {name}")
    labels = {label for part in parts for label in _labels(part)}
    there = common.union(*(known[name] for name in used))
    _require(labels <= there, f"there are no labels {sorted(labels - there)} of {sorted(used)}")
    for part in parts:
        if isinstance(part, Call) and part.func.name in _OF_COUNTERS and isinstance(part.args[0], MatrixSelector):
            counted = str(part.args[0].vector_selector.name)
            _require(counted.endswith(_COUNTED), f"{part.func.name} of {counted}, which is no counter")
    return used


def _labels(part: Expr) -> Iterator[str]:
    """Those that this part names itself."""
    match part:
        case VectorSelector():
            yield from (matcher.name for matcher in part.matchers.matchers)
        case AggregateExpr():
            yield from part.modifier.labels if part.modifier else ()
        case BinaryExpr():
            matching = part.modifier.matching if part.modifier else None
            yield from matching.labels if matching else ()


def _require(holds: bool, problem: str) -> None:
    if not holds:
        raise PromQLError(problem)
