"""What the ledger remembers and what is counted over it."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from engine.simulator.ledger import Ledger, Tally, row_of

MINUTE = 60_000_000


def book(*arrivals: int, accepted: bool = True) -> Ledger:
    ledger = Ledger(unix_minus_monotonic_us=1_000_000, salt=5)
    for at in arrivals:
        ledger.record(at, "1", "accepted", accepted=accepted, to="+16505551234", wa_id="16505551234")
    return ledger


def counted(ledger: Ledger, window_us: int = 1_000_000, slice_size: int = 1000) -> dict[str, Any]:
    tally = Tally(ledger, window_us)
    for start in range(0, len(ledger), slice_size):
        tally.add(start, min(start + slice_size, len(ledger)))
    return tally.result()


def test_an_entry_gives_back_what_was_recorded() -> None:
    ledger = Ledger(unix_minus_monotonic_us=1_000_000, salt=5)
    wa = "16505551234"
    n = ledger.record(7, "1", "accepted", accepted=True, to="+" + wa, wa_id=wa, token="c:1:1")
    entry = ledger.entry(n)
    assert (entry.n, entry.at_us, entry.unix_us, entry.number) == (1, 7, 1_000_007, "1")
    assert (entry.to, entry.token, entry.outcome, entry.code) == ("+16505551234", "c:1:1", "accepted", 0)
    assert entry.accepted
    assert entry.wamid == ledger.wamid(1)


def test_the_recipient_is_kept_as_it_was_written_when_that_differs_from_the_id() -> None:
    ledger = book()
    ledger.record(0, "1", "accepted", to="+1 (650) 555-1234", wa_id="16505551234")
    assert ledger.entry(1).to == "+1 (650) 555-1234"


def test_a_request_that_was_not_accepted_has_no_message_id() -> None:
    ledger = book()
    ledger.record(0, "1", "refused", code=130429, to="+16505551234", wa_id="16505551234")
    assert (ledger.entry(1).wamid, ledger.entry(1).code, ledger.entry(1).accepted) == (None, 130429, False)


def test_message_ids_never_repeat_within_a_run_nor_between_two_runs() -> None:
    one, other = Ledger(0, salt=1), Ledger(0, salt=987654321)
    ids = {ledger.wamid_for(n, "16505551234") for ledger in (one, other) for n in range(5000)}
    assert len(ids) == 10_000


def test_entries_are_paged_by_number() -> None:
    ledger = book(*range(10))
    assert [entry.n for entry in ledger.entries(after=3, limit=4)] == [4, 5, 6, 7]
    assert [entry.n for entry in ledger.entries(after=8, limit=100)] == [9, 10]
    assert ledger.entries(after=10, limit=5) == []


def test_the_most_in_a_window_is_found_across_the_turn_of_a_second() -> None:
    numbers = counted(book(0, 600_000, 1_100_000, 1_200_000, 1_599_999, 3_000_000))["numbers"]
    assert numbers["1"]["most_accepted"] == 4


def test_the_window_excludes_what_arrived_exactly_its_length_ago() -> None:
    assert counted(book(0, 1_000_000))["numbers"]["1"]["most_accepted"] == 1
    assert counted(book(0, 999_999))["numbers"]["1"]["most_accepted"] == 2


def test_a_wider_window_can_be_asked_for() -> None:
    assert counted(book(0, 1_000_000, 5_000_000), window_us=MINUTE)["numbers"]["1"]["most_accepted"] == 3


@given(
    st.lists(st.integers(min_value=0, max_value=4_000_000), min_size=1, max_size=60).map(sorted),
    st.integers(min_value=1, max_value=70),
)
def test_the_sliding_count_equals_the_count_by_definition(arrivals: list[int], slice_size: int) -> None:
    by_definition = max(sum(end - 1_000_000 < at <= end for at in arrivals) for end in arrivals)
    assert counted(book(*arrivals), slice_size=slice_size)["numbers"]["1"]["most_requests"] == by_definition


def test_numbers_are_counted_apart_and_refusals_by_code() -> None:
    ledger = book(0, 1)
    for code in (130429, 130429, 131000):
        ledger.record(2, "2", "refused", code=code)
    numbers = counted(ledger)["numbers"]
    assert (numbers["1"]["accepted"], numbers["1"]["refused"]) == (2, {})
    assert (numbers["2"]["accepted"], numbers["2"]["refused"]) == (0, {"130429": 2, "131000": 1})
    assert (numbers["2"]["requests"], numbers["2"]["most_requests"], numbers["2"]["most_accepted"]) == (
        3,
        3,
        0,
    )


def test_a_row_accepted_under_two_tries_is_reported() -> None:
    ledger = book()
    for token, accepted in [
        ("c:1:1", True),
        ("c:1:2", True),
        ("c:2:1", False),
        ("c:2:2", True),
        ("c:1:3", True),
    ]:
        ledger.record(0, "1", "accepted", accepted=accepted, token=token)
    result = counted(ledger)
    assert (result["repeated_rows"], result["repeated"]) == (1, {"c:1": 3})


def test_the_row_is_the_token_without_the_number_of_the_try() -> None:
    assert row_of("tg1:ab12:77:3") == "tg1:ab12:77"
    assert row_of("plain") == "plain"
