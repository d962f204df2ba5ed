"""Our interface description against the published one: clients know names and numbers, and all of them must match."""

import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import DescriptorProto, EnumDescriptorProto, FileDescriptorProto, FileDescriptorSet
from grpc_tools import protoc  # type: ignore[import-untyped]

from sluice.controller_api import controller_pb2

CLONE = Path(__file__).resolve().parents[2]
JAR = "data-plane/pravega-shared-controller-api-0.13.0.jar"
PROTO = "Controller.proto"

_MAPPING = "ControllerToBucketMapping"
ONLY_OURS = {
    ("rpc", "ControllerService", "getControllerToBucketMapping"),
    ("message", f"{_MAPPING}Request"),
    ("field", f"{_MAPPING}Request", "serviceType"),
    ("enum", f"{_MAPPING}Request.BucketType"),
    ("value", f"{_MAPPING}Request.BucketType", "RetentionService"),
    ("value", f"{_MAPPING}Request.BucketType", "WatermarkingService"),
    ("message", f"{_MAPPING}Response"),
    ("field", f"{_MAPPING}Response", "mapping"),
    ("message", f"{_MAPPING}Response.MappingEntry"),
    ("field", f"{_MAPPING}Response.MappingEntry", "key"),
    ("field", f"{_MAPPING}Response.MappingEntry", "value"),
    ("message", "BucketIds"),
    ("field", "BucketIds", "id"),
}
"""What Pravega added after the published interface; there is nothing else in ours."""

Facts = dict[tuple[str, ...], Any]


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> FileDescriptorProto:
    home = Path(os.environ.get("SLUICE_HOME") or CLONE / ".sluice")
    jar = Path(os.environ.get("SLUICE_JARS") or home / "jars") / JAR
    assert jar.exists(), f"{jar} is missing, `make setup` fetches it"
    folder = tmp_path_factory.mktemp("published")
    with zipfile.ZipFile(jar) as archive:
        archive.extract(PROTO, folder)
    compiled = folder / "published.binpb"
    assert protoc.main(["protoc", f"-I{folder}", f"--descriptor_set_out={compiled}", PROTO]) == 0
    (file,) = FileDescriptorSet.FromString(compiled.read_bytes()).file
    return file


@pytest.fixture(scope="module")
def ours() -> FileDescriptorProto:
    file = FileDescriptorProto()
    controller_pb2.DESCRIPTOR.CopyToProto(file)
    return file


def _enum(name: str, enum: EnumDescriptorProto) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield ("enum", name), None
    for value in enum.value:
        yield ("value", name, value.name), value.number


def _message(name: str, message: DescriptorProto) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield ("message", name), message.options.map_entry
    for field in message.field:
        shape = (field.number, field.type, field.label, field.type_name, field.HasField("oneof_index"))
        yield ("field", name, field.name), shape
    for enum in message.enum_type:
        yield from _enum(f"{name}.{enum.name}", enum)
    for nested in message.nested_type:
        yield from _message(f"{name}.{nested.name}", nested)


def _facts(file: FileDescriptorProto) -> Facts:
    facts: Facts = {("package",): file.package, ("syntax",): file.syntax}
    for enum in file.enum_type:
        facts.update(_enum(enum.name, enum))
    for message in file.message_type:
        facts.update(_message(message.name, message))
    for service in file.service:
        for rpc in service.method:
            streams = (rpc.client_streaming, rpc.server_streaming)
            facts["rpc", service.name, rpc.name] = (rpc.input_type, rpc.output_type, *streams)
    return facts


def test_everything_published_is_ours_with_the_same_numbers_and_types(
    published: FileDescriptorProto, ours: FileDescriptorProto
) -> None:
    theirs, own = _facts(published), _facts(ours)
    assert {k: v for k, v in theirs.items() if own.get(k, "missing") != v} == {}
    assert len(theirs) > 400


def test_only_what_is_listed_is_ours_alone(published: FileDescriptorProto, ours: FileDescriptorProto) -> None:
    assert _facts(ours).keys() - _facts(published).keys() == ONLY_OURS
