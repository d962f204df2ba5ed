"""As much of PromQL as it takes to hold an expression against the metrics there are: its words and its brackets.

No package evaluates PromQL in Python, so what an expression means is not tested here, only that it is well-formed, that
it names metrics, labels and functions that exist, and that rates are taken of counters.
"""

import re
from collections.abc import Iterator, Mapping

_TOKEN = re.compile(
    r"""\s+
    |(?P<string>"(?:[^"\\]|\\.)*")
    |(?P<range>\[(?:\d+(?:ms|[smhdwy])|\$__rate_interval)\])
    |(?P<number>\d+(?:\.\d+)?)
    |(?P<word>[a-zA-Z_:][a-zA-Z0-9_:]*)
    |(?P<operator>=~|!~|!=|==|<=|>=|[=<>+*/,(){}-])""",
    re.VERBOSE,
)
_OPEN, _CLOSE = "({", ")}"
_FUNCTIONS = frozenset({"rate", "increase", "delta", "histogram_quantile", "vector", "label_replace", "absent"})
_AGGREGATIONS = frozenset({"sum", "max", "min", "avg", "count"})
_WORDS = frozenset({"by", "without", "on", "ignoring", "group_left", "group_right", "and", "or", "unless", "bool"})
_OF_COUNTERS = frozenset({"rate", "increase"})
_COUNTED = ("_total", "_bucket", "_sum", "_count")


class PromQLError(Exception):
    """The expression is not well-formed, or names what does not exist."""


def metrics_of(expression: str, known: Mapping[str, frozenset[str]], common: frozenset[str]) -> set[str]:
    """The metrics that the expression is about. Raises PromQLError. `common` labels may be used of any metric."""
    tokens = list(_tokens(expression))
    _check_brackets(tokens)
    used: set[str] = set()
    labels: set[str] = set()
    inside = grouping = False
    for position, (kind, text) in enumerate(tokens):
        before = tokens[position - 1][1] if position else ""
        after = tokens[position + 1][1] if position + 1 < len(tokens) else ""
        inside = (inside or text == "{") and text != "}"
        grouping = (grouping or (text == "(" and before in _WORDS - {"and", "or", "unless"})) and text != ")"
        if kind == "word" and (inside or grouping):
            labels.add(text)
        elif kind == "word" and text in _FUNCTIONS | _AGGREGATIONS:
            _require(after == "(" or (text in _AGGREGATIONS and after in ("by", "without")), f"{text} is not called")
            counted = tokens[position + 2][1] if text in _OF_COUNTERS else ""
            _require(not counted or counted.endswith(_COUNTED), f"{text} of {counted}, which is no counter")
        elif kind == "word" and text not in _WORDS:
            _require(text in known, f"there is no metric {text}")
            used.add(text)
    _require(bool(used), "it is about no metric")
    there = common.union(*(known[name] for name in used))
    _require(labels <= there, f"there are no labels {sorted(labels - there)} of {sorted(used)}")
    return used


def _tokens(expression: str) -> Iterator[tuple[str, str]]:
    position = 0
    while position < len(expression):
        match = _TOKEN.match(expression, position)
        _require(match is not None, f"cannot be read at {expression[position : position + 20]!r}")
        assert match is not None
        position = match.end()
        if match.lastgroup is not None:
            yield match.lastgroup, match.group()


def _check_brackets(tokens: list[tuple[str, str]]) -> None:
    stack: list[str] = []
    for kind, text in tokens:
        if kind == "operator" and text in _OPEN:
            stack.append(_CLOSE[_OPEN.index(text)])
        elif kind == "operator" and text in _CLOSE:
            _require(bool(stack) and stack.pop() == text, f"{text} closes nothing")
    _require(not stack, f"{stack} is missing")


def _require(holds: bool, problem: str) -> None:
    if not holds:
        raise PromQLError(problem)
