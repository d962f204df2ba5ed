"""Ids of transactions, as clients take them apart (controller-grpc-api 6.2)."""

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from sluice.domain.segment import transaction_segment_name
from sluice.domain.transaction_ids import epoch_of, halves, text_of, transaction_id

epochs = st.integers(0, 2**31 - 1)
requests = st.text(max_size=60)


@given(epochs, requests)
def test_the_high_32_bits_are_the_epoch_and_the_low_half_is_never_negative(epoch: int, request: str) -> None:
    id = transaction_id(epoch, request)
    high, low = halves(id)
    assert low >= 0
    assert (high >> 32, high & 0xFFFFFFFF) == (epoch, 0)
    assert epoch_of(id) == epoch


@given(epochs, requests)
def test_the_same_request_gets_the_same_id_in_the_same_epoch_only(epoch: int, request: str) -> None:
    assert transaction_id(epoch, request) == transaction_id(epoch, request)
    assert transaction_id(epoch, request) != transaction_id(epoch + 1, request)
    assert transaction_id(epoch, request) != transaction_id(epoch, request + "x")


@given(epochs, requests)
def test_halves_and_text_say_the_same(epoch: int, request: str) -> None:
    id = transaction_id(epoch, request)
    assert text_of(*halves(id)) == id
    assert UUID(id).int == (halves(id)[0] << 64) | halves(id)[1]


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1))
def test_whatever_halves_a_client_sends_come_back_as_they_were(high: int, low: int) -> None:
    assert halves(text_of(high, low)) == (high, low)
    assert text_of(high % 2**64, low % 2**64) == text_of(high, low)


def test_the_worked_example_of_the_reference() -> None:
    id = text_of(0, 1)
    assert id == "00000000-0000-0000-0000-000000000001"
    names = [transaction_segment_name("sc", "st", number, *halves(id)) for number in (0, 1)]
    assert names == [f"sc/st/{n}.#epoch.0#transaction.00000000000000000000000000000001" for n in (0, 1)]
