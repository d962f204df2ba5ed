"""States and projections as bytes: every type has an encoding, and nothing is lost by it."""

import inspect
import types
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec
import pytest
from support.domain_log import Log

from sluice.catalog import examples
from sluice.domain import encoding, registry
from sluice.domain.model import DomainModel, decode_record
from sluice.engine.fold import PartitionView

MODEL = DomainModel()


def returned() -> set[Any]:
    """Whatever an event may make of an aggregate."""
    kinds: set[Any] = set()
    for evolve in registry.EVOLVE.values():
        hint = get_type_hints(inspect.unwrap(evolve))["return"]
        kinds |= set(get_args(hint)) if get_origin(hint) in (Union, types.UnionType) else {hint}
    return kinds - {Any, type(None)}


def test_every_type_of_state_that_events_make_has_an_encoding() -> None:
    assert returned() == set(encoding.STATES)


def test_each_type_of_state_has_a_letter_of_its_own() -> None:
    letters = list(encoding.STATES.values())
    assert len(set(letters)) == len(letters) and all(len(letter) == 1 for letter in letters)


def test_the_records_of_the_catalog_capture_and_restore_anywhere() -> None:
    history = [decode_record(example.value) for example in examples.journal_records()]
    for point in range(len(history)):
        whole, restored = PartitionView(MODEL), PartitionView(MODEL, warm=0)
        for offset, record in enumerate(history):
            outcomes = whole.fold(record, offset, record.at)
            if offset > point:
                assert restored.fold(record, offset, record.at) == outcomes
                while restored.settle(8):
                    pass
            elif offset == point:
                restored.restore(whole.capture())
        assert list(restored.capture()) == list(whole.capture()), point
        assert dict(restored.aggregates()) == dict(whole.aggregates())


def test_what_is_no_state_or_no_projection_is_refused() -> None:
    with pytest.raises(KeyError):
        MODEL.encode_state(object())
    with pytest.raises(TypeError, match="no encoding"):
        MODEL.encode_projection("s/x", {})
    for value in (b"", b"?", b"\xff\x90"):
        with pytest.raises(ValueError, match="no type of state"):
            MODEL.decode_state(value)
    with pytest.raises(msgspec.DecodeError):
        MODEL.decode_state(b"S")


def test_a_field_that_was_added_later_takes_its_default() -> None:
    log = Log("s")
    state = log.get("scope:s")
    fields = msgspec.msgpack.decode(MODEL.encode_state(state)[1:])
    assert MODEL.decode_state(b"O" + msgspec.msgpack.encode(fields[:-1])) == state
