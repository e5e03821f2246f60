"""One picture out of many nodes'."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from engine.domain.merge import DEAD_AFTER, Node, merge
from engine.domain.snapshot import AlertView, CampaignView, ErrorView, EventView, NumberView, Snapshot

NOW = datetime(2026, 3, 14, 3, 14, 9, tzinfo=UTC)
ONE, TWO = UUID(int=1), UUID(int=2)
A, B = "106540352242922", "106540352242923"


def number(key: str, sent: float = 0.0) -> NumberView:
    return NumberView(
        id=key, display=key, account="w", owner="n", epoch=1, state="active", reason=None, until=None, rate=80.0,
        limit=100.0, ceiling=80.0, accepted_last_second=int(sent), tries_last_second=int(sent), sent_per_second=sent,
        tries_per_second=sent, token_wait=None, latency=None, bound_by="bucket", in_flight=3, pending=5, stuck=0,
        unknown=0, error_share=None, top_error=None, last_accepted_s=0.1,
    )  # fmt: skip


def says(node: str, a: float, b: float, **fields: object) -> Snapshot:
    base = Snapshot(
        at=NOW, seq=1, node=node, host="h", pid=1, uptime_s=60.0, author="x", read_only=False, draining=False,
        numbers=(number(A, a), number(B, b)), version=7, accepted_series=(a, a + b),
        errors=(ErrorView(131026, "undeliverable", "recipient", 3, (1, 2)),),
        alerts=(AlertView("k", "warning", "t", "c", "do", NOW, True, False),), unknown=4,
        events=(EventView(NOW, "auto", f"by {node}"), EventView(NOW, "ana", "RATE")),
    )  # fmt: skip
    return replace(base, **fields)  # type: ignore[arg-type]


def base() -> Snapshot:
    return Snapshot(
        at=NOW, seq=9, node="", host="me", pid=2, uptime_s=1.0, author="ana", read_only=True, draining=False
    )


def merged(*nodes: Node, owners: dict[str, UUID] | None = None, own: Snapshot | None = None) -> Snapshot:
    events = (EventView(NOW, "ana", "rate, from the journal"),)
    return merge(nodes, {A: ONE, B: TWO} if owners is None else owners, events, NOW, own or base())


def campaign(state: str = "running", **counts: int) -> CampaignView:
    return CampaignView(
        name="reminder", state=state, reason=None, planned=200, counts=counts, accepted=21, tries=21, attempts=21,
        possible_duplicates=0, rate=80.0, eta_s=None, started_at=NOW, finished_at=None, deadline=None,
    )  # fmt: skip


def rows_alone(*campaigns: CampaignView) -> Snapshot:
    """What the database knows of both numbers and these campaigns."""
    return replace(base(), numbers=(number(A, 70), number(B)), campaigns=campaigns)


def node(key: UUID, name: str, age: float, snapshot: Snapshot | None) -> Node:
    return Node(key, name, "h", 1, False, age, snapshot)


def test_each_number_is_shown_as_its_owner_sees_it() -> None:
    whole = merged(node(ONE, "eng1", 0.2, says("eng1", 70, 0)), node(TWO, "eng2", 0.4, says("eng2", 0, 60)))
    assert [(n.id, n.owner, n.sent_per_second) for n in whole.numbers] == [(A, "eng1", 70), (B, "eng2", 60)]
    assert [(n.name, n.numbers, n.sent_per_second) for n in whole.nodes] == [
        ("eng1", (A,), 70),
        ("eng2", (B,), 60),
    ]


def test_figures_of_nodes_are_summed_and_those_of_the_database_are_taken_once() -> None:
    whole = merged(node(ONE, "eng1", 0.2, says("eng1", 70, 0)), node(TWO, "eng2", 0.4, says("eng2", 0, 60)))
    assert list(whole.accepted_series) == [70, 130]
    assert [(e.code, e.count, e.trend) for e in whole.errors] == [(131026, 6, (2, 4))]
    assert whole.unknown == 4
    assert [a.key for a in whole.alerts] == ["k"]


def test_the_picture_is_as_old_as_the_oldest_figure_in_it() -> None:
    whole = merged(node(ONE, "eng1", 0.2, says("eng1", 70, 0)), node(TWO, "eng2", 3.5, says("eng2", 0, 60)))
    assert whole.at == NOW - timedelta(seconds=3.5)


def test_nothing_that_a_dead_node_said_is_shown_as_true() -> None:
    gone = node(TWO, "eng2", DEAD_AFTER + 1, says("eng2", 0, 60))
    whole = merged(node(ONE, "eng1", 0.2, says("eng1", 70, 0)), gone)
    second = whole.numbers[1]
    assert (second.owner, second.sent_per_second, second.in_flight) == ("eng2 (dead)", 0, 0)
    assert list(whole.accepted_series) == [70, 70]
    assert [(n.name, n.alive, n.sent_per_second) for n in whole.nodes] == [
        ("eng1", True, 70),
        ("eng2", False, 0),
    ]
    assert whole.alerts[0].target == "node eng2"
    assert whole.alerts[0].severity == "critical"
    assert whole.at == NOW - timedelta(seconds=0.2)


def test_while_a_living_node_waits_for_a_dead_one_s_lease_its_number_says_so() -> None:
    waiting = replace(number(B), owner=None, state="waiting", reason="its lease", bound_by="lease", until=NOW)
    first = replace(says("eng1", 70, 0), numbers=(number(A, 70), waiting))
    whole = merged(
        node(ONE, "eng1", 0.2, first), node(TWO, "eng2", 60, says("eng2", 0, 60)), owners={A: ONE, B: TWO}
    )
    shown = whole.numbers[1]
    assert (shown.owner, shown.state, shown.bound_by, shown.until) == ("eng2 (dead)", "waiting", "lease", NOW)


def test_with_all_nodes_dead_the_rows_of_the_database_are_shown_and_nothing_that_a_node_said() -> None:
    whole = merged(
        node(ONE, "eng1", 60, says("eng1", 70, 0)),
        own=rows_alone(campaign(pending=176, claimed=3)),
        owners={A: ONE},
    )
    assert [(n.owner, n.bound_by, n.sent_per_second, n.pending) for n in whole.numbers] == [
        ("eng1 (dead)", "no node", 0, 5),
        (None, "no node", 0, 5),
    ]
    assert [c.name for c in whole.campaigns] == ["reminder"]
    assert whole.accepted_series == ()
    assert whole.node == "0/1 nodes"
    worst = whole.alerts[0]
    assert f"{worst.target} {worst.cause}" == "no engine runs: 179 rows pending: start `tidegate run`"
    assert worst.since == NOW - timedelta(seconds=60)


@pytest.mark.parametrize(
    ("campaigns", "says_what"),
    [
        ((campaign(pending=1),), "1 row pending"),
        ((campaign(sending=2, unknown=1),), "3 rows not settled"),
        ((campaign("scheduled", pending=9),), "reminder is scheduled"),
        ((campaign("paused", pending=9), campaign("draft", pending=9), campaign("finished", sent=200)), None),
    ],
)
def test_no_engine_is_an_alert_where_something_waits_for_one(
    campaigns: tuple[CampaignView, ...], says_what: str | None
) -> None:
    alerts = merged(own=rows_alone(*campaigns)).alerts
    assert [a.cause for a in alerts] == ([f"runs: {says_what}: start `tidegate run`"] if says_what else [])


def test_a_dead_node_whose_numbers_others_have_taken_over_is_history() -> None:
    gone = node(TWO, "eng2", 60, says("eng2", 0, 60))
    whole = merged(node(ONE, "eng1", 0.2, says("eng1", 70, 60)), gone, owners={A: ONE, B: ONE})
    assert whole.node == "eng1"
    assert [(a.target, a.active) for a in whole.alerts if a.severity == "critical"] == [("node eng2", False)]
    assert [n.name for n in whole.nodes] == ["eng1", "eng2"]


def test_a_death_that_a_living_node_tells_of_is_told_once() -> None:
    gone = node(TWO, "eng2", 60, says("eng2", 0, 60))
    told = AlertView("node_lost:eng2", "critical", "node eng2", "DEAD", "do", NOW, True, False)
    whole = merged(node(ONE, "eng1", 0.2, says("eng1", 70, 0, alerts=(told,))), gone)
    assert [a.key for a in whole.alerts] == [f"node dead:{TWO}"]


def test_of_a_node_that_was_only_started_anew_no_death_is_told() -> None:
    gone = node(TWO, "eng1", 60, says("eng1", 0, 60))
    whole = merged(node(ONE, "eng1", 0.2, says("eng1", 70, 60)), gone, owners={A: ONE, B: ONE})
    assert [a for a in whole.alerts if a.severity == "critical"] == []
    still_its = merged(node(ONE, "eng1", 0.2, says("eng1", 70, 60)), gone, owners={A: ONE, B: TWO})
    assert [a.active for a in still_its.alerts if a.severity == "critical"] == [True]
    assert still_its.node == "1/2 nodes"


def test_a_number_without_an_owner_belongs_to_nobody() -> None:
    whole = merged(node(ONE, "eng1", 0.2, says("eng1", 70, 0)), owners={A: ONE})
    assert [n.owner for n in whole.numbers] == ["eng1", None]


def test_the_desired_state_is_that_of_the_slowest_node() -> None:
    quick, slow = says("eng1", 1, 0, version=9), says("eng2", 0, 1, version=8)
    assert merged(node(ONE, "eng1", 0.1, quick), node(TWO, "eng2", 0.1, slow)).version == 8


def test_acts_of_people_come_from_the_journal_alone() -> None:
    whole = merged(node(ONE, "eng1", 0.2, says("eng1", 70, 0)))
    assert sorted(e.text for e in whole.events) == ["by eng1", "rate, from the journal"]


def test_the_viewer_keeps_its_own_name_and_rights() -> None:
    whole = merged(node(ONE, "eng1", 0.2, says("eng1", 70, 0)))
    assert (whole.author, whole.read_only, whole.host, whole.seq) == ("ana", True, "me", 9)


def test_a_younger_node_counts_as_nothing_before_its_start() -> None:
    young = says("eng2", 0, 60, accepted_series=(60.0,))
    whole = merged(node(ONE, "eng1", 0.2, says("eng1", 70, 0)), node(TWO, "eng2", 0.2, young))
    assert list(whole.accepted_series) == [70, 130]
