"""Where things are: controllers, tokens, buckets (controller-grpc-api 5.10)."""

from conformance.answers import UNKNOWN, Refused, Such
from conformance.calls import STREAM, create_scope, token
from conformance.case import Step, Subject, call
from sluice.controller_api import controller_pb2 as pb

CLUSTER = Subject("cluster")
case = CLUSTER.case


_SOME_SERVERS = Such("names hosts and ports", lambda found: found and all(h and 0 < p < 65536 for h, p in found))


def servers() -> Step:
    return call(
        "getControllerServerList",
        lambda _run: pb.ServerRequest(),
        lambda _run, answer: [(one.endpoint, one.port) for one in answer.nodeURI],
    )


def buckets(service: int) -> Step:
    """The numbers of all buckets, of all controllers."""

    def build(_run: object) -> pb.ControllerToBucketMappingRequest:
        return pb.ControllerToBucketMappingRequest(serviceType=service)  # type: ignore[arg-type]

    return call(
        "getControllerToBucketMapping",
        build,
        lambda _run, answer: sorted(bucket for owned in answer.mapping.values() for bucket in owned.id),
    )


_NEWER = "the original got this RPC after the release that is compared with"

case(
    "servers",
    servers().differs(
        peer=UNKNOWN,
        sluice=_SOME_SERVERS,
        why="all in one process, the original is no cluster and has no list; clients want at least one address",
    ),
)
case("token", *STREAM, token())
for _access in range(6):
    case(f"token_for_access_{_access}", *STREAM, token(access=_access))
case("token_of_missing_stream", create_scope(), token())
case("token_in_missing_scope", token())
case("token_without_name", token(""))
case("token_without_scope", token("", ""))
case("buckets_of_retention", buckets(0).differs(peer=Refused("UNIMPLEMENTED"), sluice=[0], why=_NEWER))
case("buckets_of_watermarks", buckets(1).differs(peer=Refused("UNIMPLEMENTED"), sluice=[0], why=_NEWER))
case(
    "buckets_of_unknown_service",
    buckets(7).differs(peer=Refused("UNIMPLEMENTED"), sluice=Refused("INTERNAL"), why=_NEWER),
)
