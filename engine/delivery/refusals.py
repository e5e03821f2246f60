"""How far refusals by webhook reach: the breakers that they trip, and the campaigns that they open again.

With a payment problem, every request is answered 200 and every message fails seconds later: only webhooks tell.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from engine.domain.breaker import Stop, country_key, over_number, probe_time, template_key
from engine.domain.errors import STOPS, Meaning, Scope, meaning
from engine.domain.outcome import Refused, hold_reason, own_words
from engine.domain.receipts import Fault
from engine.postgres import provider
from engine.postgres.pool import Executor
from engine.postgres.provider import Home, Sender
from engine.postgres.statuses import Refusal


@dataclass(slots=True)
class Reach:
    """Stops with the time of their evidence, and why each campaign, if it was finished, has a pending row again."""

    stops: list[tuple[Stop, datetime]] = field(default_factory=list)
    finished: dict[int, str] = field(default_factory=dict)


async def from_refusals(db: Executor, refusals: Sequence[Refusal]) -> Reach:
    """What new refusals of single messages say about their number, account, credential, template or country.

    Evidence is as old as its try: whether it still counts is for the breaker to say. A campaign is opened again in
    any case, for it has a row to send.
    """
    reach = Reach()
    wide = [(one, meant) for one in refusals if (meant := meaning(one.code, details=one.raw)).scope in STOPS]
    if not wide:
        return reach
    homes = await provider.homes(db, {one.lane_id for one, _ in wide})
    senders = {one.number_id: one for one in await provider.senders(db, {one.number_id for one, _ in wide})}
    for one, meant in wide:
        home, sender = homes.get(one.lane_id), senders.get(one.number_id)
        reason = hold_reason(Refused(one.code, meant, said=_said(one.raw)))
        if home is not None and one.sent_back:
            reach.finished[home.campaign_id] = reason
        key = _key(meant, sender, home) if sender is not None else None
        if key is not None:  # None: the number was removed since
            probe_at = probe_time(one.code, one.left)
            reach.stops.append((Stop(meant.scope, key, one.code, reason, probe_at=probe_at), one.left))
    return reach


async def from_errors(db: Executor, faults: Sequence[tuple[datetime, Fault]]) -> list[tuple[Stop, datetime]]:
    """What errors of whole numbers stop: only what a number alone names, and only numbers of ours."""
    wide = [
        (at, fault, meant)
        for at, fault in faults
        if fault.code is not None
        and fault.number is not None
        and (meant := meaning(fault.code, details=f"{fault.title} {fault.details}")).scope in STOPS
    ]
    if not wide:
        return []
    named = [fault.number for _, fault, _ in wide if fault.number]
    senders = {sender.id: sender for sender in await provider.senders(db, (), named)}
    stops = []
    for at, fault, meant in wide:
        sender = senders.get(fault.number or "")
        key = _key(meant, sender, None) if sender is not None else None
        if key is not None:
            said = own_words(fault.title, fault.details)
            reason = hold_reason(Refused(fault.code or 0, meant, said=said))
            stops.append((Stop(meant.scope, key, fault.code, reason), at))
    return stops


def _said(raw: str) -> str:
    """Of a refusal as evidence keeps it."""
    try:
        kept = json.loads(raw)
    except ValueError:
        return ""
    parts = (kept.get("title"), kept.get("details")) if isinstance(kept, dict) else ()
    return own_words(*(part for part in parts if isinstance(part, str)))


def _key(meant: Meaning, sender: Sender, home: Home | None) -> str | None:
    match meant.scope:
        case Scope.TEMPLATE:
            return template_key(sender.account, home.template, home.language) if home else None
        case Scope.COUNTRY:
            return country_key(sender.account, home.country) if home else None
        case scope:
            return over_number(sender.id, sender.account, sender.token_ref)[scope]
