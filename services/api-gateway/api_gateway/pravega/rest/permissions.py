"""The permissions that calls of this interface need, as Pravega's controller has them."""

from collections.abc import Mapping

from api_gateway.edge.security.rest_resources import GROUP_RESOURCE, ROOT_RESOURCE, SCOPE_RESOURCE, STREAM_RESOURCE
from api_gateway.edge.security.rules import READ, READ_UPDATE, Rule

_READ_STREAM = Rule(READ, (STREAM_RESOURCE,))
_UPDATE_STREAM = Rule(READ_UPDATE, (STREAM_RESOURCE,))

_V1 = "/v1/scopes"
_V1_SCOPE = "/v1/scopes/{scopeName}"
_V1_STREAM = "/v1/scopes/{scopeName}/streams/{streamName}"
_V1_GROUP = "/v1/scopes/{scopeName}/readergroups/{readerGroupName}"

RULES: Mapping[str, Rule | None] = {
    f"GET {_V1}": Rule(READ, (ROOT_RESOURCE,), entries="scope"),
    f"POST {_V1}": Rule(READ_UPDATE, (ROOT_RESOURCE,)),
    f"GET {_V1_SCOPE}": Rule(READ, (SCOPE_RESOURCE,)),
    f"DELETE {_V1_SCOPE}": Rule(READ_UPDATE, (ROOT_RESOURCE,)),
    f"GET {_V1_SCOPE}/streams": Rule(READ, (SCOPE_RESOURCE,), entries="stream"),
    f"POST {_V1_SCOPE}/streams": Rule(READ_UPDATE, (SCOPE_RESOURCE,)),
    f"GET {_V1_STREAM}": _READ_STREAM,
    f"PUT {_V1_STREAM}": _UPDATE_STREAM,
    f"DELETE {_V1_STREAM}": _UPDATE_STREAM,
    f"PUT {_V1_STREAM}/state": _UPDATE_STREAM,
    f"GET {_V1_STREAM}/scaling-events": _READ_STREAM,
    f"GET {_V1_SCOPE}/readergroups": Rule(READ, (SCOPE_RESOURCE,)),
    f"GET {_V1_GROUP}": Rule(READ, (GROUP_RESOURCE,)),
    f"DELETE {_V1_GROUP}": Rule(READ_UPDATE, (GROUP_RESOURCE,)),
    "GET /v1/health/details": Rule(READ_UPDATE, (ROOT_RESOURCE,)),
    "GET /v1/health/details/{id}": Rule(READ_UPDATE, (ROOT_RESOURCE,)),
    **dict.fromkeys(
        (
            "GET /v1/health",
            "GET /v1/health/{id}",
            "GET /v1/health/readiness",
            "GET /v1/health/readiness/{id}",
            "GET /v1/health/liveness",
            "GET /v1/health/liveness/{id}",
            "GET /v1/health/status",
            "GET /v1/health/status/{id}",
            "GET /ping",
            "GET /prometheus",
        )
    ),
}
"""By method and path; None: for everyone, whatever credentials are sent."""
