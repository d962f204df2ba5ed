"""The table of REST cases itself: what it must cover."""

import re
from types import SimpleNamespace
from typing import Any, cast

from api_gateway.app import build_app
from conformance.case import SLUICE
from conformance.rest.table import CASES


def test_every_path_of_the_interface_is_called() -> None:
    process: Any = SimpleNamespace(checks={}, outages={}, degraded={}, facts={})
    described = build_app(cast(Any, process), 1).openapi()["paths"]
    called = {step.title.partition("?")[0] for case in CASES for step in case.steps}
    for template, operations in described.items():
        if template.startswith("/sluice/"):
            continue
        pattern = re.compile(re.sub(r"\{\w+\}", "[^/]+", template))
        for method in operations:
            paths = (path for verb, _, path in (title.partition(" ") for title in called) if verb == method.upper())
            assert any(map(pattern.fullmatch, paths)), f"{method} {template}"


def test_more_than_a_third_of_the_cases_goes_wrong() -> None:
    assert len(CASES) >= 60
    wrong = [case for case in CASES if any(_is_refusal(step.expected[SLUICE]) for step in case.steps)]
    assert len(wrong) > len(CASES) / 3


def _is_refusal(answer: object) -> bool:
    return isinstance(answer, int) and answer >= 400
