"""Answers in JSON."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec
from fastapi import Response
from pydantic import BaseModel, TypeAdapter

from sluice.insight.shown import Shown


def as_document(document: Any) -> Response:
    """JSON as it is."""
    return Response(msgspec.json.encode(document), media_type="application/json")


def as_json(model: BaseModel | Shown, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """The model as an answer, without what is None."""
    return Response(encoded(model), status_code=status, headers=headers, media_type="application/json")


def encoded(model: BaseModel | Shown) -> str:
    """As JSON, without what is None. A long list is encoded one by one, between pauses."""
    kind: type = type(model)
    return _adapter(kind).dump_json(model, by_alias=True, exclude_none=True).decode()


@cache
def _adapter(kind: type) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
