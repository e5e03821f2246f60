"""campaign report: what a campaign came to, as it is signed off."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from engine import clock
from engine.commands.act import Acts, Refused
from engine.domain.closing import Beat, Closing, Pace, Reason
from engine.domain.errors import MEANINGS, THROTTLES, describe
from engine.domain.recipient import State
from engine.postgres import audience_imports, books, campaign_reports, campaigns, controls
from engine.postgres.campaign_reports import Expired, Grant, Minute

SOURCES = {
    "person": "put on the list by a person",
    "import": "put on the list by a file",
    "stop": "wrote a stop word",
    "user_preferences": "switched marketing off in WhatsApp",
    "131050": "Meta says: wants no marketing (131050)",
}
THROTTLE_CODES = sorted(code for code, known in MEANINGS.items() if known.scope in THROTTLES)


class ReportCommands(Acts):
    """Reads only, so nothing is journalled."""

    async def report_campaign(self, name: str) -> Closing:
        """All figures are of one moment. Raises Refused when there is no such campaign."""
        async with (
            self._pool.acquire() as db,
            db.transaction(isolation="repeatable_read", readonly=True),
        ):
            rows = await campaigns.view(db, name)
            if not rows:
                raise Refused(
                    f"There is no campaign {name}: `tidegate campaign list` shows those that exist."
                )
            [row] = rows
            id_ = row.campaign_id
            counts = (await books.balances(db, id_)).get(id_, dict.fromkeys(State, 0))
            tallies = (await books.tallies(db, id_)).get(id_, books.Tallies())
            imports = await audience_imports.totals(db, id_)
            suppressed = await campaign_reports.suppressed(db, id_)
            expired = await campaign_reports.expired(db, id_)
            since = await campaign_reports.created_at(db, id_)
            minutes = await campaign_reports.minutes(db, id_, since, THROTTLE_CODES)
            grants = await campaign_reports.grants(db, id_)
            changes = await campaign_reports.pace_changes(
                db, [grant.id for grant in grants], row.started_at, row.finished_at
            )
            standing = await controls.standing(db, id_)
        failed = sorted(tallies.errors.items(), key=lambda item: (-item[1], item[0]))
        known = sum(tallies.errors.values())
        reasons = [Reason("failed", describe(code).title, n, code) for code, n in failed if n]
        if (
            counts[State.FAILED] > known
        ):  # a refusal without a code: rare, and a row's timeline has its raw answer
            reasons.append(Reason("failed", "no code was given", counts[State.FAILED] - known))
        reasons += [Reason("suppressed", SOURCES.get(source, source), n) for source, n in suppressed.items()]
        reasons += [_why_expired(one, row.deadline) for one in expired]
        return Closing(
            name=name,
            state=row.word,
            reason=row.reason,
            at=clock.now(),
            started_at=row.started_at,
            finished_at=row.finished_at,
            deadline=row.deadline,
            planned=row.planned,
            counts=counts,
            reasons=reasons,
            tries=tallies.tries,
            attempts=tallies.attempts,
            accepted=tallies.accepted,
            possible_duplicates=tallies.possible_duplicates,
            confirmed_duplicates=tallies.confirmed_duplicates,
            assumed_sent=tallies.assumed_sent,
            refused_lines=imports.refused,
            folded_lines=imports.folded,
            line=_line(minutes),
            paces=[_pace(grant, minutes) for grant in grants],
            pace_changes=changes,
            controls=standing,
        )


def _why_expired(one: Expired, deadline: datetime | None) -> Reason:
    by = f"the deadline ({deadline.isoformat(timespec='minutes')})" if deadline else "the deadline"
    if not one.tried:
        return Reason("expired", f"not sent before {by}", one.rows, one.code)
    last = f"; last heard: {describe(one.code).title}" if one.code is not None else ""
    return Reason("expired", f"tried, and not taken before {by}{last}", one.rows, one.code)


def _line(minutes: Sequence[Minute]) -> list[Beat]:
    beats: dict[datetime, Beat] = {}
    for m in minutes:
        before = beats.get(m.minute, Beat(m.minute, 0, 0, 0, 0))
        beats[m.minute] = replace(
            before,
            tries=before.tries + m.tries,
            accepted=before.accepted + m.accepted,
            refused=before.refused + m.refused,
            throttled=before.throttled + m.throttled,
        )
    return list(beats.values())


def _pace(grant: Grant, minutes: Sequence[Minute]) -> Pace:
    mine = [m for m in minutes if m.number == grant.id]
    tries = sum(m.tries for m in mine)
    seconds = (max(m.last for m in mine) - min(m.first for m in mine)).total_seconds() if mine else 0.0
    return Pace(
        number=grant.id,
        display=grant.display,
        tries=tries,
        throttled=sum(m.throttled for m in mine),
        mean=(tries - 1) / seconds if tries > 1 and seconds > 0 else None,
        best=max((m.tries for m in mine), default=0) / 60,
        rate=grant.rate,
        limit=grant.limit,
    )
