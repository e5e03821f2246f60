"""What a batch of bodies comes to, inside one transaction: rows, then people, then what reaches beyond them.

Locks are taken in one order by everybody: rows by id, numbers seen, keys seen, counts of inbound messages, people,
campaigns, breakers, and last the control row, which the journal raises.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import structlog

from engine.delivery.refusals import Reach, from_errors, from_refusals
from engine.domain.breaker import Heal
from engine.domain.evidence import fold
from engine.domain.inbound import Inbound, StopWords
from engine.domain.management import Consequences, Event, Preference, consequences
from engine.domain.receipts import Fault, Parsed, Receipt
from engine.postgres import breakers, journal, provider, statuses, suppressions, unmatched, webhooks
from engine.postgres.breakers import Breaker
from engine.postgres.pool import Executor
from engine.postgres.statuses import Applied, Refusal
from engine.postgres.suppressions import OptOut

log = structlog.get_logger(__name__)

HELD_BY = "stops"
"""campaign.held_by of a finished campaign that is opened again: control lets it go on when its stops are lifted."""

STOPPED_MARKETING = 131050
ERROR_HOUR = "%Y-%m-%dT%H"

Read = Sequence[tuple[datetime, Parsed | None]]
"""Bodies with the moment of their receipt; None: it could not be read."""


@dataclass(slots=True)
class Outcome:
    """What was done."""

    applied: Applied = field(default_factory=Applied)
    kept: int = 0
    """Statuses put aside because they matched nothing yet."""
    tripped: list[Breaker] = field(default_factory=list)
    healed: list[Breaker] = field(default_factory=list)
    reopened: list[tuple[str, str]] = field(default_factory=list)
    opted_out: int = 0
    """New lines among the suppressed; a person may have several spellings."""
    opted_in: int = 0
    events: int = 0
    written: list[tuple[datetime, Inbound]] = field(default_factory=list)
    """What people wrote, each message once."""


async def apply(db: Executor, read: Read, stop_words: StopWords) -> Outcome:
    """Apply bodies in the caller's transaction. The same bodies again change nothing."""
    outcome = Outcome()
    bodies = [(at, parsed) for at, parsed in read if parsed is not None]
    outcome.applied, outcome.kept = await _statuses(db, bodies)
    await _seen(db, bodies)
    messages = [(at, message) for at, parsed in bodies for message in parsed.messages]
    changes = [consequences(change, at) for at, parsed in bodies for change in parsed.changes]
    faults = [(at, fault) for at, parsed in bodies for fault in parsed.errors]
    outcome.written, changes, faults = await _once(db, messages, changes, faults)
    await webhooks.count_inbound(db, [(m.number, at) for at, m in outcome.written if m.number])
    await _people(db, outcome, changes, stop_words)
    events = [(one.at, one.event) for one in changes if one.event is not None]
    events += [(at, _error_event(fault)) for at, fault in faults]
    await provider.record(db, events)
    outcome.events = len(events)
    reach = await from_refusals(db, outcome.applied.refusals)
    reach.stops += [(stop, one.at) for one in changes for stop in one.stops]
    reach.stops += await from_errors(db, faults)
    await _reach(db, outcome, reach, [(heal, one.at) for one in changes for heal in one.heals])
    return outcome


async def settle_refusals(db: Executor, applied: Applied) -> Outcome:
    """What follows from statuses that were applied later than they came, in the caller's transaction."""
    outcome = Outcome(applied)
    await _people(db, outcome, [], StopWords(()))
    await _reach(db, outcome, await from_refusals(db, applied.refusals), [])
    return outcome


def tell(outcome: Outcome) -> None:
    """Log what stops or goes on, once it is committed."""
    for one in outcome.tripped:
        log.error("held", scope=one.scope.value, key=one.key, reason=one.reason)
    for one in outcome.healed:
        log.info("healed", scope=one.scope.value, key=one.key)
    for name, reason in outcome.reopened:
        log.error("a finished campaign is open again", campaign=name, reason=reason)


async def _statuses(db: Executor, bodies: Iterable[tuple[datetime, Parsed]]) -> tuple[Applied, int]:
    receipts: list[Receipt] = [receipt for _, parsed in bodies for receipt in parsed.statuses]
    applied, rest = await statuses.apply(db, fold(receipts))
    return applied, await unmatched.keep(db, rest)


async def _seen(db: Executor, bodies: Iterable[tuple[datetime, Parsed]]) -> None:
    """In the order of receipt: the last one stays."""
    await webhooks.seen(
        db, {receipt.number: at for at, parsed in bodies for receipt in parsed.statuses if receipt.number}
    )


async def _once(
    db: Executor,
    messages: list[tuple[datetime, Inbound]],
    changes: list[Consequences],
    faults: list[tuple[datetime, Fault]],
) -> tuple[list[tuple[datetime, Inbound]], list[Consequences], list[tuple[datetime, Fault]]]:
    """Those that were not there before, each once. A message without an id is taken as it comes."""
    if not (messages or changes or faults):
        return messages, changes, faults
    by_key = {message.wamid: (at, message) for at, message in reversed(messages) if message.wamid}
    by_hash = {one.key: one for one in reversed(changes)}
    by_hour = {_error_key(at, fault): (at, fault) for at, fault in reversed(faults)}
    fresh = await provider.first_time(db, {*by_key, *by_hash, *by_hour})
    return (
        [pair for key, pair in reversed(by_key.items()) if key in fresh]
        + [pair for pair in messages if not pair[1].wamid],
        [one for key, one in reversed(by_hash.items()) if key in fresh],
        [pair for key, pair in reversed(by_hour.items()) if key in fresh],
    )


async def _people(
    db: Executor, outcome: Outcome, changes: Sequence[Consequences], stop_words: StopWords
) -> None:
    """Who does not want to be written to any more, and who does again."""
    wishes = [wish for one in changes for wish in one.preferences]
    leaving = await _said_stop(db, outcome.written, stop_words)
    leaving += await _refused_marketing(db, outcome.applied.refusals)
    leaving += [OptOut(w.phone, "marketing", "user_preferences", None, w.at) for w in wishes if w.stops]
    outcome.opted_out = await suppressions.add(db, leaving)
    outcome.opted_in = await suppressions.resume_marketing(db, _back(wishes))


def _back(wishes: Sequence[Preference]) -> list[tuple[str, datetime]]:
    return [(wish.phone, wish.at) for wish in wishes if not wish.stops]


async def _said_stop(
    db: Executor, written: Sequence[tuple[datetime, Inbound]], stop_words: StopWords
) -> list[OptOut]:
    """Who wrote a stop word to a number of ours: the phone they wrote from, and the one that our message went to."""
    said = [(at, m, word) for at, m in written if (word := stop_words.said(m)) is not None]
    named = [m.number for _, m, _ in said if m.number]
    ours = {sender.id for sender in await provider.senders(db, (), named)} if named else set()
    said = [one for one in said if one[1].number in ours]
    answered = await suppressions.phones_answered(db, [m.context for _, m, _ in said if m.context])
    people = []
    for at, message, word in said:
        phones = {message.phone, answered.get(message.context or "")} - {None}
        people += [OptOut(phone, "all", "stop", word, at) for phone in sorted(filter(None, phones))]
    return people


async def _refused_marketing(db: Executor, refusals: Sequence[Refusal]) -> list[OptOut]:
    stopped = {one.row: one.left for one in refusals if one.code == STOPPED_MARKETING}
    phones = await suppressions.phones_of(db, stopped)
    return [OptOut(phone, "marketing", "131050", None, stopped[row]) for row, phone in phones.items()]


async def _reach(
    db: Executor, outcome: Outcome, reach: Reach, heals: Sequence[tuple[Heal, datetime]]
) -> None:
    """Campaigns, then breakers, then the journal: the row that all share comes last."""
    if not (reach.stops or reach.finished or heals):
        return
    outcome.reopened = await provider.reopen(db, reach.finished, HELD_BY)
    places = [(stop.scope, stop.key) for stop, _ in reach.stops] + [(h.scope, h.key) for h, _ in heals]
    await breakers.lock(db, places)
    outcome.tripped = await breakers.trip_all(db, reach.stops)
    for heal, at in sorted(heals, key=lambda pair: pair[1]):
        healed = await breakers.heal(db, heal.scope, heal.key, at, heal.reason)
        outcome.healed += [healed] if healed is not None else []
    for name, reason in outcome.reopened:
        await journal.write(
            db, journal.Entry("auto", "engine", "hold campaign", name, reason, "finished", "held")
        )


def _error_event(fault: Fault) -> Event:
    return Event(
        "errors", fault.number or "?", str(fault.code), f"{fault.title} {fault.details}".strip() or None
    )


def _error_key(at: datetime, fault: Fault) -> str:
    """Errors of a number carry no time: the same one counts once an hour, come again or said anew."""
    return f"error:{fault.number}:{fault.code}:{at.strftime(ERROR_HOUR)}"
