"""A snapshot in which nothing is wrong: one number that sends at its rate for one campaign that is half done."""

from dataclasses import replace
from datetime import UTC, datetime

from engine.domain.recipient import State
from engine.domain.snapshot import CampaignView, NumberView, Percentiles, Snapshot

AT = datetime(2026, 3, 14, 3, 14, 9, tzinfo=UTC)
NUMBER = "106540352242922"
DISPLAY = "+5511988880001"


def a_number(**fields: object) -> NumberView:
    """Active, 80/s of 80."""
    base = NumberView(
        id=NUMBER, display=DISPLAY, account="WABA1", owner="eng1", epoch=3, state="active", reason=None, until=None,
        rate=80.0, limit=100.0, ceiling=80.0, accepted_last_second=80, tries_last_second=80, sent_per_second=79.6,
        tries_per_second=79.8, token_wait=Percentiles(0.1, 0.2, 0.3, 4790), latency=Percentiles(0.2, 0.3, 0.6, 4790),
        bound_by="bucket", in_flight=24, pending=2000, stuck=0, unknown=0, error_share=0.0, top_error=None,
        last_accepted_s=0.1, campaigns=("reminder",), throttled_share=0.0, granted=79.0,
    )  # fmt: skip
    return replace(base, **fields)  # type: ignore[arg-type]


def counts(**words: int) -> dict[str, int]:
    """Rows by state's word; those not named are zero."""
    return {state.word: words.get(state.word, 0) for state in State}


def a_campaign(**fields: object) -> CampaignView:
    """Running, half of its 4,000 rows read."""
    base = CampaignView(
        name="reminder", state="running", reason=None, planned=4000, counts=counts(pending=2000, read=2000),
        accepted=2000, tries=2010, attempts=2000, possible_duplicates=0, rate=80.0, eta_s=25.0, started_at=AT,
        finished_at=None, deadline=None, try_budget=12_000, delivered_share=0.9, delivered_norm=0.95,
    )  # fmt: skip
    return replace(base, **fields)  # type: ignore[arg-type]


def quiet(**fields: object) -> Snapshot:
    """All is well."""
    base = Snapshot(
        at=AT, seq=1, node="eng1", host="bastion", pid=4711, uptime_s=600.0, author="ana", read_only=False,
        draining=False, numbers=(a_number(),), campaigns=(a_campaign(),), webhook_lag_s=0.0,
    )  # fmt: skip
    return replace(base, **fields)  # type: ignore[arg-type]
