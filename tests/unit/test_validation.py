"""What is wrong with a setting or a request is said in our words: the name, the value, what is allowed."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from fastapi.exceptions import RequestValidationError
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, Json, TypeAdapter, ValidationError

from api_gateway.edge.rest.failures import failure_of
from api_gateway.settings import GatewaySettings
from at_least_once.main import main as at_least_once
from retention_spark.settings import SparkSettings
from sluice.settings import PolicySettings, settings_of
from sluice.validation import form, sentence, sentences
from sluice_local.cli import main as sluice_local


class Color(StrEnum):
    RED = "red"
    BLUE = "blue"


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid")
    count: int = Field(ge=1)


def odd(value: int) -> int:
    if value % 2 == 0:
        raise ValueError("it must be odd")
    return value


PROBLEMS: list[tuple[Any, object, str]] = [
    (Annotated[int, Field(ge=1)], 0, "x is 0: it must be at least 1"),
    (Annotated[int, Field(gt=1)], 1, "x is 1: it must be more than 1"),
    (Annotated[int, Field(le=9)], 10, "x is 10: it must be at most 9"),
    (Annotated[int, Field(lt=9)], 9, "x is 9: it must be less than 9"),
    (Annotated[int, Field(multiple_of=4)], 5, "x is 5: it must be a multiple of 4"),
    (int, "many", "x is 'many': it must be a whole number"),
    (int, 1.5, "x is 1.5: it must be a whole number"),
    (int, None, "x: it must be a whole number"),
    (int, "9" * 5000, "x: it must be a whole number of fewer digits"),
    (float, "much", "x is 'much': it must be a number"),
    (float, [], "x: it must be a number"),
    (Annotated[float, Field(allow_inf_nan=False)], "inf", "x is 'inf': it must be a finite number"),
    (bool, "maybe", "x is 'maybe': it must be true or false"),
    (bool, [], "x: it must be true or false"),
    (str, 5, "x is 5: it must be text"),
    (str, b"\xff", "x: it must be text in UTF-8"),
    (Annotated[str, Field(min_length=2)], "a", "x is 'a': it must have at least 2 characters"),
    (Annotated[str, Field(max_length=2)], "abc", "x is 'abc': it must have at most 2 characters"),
    (Annotated[str, Field(pattern=form("^a$", "an a"))], "b", "x is 'b': it must be an a"),
    (Literal["open", "ended"], "lost", "x is 'lost': it must be 'open' or 'ended'"),
    (Color, "green", "x is 'green': it must be 'red' or 'blue'"),
    (list[int], 5, "x is 5: it must be a list"),
    (tuple[int, int], 5, "x is 5: it must be a list"),
    (dict[str, str], 5, "x is 5: it must be an object"),
    (Body, 5, "x is 5: it must be an object"),
    (Body, {}, "x is missing"),
    (Body, {"count": 1, "more": 2}, "x is not known here"),
    (Annotated[list[int], Field(min_length=1)], [], "x: it must have at least 1 items"),
    (Annotated[list[int], Field(max_length=1)], [1, 2], "x: it must have at most 1 items"),
    (Path, 5, "x is 5: it must be a path"),
    (UUID, "me", "x is 'me': it must be a UUID"),
    (UUID, 5, "x is 5: it must be a UUID"),
    (Json[int], 5, "x is 5: it must be JSON"),
    (Annotated[int, AfterValidator(odd)], 2, "x is 2: it must be odd"),
    (complex, "i", "x is 'i': input should be a valid python complex object"),
]


@pytest.mark.parametrize(("allowed", "value", "said"), PROBLEMS, ids=[said for *_, said in PROBLEMS])
def test_each_kind_of_problem_has_its_sentence(allowed: Any, value: object, said: str) -> None:
    with pytest.raises(ValidationError) as wrong:
        TypeAdapter(allowed).validate_python(value)
    (problem,) = wrong.value.errors()
    assert sentence(dict(problem), "x").startswith(said)


def test_a_wrong_setting_ends_a_service_with_its_name_and_what_is_allowed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SLUICE_GRPC_PORT", "http")
    monkeypatch.setenv("SLUICE_MAX_CALLS", "all")
    with pytest.raises(SystemExit, match="2"):
        settings_of(GatewaySettings)
    assert capsys.readouterr().err.splitlines() == [
        "setting SLUICE_GRPC_PORT is 'http': it must be a whole number",
        "setting SLUICE_MAX_CALLS is 'all': it must be a whole number",
    ]
    with pytest.raises(SystemExit, match="2"):
        settings_of(PolicySettings, scale_cooldown_s=-1)
    assert capsys.readouterr().err == "setting SLUICE_SCALE_COOLDOWN_S is -1: it must be at least 0.0\n"
    monkeypatch.setenv("SLUICE_SPARK_CONF", "{")
    with pytest.raises(SystemExit, match="2"):
        settings_of(SparkSettings)
    assert capsys.readouterr().err == "setting SLUICE_SPARK_CONF: it must be JSON\n"


def test_a_wrong_setting_is_said_by_the_programs_for_users(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("SLUICE_HOME", str(tmp_path))
    monkeypatch.setenv("SLUICE_KAFKA_PORT", "0")
    monkeypatch.setattr("sys.argv", ["sluice_local", "up"])
    assert sluice_local() == 2
    assert capsys.readouterr().err == "setting SLUICE_KAFKA_PORT is '0': it must be at least 1\n"
    assert at_least_once(["app", "--output-to", "disk"]) == 2
    assert capsys.readouterr().err == "--output-to is 'disk': it must be 'stream' or 'redis'\n"


def test_a_refused_request_names_the_place_in_it() -> None:
    problem = {
        "type": "greater_than_equal",
        "loc": ("body", "scaling", "minSegments"),
        "msg": "",
        "input": 0,
        "ctx": {"ge": 1},
    }
    assert sentences([problem]) == ["body.scaling.minSegments is 0: it must be at least 1"]
    failure = failure_of(
        RequestValidationError([problem, {"type": "missing", "loc": ("query", "x"), "msg": "", "input": None}])
    )
    assert failure.status == 400
    assert failure.detail == "body.scaling.minSegments is 0: it must be at least 1; query.x is missing"
