"""Events as bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from at_least_once.events import BadEvent, Event


@given(st.text(), st.integers(0), st.text(), st.text())
def test_an_event_comes_back_and_a_changed_one_is_bad(source: str, sequence: int, key: str, text: str) -> None:
    event = Event.of(source, sequence, key, text)
    assert Event.decode(event.encode()) == event
    with pytest.raises(BadEvent):
        Event.decode(Event(source, sequence, key, text + "!", event.checksum).encode())
