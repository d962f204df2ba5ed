"""Every RPC, and what it needs."""

from collections.abc import Iterator

from google.protobuf.message import Message

from conformance.secured.operations import READ, UPDATE, Needs, On, Operation, needs
from sluice.controller_api import controller_pb2 as pb

_SCOPE = pb.ScopeInfo(scope="sec")
_INFO = pb.StreamInfo(scope="sec", stream="st")
_TABLE = pb.KeyValueTableInfo(scope="sec", kvtName="kv")
_GROUP_ID = "0f0e0d0c-0b0a-4908-8706-050403020100"
_GROUP = pb.ReaderGroupInfo(scope="sec", readerGroup="rg", readerGroupId=_GROUP_ID, generation=0)
_SEGMENT = pb.SegmentId(streamInfo=_INFO, segmentId=0)
_CUT = pb.StreamCut(streamInfo=_INFO, cut={0: 0})
_TXN = pb.TxnId(highBits=0, lowBits=1)
_TXN_REQUEST = pb.TxnRequest(streamInfo=_INFO, txnId=_TXN)
_GROUP_CONFIG = pb.ReaderGroupConfiguration(
    scope="sec",
    readerGroupName="rg",
    groupRefreshTimeMillis=3000,
    automaticCheckpointIntervalMillis=30000,
    maxOutstandingCheckpointRequest=3,
    readerGroupId=_GROUP_ID,
    startingStreamCuts=[pb.StreamCut(streamInfo=_INFO)],
    endingStreamCuts=[pb.StreamCut(streamInfo=_INFO)],
)
_SCALE = pb.ScaleRequest(
    streamInfo=_INFO, sealedSegments=[0], newKeyRanges=[pb.ScaleRequest.KeyRangeEntry(start=0.0, end=1.0)]
)
_TABLE_CONFIG = pb.KeyValueTableConfig(scope="sec", kvtName="kv", partitionCount=1, primaryKeyLength=8)
_RANGE = pb.StreamCutRange(streamInfo=_INFO, to={0: 1})
getattr(_RANGE, "from").update({0: 0})


def _config(stream: str) -> pb.StreamConfig:
    return pb.StreamConfig(
        streamInfo=pb.StreamInfo(scope="sec", stream=stream), scalingPolicy=pb.ScalingPolicy(minNumSegments=1)
    )


def _info(stream: str, access: int = 0) -> pb.StreamInfo:
    return pb.StreamInfo(scope="sec", stream=stream, accessOperation=access)  # type: ignore[arg-type]


def rpc(name: str, request: Message, needed: Needs, variant: str = "", **more: object) -> Operation:
    return Operation(
        f"{name} {variant}".rstrip(),
        lambda client, authorization: client.rpc(name, request, authorization),
        needed,
        **more,  # type: ignore[arg-type]
    )


_SIMPLE: tuple[tuple[str, Message, int, On], ...] = (
    ("createScope", pb.ScopeInfo(scope="made"), UPDATE, On.ROOT),
    ("deleteScope", _SCOPE, UPDATE, On.ROOT),
    ("deleteScopeRecursive", _SCOPE, UPDATE, On.ROOT),
    ("listScopes", pb.ScopesRequest(), READ, On.ROOT),
    ("checkScopeExists", _SCOPE, READ, On.SCOPE),
    ("listStreamsInScope", pb.StreamsInScopeRequest(scope=_SCOPE), READ, On.SCOPE),
    ("listStreamsInScopeForTag", pb.StreamsInScopeWithTagRequest(scope=_SCOPE, tag="t"), READ, On.SCOPE),
    ("listKeyValueTablesInScope", pb.KVTablesInScopeRequest(scope=_SCOPE), READ, On.SCOPE),
    ("createStream", _config("st"), UPDATE, On.SCOPE),
    ("updateStream", _config("st"), UPDATE, On.STREAM),
    ("truncateStream", _CUT, UPDATE, On.STREAM),
    ("sealStream", _INFO, UPDATE, On.STREAM),
    ("deleteStream", _INFO, UPDATE, On.STREAM),
    ("scale", _SCALE, UPDATE, On.STREAM),
    ("checkScale", pb.ScaleStatusRequest(streamInfo=_INFO, epoch=0), READ, On.STREAM),
    ("isSegmentValid", _SEGMENT, READ, On.STREAM),
    ("isStreamCutValid", _CUT, READ, On.STREAM),
    ("checkStreamExists", _INFO, READ, On.STREAM),
    ("getStreamConfiguration", _INFO, READ, On.STREAM),
    ("getEpochSegments", pb.GetEpochSegmentsRequest(streamInfo=_INFO, epoch=0), UPDATE, On.STREAM),
    ("getSegmentsBetween", _RANGE, READ, On.STREAM),
    ("getSegmentsImmediatelyFollowing", _SEGMENT, READ, On.STREAM),
    ("getSegmentsImmediatlyFollowing", _SEGMENT, READ, On.STREAM),
    ("getURI", _SEGMENT, READ, On.STREAM),
    ("createTransaction", pb.CreateTxnRequest(streamInfo=_INFO, lease=20_000), UPDATE, On.STREAM),
    ("commitTransaction", _TXN_REQUEST, UPDATE, On.STREAM),
    ("abortTransaction", _TXN_REQUEST, UPDATE, On.STREAM),
    ("pingTransaction", pb.PingTxnRequest(streamInfo=_INFO, txnId=_TXN, lease=20_000), UPDATE, On.STREAM),
    ("checkTransactionState", _TXN_REQUEST, READ, On.STREAM),
    ("listCompletedTransactions", pb.ListCompletedTxnRequest(streamInfo=_INFO), READ, On.STREAM),
    ("noteTimestampFromWriter", pb.TimestampFromWriter(writer="w", timestamp=1, position=_CUT), UPDATE, On.STREAM),
    ("removeWriter", pb.RemoveWriterRequest(writer="w", stream=_INFO), UPDATE, On.STREAM),
    ("listSubscribers", _INFO, UPDATE, On.STREAM),
    (
        "updateSubscriberStreamCut",
        pb.SubscriberStreamCut(subscriber="rg", generation=0, readerGroupId=_GROUP_ID, streamCut=_CUT),
        UPDATE,
        On.STREAM,
    ),
    ("getReaderGroupConfig", _GROUP, READ, On.SCOPE),
    ("createKeyValueTable", _TABLE_CONFIG, UPDATE, On.SCOPE),
    ("getKeyValueTableConfiguration", _TABLE, READ, On.TABLE),
    ("getCurrentSegmentsKeyValueTable", _TABLE, UPDATE, On.TABLE),
    ("deleteKeyValueTable", _TABLE, UPDATE, On.TABLE),
)

UNSPECIFIED, FOR_NOTHING, ANY, TO_READ, TO_WRITE, FOR_BOTH = range(6)


def _segments() -> Iterator[Operation]:
    """Where the request says for what the segments are."""
    for access in range(6):
        level = READ if access == FOR_NOTHING else UPDATE
        for stream, on in (("st", On.STREAM), ("_RGrg", On.GROUP), ("_MARKst", On.STREAM), ("_other", On.INTERNAL)):
            yield rpc("getCurrentSegments", _info(stream, access), needs(level, on), f"{stream} {access}")
        request = pb.GetSegmentsRequest(streamInfo=_info("st", access))
        yield rpc("getSegments", request, needs(level, On.STREAM), f"{access}")
    state = pb.GetSegmentsRequest(streamInfo=_info("_RGrg", FOR_NOTHING))
    yield rpc("getSegments", state, needs(READ, On.STATE), "of a reader group")


def _mapped() -> Iterator[Operation]:
    """Internal streams, which some RPCs take for what they belong to."""
    for stream, of, itself in (("_RGrg", On.GROUP, On.STATE), ("_MARKst", On.STREAM, On.MARK)):
        yield rpc("getURI", pb.SegmentId(streamInfo=_info(stream)), needs(READ, of), stream)
        yield rpc("updateStream", _config(stream), needs(UPDATE, of), stream)
        yield rpc("sealStream", _info(stream), needs(UPDATE, itself), stream)
        yield rpc("deleteStream", _info(stream), needs(UPDATE, itself), stream)
        yield rpc("checkStreamExists", _info(stream), needs(READ, itself), stream)


def _made_by_readers() -> Iterator[Operation]:
    """What readers do with the state of their groups, if the flag lets them."""
    reads = needs(READ, On.SCOPE)
    yield rpc("createStream", _config("_RGrg"), needs(UPDATE, On.SCOPE), "_RG", with_flag=reads)
    yield rpc(
        "createStream",
        _config("_MARKst"),
        needs(READ, On.SCOPE),
        "_MARK",
        ours=needs(UPDATE, On.SCOPE),
        why="no client makes streams of watermarks",
    )
    yield rpc("createStream", _config("_other"), needs(UPDATE, On.SCOPE), "_other")
    yield rpc("createReaderGroup", _GROUP_CONFIG, needs(UPDATE, On.SCOPE), with_flag=reads)
    yield rpc("updateReaderGroup", _GROUP_CONFIG, needs(UPDATE, On.SCOPE), with_flag=reads)
    yield rpc("deleteReaderGroup", _GROUP, needs(UPDATE, On.SCOPE), with_flag=reads)


def _tokens() -> Iterator[Operation]:
    for stream, of in (("_RGrg", On.GROUP), ("_MARKst", On.STREAM), ("_other", On.INTERNAL)):
        for access in (UNSPECIFIED, FOR_NOTHING, TO_READ, TO_WRITE, FOR_BOTH):
            writes = access in (TO_WRITE, FOR_BOTH)
            is_readers = stream == "_MARKst" or access in (FOR_NOTHING, TO_READ)
            level = READ if is_readers and access != UNSPECIFIED else UPDATE
            with_flag = needs(READ, of) if writes and stream == "_RGrg" else None
            yield rpc(
                "getDelegationToken", _info(stream, access), needs(level, of), f"{stream} {access}", with_flag=with_flag
            )
    for access in (UNSPECIFIED, FOR_NOTHING, TO_READ, TO_WRITE, FOR_BOTH):
        level = READ if access in (FOR_NOTHING, TO_READ) else UPDATE
        yield rpc("getDelegationToken", _info("st", access), needs(level, On.STREAM), f"st {access}")


RPCS: tuple[Operation, ...] = (
    rpc("getControllerServerList", pb.ServerRequest(), Needs()),
    *(rpc(name, request, needs(level, on)) for name, request, level, on in _SIMPLE),
    *_segments(),
    *_mapped(),
    *_made_by_readers(),
    *_tokens(),
    rpc("getControllerToBucketMapping", pb.ControllerToBucketMappingRequest(), needs(UPDATE, On.ROOT), is_own=True),
)
