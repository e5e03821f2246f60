"""From management webhooks to what follows."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.domain.errors import Scope
from engine.domain.management import CHATTER, Change, Consequences, consequences
from engine.domain.receipts import parse

NOW = datetime(2026, 10, 1, 12, tzinfo=UTC)
EARLIER = NOW - timedelta(minutes=5)
FIELDS = [
    "message_template_status_update",
    "message_template_quality_update",
    "account_update",
    "account_alerts",
    "phone_number_quality_update",
    "business_capability_update",
    "user_preferences",
    "something_new",
    *CHATTER,
]
KEYS = [
    "event", "message_template_name", "message_template_language", "other_info", "title", "ban_info", "waba_ban_state",
    "restriction_info", "restriction_type", "expiration", "user_preferences", "wa_id", "value", "timestamp",
    "waba_info", "waba_id", "display_phone_number",
]  # fmt: skip
WORDS = [
    "PAUSED", "APPROVED", "DISABLED_UPDATE", "DISABLE", "ACCOUNT_RESTRICTION", "RESTRICTED_BIZ_INITIATED_MESSAGING",
    "stop", "resume", "en_US",
]  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4) | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6),
    max_leaves=25,
)


def follows(
    field: str, value: dict[str, Any], *, at: datetime | None = EARLIER, account: str | None = "WABA"
) -> Consequences:
    return consequences(Change(field, account, at, value), NOW)


def template(event: str, **more: Any) -> Consequences:
    value = {"event": event, "message_template_name": "sale", "message_template_language": "en-US"}
    return follows("message_template_status_update", value | more)


def account(event: str, **more: Any) -> Consequences:
    return follows("account_update", {"event": event} | more)


@pytest.mark.parametrize(
    "event",
    ["PAUSED", "DISABLED", "REJECTED", "DELETED", "PENDING_DELETION", "PENDING", "ARCHIVED", "paused"],
)
def test_a_template_that_cannot_be_sent_stops_in_its_own_language(event: str) -> None:
    done = template(event, reason="NONE", other_info={"title": "FIRST_PAUSE"})
    [stop] = done.stops
    assert (stop.scope, stop.key, stop.code, stop.until) == (Scope.TEMPLATE, "WABA/sale/en_US", None, None)
    assert "sale" in stop.reason
    assert "FIRST_PAUSE" in stop.reason
    assert done.at == EARLIER
    assert done.heals == ()


@pytest.mark.parametrize("event", ["APPROVED", "REINSTATED", "UNARCHIVED", "UNPAUSE"])
def test_a_template_that_can_be_sent_again_heals_the_same_key(event: str) -> None:
    done = template(event)
    assert done.stops == ()
    assert [(heal.scope, heal.key) for heal in done.heals] == [(Scope.TEMPLATE, "WABA/sale/en_US")]
    assert template("PAUSED", other_info={"title": "UNPAUSE"}).heals == template("UNPAUSE").heals


@pytest.mark.parametrize("event", ["FLAGGED", "IN_APPEAL", "LIMIT_EXCEEDED", "LOCKED", "A_WORD_TO_COME", ""])
def test_other_words_about_a_template_are_events(event: str) -> None:
    done = template(event)
    assert (done.stops, done.heals) == ((), ())
    assert done.event is not None
    assert done.event.target == "WABA/sale/en_US"


@pytest.mark.parametrize("missing", ["message_template_name", "message_template_language"])
def test_a_template_without_its_name_or_language_stops_nothing(missing: str) -> None:
    assert template("PAUSED", **{missing: None}).stops == ()


@pytest.mark.parametrize(
    "more",
    [
        {"event": "ACCOUNT_DELETED"},
        {
            "event": "DISABLED_UPDATE",
            "ban_info": {"waba_ban_state": "DISABLE", "waba_ban_date": "April 17, 2025"},
        },
        {"event": "PARTNER_REMOVED"},
        {"event": "PARTNER_APP_UNINSTALLED"},
        {"event": "ACCOUNT_OFFBOARDED"},
    ],
)
def test_a_lost_or_banned_account_stops(more: dict[str, Any]) -> None:
    [stop] = follows("account_update", more).stops
    assert (stop.scope, stop.key, stop.until) == (Scope.ACCOUNT, "WABA", None)


def test_a_partner_event_names_the_account_apart_from_its_entry() -> None:
    [stop] = account("PARTNER_REMOVED", waba_info={"waba_id": "OTHER", "owner_business_id": "7"}).stops
    assert stop.key == "OTHER"


def test_a_restriction_waits_for_its_end() -> None:
    until = NOW + timedelta(hours=3)
    limits = [
        {"restriction_type": "RESTRICTED_BIZ_INITIATED_MESSAGING", "expiration": until.timestamp()},
        {"restriction_type": "RESTRICTED_ADD_PHONE_NUMBER_ACTION", "expiration": until.timestamp() * 2},
    ]
    [stop] = account("ACCOUNT_RESTRICTION", restriction_info=limits).stops
    assert stop.until == until
    [quoted] = account(
        "ACCOUNT_RESTRICTION", restriction_info=[limits[0] | {"expiration": f"{until.timestamp():.0f}"}]
    ).stops
    assert quoted.until == until


def test_a_restriction_without_an_end_needs_a_person() -> None:
    info = {"restriction_type": "RESTRICTED_BIZ_INITIATED_MESSAGING"}
    [stop] = account("ACCOUNT_RESTRICTION", restriction_info=[info]).stops
    assert stop.until is None


@pytest.mark.parametrize(
    ("kind", "seconds"),
    [
        ("RESTRICTED_BIZ_INITIATED_MESSAGING", -60),
        ("RESTRICTED_CUSTOMER_INITIATED_MESSAGING", 3600),
        ("RESTRICTED_UTILITY_TEMPLATES", 3600),
    ],
)
def test_a_restriction_that_is_over_or_of_another_kind_is_an_event(kind: str, seconds: float) -> None:
    end = (EARLIER + timedelta(seconds=seconds)).timestamp()
    done = account("ACCOUNT_RESTRICTION", restriction_info=[{"restriction_type": kind, "expiration": end}])
    assert done.stops == ()
    assert done.event is not None


def test_an_account_that_is_back_heals() -> None:
    for done in (
        account("DISABLED_UPDATE", ban_info={"waba_ban_state": "REINSTATE"}),
        account("ACCOUNT_RECONNECTED"),
    ):
        assert [(heal.scope, heal.key) for heal in done.heals] == [(Scope.ACCOUNT, "WABA")]


@pytest.mark.parametrize("event", ["ACCOUNT_VIOLATION", "PARTNER_ADDED", "MM_LITE_TERMS_SIGNED", "NEW"])
def test_other_words_about_an_account_are_events(event: str) -> None:
    done = account(event)
    assert (done.stops, done.heals) == ((), ())
    assert done.event is not None
    assert (done.event.target, done.event.event) == ("WABA", event)


def test_a_warning_of_a_ban_stops_nothing() -> None:
    assert account("DISABLED_UPDATE", ban_info={"waba_ban_state": "SCHEDULE_FOR_DISABLE"}).stops == ()


@pytest.mark.parametrize("limit", ["TIER_UNLIMITED", "TIER_2K", 2000, -1, "2000", None])
def test_limits_of_any_spelling_are_kept_as_they_came(limit: object) -> None:
    value = {"display_phone_number": "15550783881", "event": "THROUGHPUT_UPGRADE", "current_limit": limit}
    event = follows("phone_number_quality_update", value).event
    assert event is not None
    assert (event.target, event.event) == ("15550783881", "THROUGHPUT_UPGRADE")
    capability = follows("business_capability_update", {"max_daily_conversations_per_business": limit}).event
    assert capability is not None
    assert capability.target == "WABA"
    assert str(limit).lower() in str(capability.detail).lower().replace("null", "none")


def test_people_stop_marketing_and_want_it_again() -> None:
    wishes = [
        {
            "wa_id": "16505551234",
            "category": "marketing_messages",
            "value": "stop",
            "timestamp": int(EARLIER.timestamp()),
        },
        {
            "wa_id": "16505551235",
            "category": "marketing_messages",
            "value": "resume",
            "timestamp": str(int(EARLIER.timestamp())),
        },
        {"wa_id": "16505551236", "category": "something_else", "value": "stop"},
        {"wa_id": "16505551237", "value": "later"},
        {"user_id": "US.1", "category": "marketing_messages", "value": "stop"},
        "odd",
    ]
    done = follows("user_preferences", {"user_preferences": wishes})
    assert [(wish.phone, wish.stops, wish.at) for wish in done.preferences] == [
        ("+16505551234", True, EARLIER),
        ("+16505551235", False, EARLIER),
    ]
    assert "16505551234" not in repr(done)
    assert done.event is not None
    assert done.event.detail is None


def test_fields_that_nobody_knows_are_events_without_their_content() -> None:
    event = follows("something_new", {"event": "HAPPENED", "phone": "16505551234"}).event
    assert event is not None
    assert (event.kind, event.target, event.event, event.detail) == (
        "something_new",
        "WABA",
        "HAPPENED",
        None,
    )
    assert follows("something_new", {}, account=None).event is not None


@pytest.mark.parametrize("field", sorted(CHATTER))
def test_single_conversations_are_no_events(field: str) -> None:
    assert follows(field, {"message_echoes": [{"from": "1"}]}).event is None


def test_a_time_that_cannot_be_is_the_receipts() -> None:
    value = {"event": "ACCOUNT_DELETED"}
    for at in (None, NOW - timedelta(days=400), NOW + timedelta(hours=1)):
        assert follows("account_update", value, at=at).at == NOW
    assert follows("account_update", value, at=NOW - timedelta(days=7)).at == NOW - timedelta(days=7)


def test_the_same_change_has_the_same_key_and_another_has_not() -> None:
    one = template("PAUSED")
    assert one.key == template("PAUSED").key
    assert len({one.key, template("DISABLED").key, follows("account_update", {}).key}) == 3
    later = consequences(Change("account_update", "WABA", NOW, {}), NOW)
    assert later.key != follows("account_update", {}).key


def test_a_body_as_documented_is_read_whole() -> None:
    body = (
        b'{"entry":[{"id":"102290129340398","time":1751247548,"changes":[{"field":"message_template_status_update",'
        b'"value":{"event":"PAUSED","message_template_id":1689556908129832,"message_template_name":"order_confirmation",'
        b'"message_template_language":"en_US","reason":"NONE","message_template_category":"MARKETING",'
        b'"other_info":{"title":"FIRST_PAUSE","description":"..."}}}]},7,{"changes":[8,{"value":9}]}],'
        b'"object":"whatsapp_business_account"}'
    )
    [change] = parse(body).changes
    assert (change.kind, change.account) == ("message_template_status_update", "102290129340398")
    assert change.at == datetime.fromtimestamp(1751247548, UTC)
    [stop] = consequences(change, NOW).stops
    assert stop.key == "102290129340398/order_confirmation/en_US"


@given(
    st.sampled_from(FIELDS),
    st.dictionaries(st.sampled_from(KEYS), JSON, max_size=8),
    st.none() | st.text(max_size=3),
)
def test_nothing_that_stands_in_a_value_raises(field: str, value: dict[str, Any], of: str | None) -> None:
    follows(field, value, account=of)
