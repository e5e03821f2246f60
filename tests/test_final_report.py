"""What a run says at its end, campaign by campaign."""

from dataclasses import replace

from engine.domain.control import ControlPhone, ControlStanding
from engine.domain.recipient import State
from engine.postgres.books import Tallies
from engine.postgres.campaigns import CampaignReport, CampaignRow
from engine.report import lines_of

ROW = CampaignRow(
    campaign_id=1, name="may", state="finished", reason=None, planned=10, template="t", language="pt_BR", priority=0,
    deadline=None, unknown_policy="hold", max_failed=1.0, started_at=None, finished_at=None, numbers=("1",), rate=80.0,
)  # fmt: skip
BOOKS = dict.fromkeys(State, 0) | {State.READ: 7, State.SENT: 2, State.FAILED: 1}


def a_report(**tallies: object) -> CampaignReport:
    counters = Tallies(tries=12, attempts=10, accepted=9, errors={131026: 1})
    return CampaignReport(ROW, BOOKS, replace(counters, **tallies))  # type: ignore[arg-type]


def test_it_tells_the_books_the_tries_and_what_failed() -> None:
    head, books, tries, failed = lines_of(a_report(), None)
    assert head == "may: finished; planned 10"
    assert books == "  sent 2  read 7  failed 1"
    assert tries == "  tries 12  attempts 10  accepted 9  possible duplicates 0; the books balance"
    assert failed.startswith("  failed with 131026 ")


def test_more_accepted_than_attempts_is_explained() -> None:
    tries = lines_of(a_report(accepted=12), None)[2]
    assert "accepted 12 (2 more accepted by webhook, their answers were lost)  possible" in tries


def test_books_that_do_not_balance_are_said() -> None:
    wrong = replace(a_report(), counts={**BOOKS, State.READ: 6})
    assert lines_of(wrong, None)[2].endswith("the books DO NOT BALANCE: run tidegate audit")


def test_control_phones_have_a_line_of_their_own_and_no_phone_in_it() -> None:
    phones = (
        ControlPhone("+5511988880001", 3, 3, 0, 0, 3, "read", None),
        ControlPhone("+5511988880002", 3, 2, 1, 0, 3, "sent", 720.0),
    )
    told = lines_of(a_report(), ControlStanding(3, 600.0, phones))[3]
    assert told == (
        "  2 control phones, not counted above: 3 rounds, 6 sent, 5 delivered, 1 failed; "
        "1 waits for a message that has left"
    )


def test_a_campaign_whose_numbers_people_paused_is_paused() -> None:
    held = replace(ROW, state="held", held_by="stops", paused_by=("ana", "bo@bastion"))
    assert lines_of(replace(a_report(), campaign=held), None)[0] == "may: paused; planned 10"
    by_engine = replace(held, paused_by=("ana", "auto"))
    assert lines_of(replace(a_report(), campaign=by_engine), None)[0] == "may: held; planned 10"
