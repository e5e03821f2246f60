"""Acts on campaigns."""

import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace

from engine import clock
from engine.commands.act import Acts, Done, Refused
from engine.commands.draft import POLICIES, check, checked_content, checked_control
from engine.domain.count import counted
from engine.domain.duration import format_duration
from engine.domain.errors import describe
from engine.domain.forecast import ENDED, Demand, done_at, late_rows
from engine.domain.recipient import OPEN, State
from engine.domain.waits import TWINS, Wait, waits
from engine.postgres import (
    asides,
    audience_imports,
    books,
    budgets,
    campaigns,
    canaries,
    controls,
    previews,
    schedules,
)
from engine.postgres import rows as row_lists
from engine.postgres.campaigns import CampaignReport, CampaignRow, Draft, Standing
from engine.postgres.pool import Connection, Executor
from engine.postgres.rows import Example


class CampaignCommands(Acts):
    """campaign create | start | pause | resume | cancel | show | list."""

    async def create_campaign(self, draft: Draft) -> Done:
        """A new campaign in state draft. An `unknown_after` below the floor is raised to it, and said."""
        draft = replace(draft, content=checked_content(draft))
        check(draft)
        draft = replace(draft, control=checked_control(draft))
        warnings = []
        if draft.unknown_after < self._unknown_floor:
            warnings.append(
                f"--unknown-after {format_duration(draft.unknown_after)} is shorter than the engine needs to be sure: "
                f"raised to {format_duration(self._unknown_floor)}."
            )
            draft = replace(draft, unknown_after=self._unknown_floor)
        async with self._act("create campaign", draft.name) as (db, entry):
            campaign_id = await campaigns.create(db, draft, secrets.token_hex(6))
            if campaign_id is None:
                raise Refused(await _taken(db, draft.name))
            linked = await campaigns.link(db, campaign_id, draft.numbers)
            missing = [number for number in draft.numbers if number not in linked]
            if missing:
                raise Refused(f"There is no number {missing[0]}: add it first with `tidegate number add`.")
            entry.after = "draft" if draft.start_at is None else "scheduled"
        policy = POLICIES[draft.unknown_policy].format(after=format_duration(draft.unknown_after))
        text = f"Campaign {draft.name} is created. Unknown rows: {draft.unknown_policy} ({policy})."
        if draft.start_at is not None:
            text += f" It starts by itself at {draft.start_at.isoformat(timespec='minutes')}."
        return Done(text, after=entry.after, warnings=tuple(warnings))

    async def start_campaign(self, name: str, confirm: bool = False) -> Done:
        """From draft or scheduled to running. An empty campaign is refused, and one with many equal numbers in a file
        of its audience, or overdue, unless `confirm` says that a person has looked. What is kept aside stays there,
        and is said, as is a canary that goes first."""
        aside = to_us = first = phones = 0

        async def settle_doubts(db: Connection, standing: Standing) -> None:
            nonlocal aside, to_us, first, phones
            await campaigns.lock(db, standing.campaign_id)
            await _confirm_overdue(db, name, standing, confirm)
            if confirm:
                await audience_imports.confirm(db, standing.campaign_id, self._author)
            if doubts := await audience_imports.doubts(db, standing.campaign_id):
                told = "; ".join(f"in {doubt.file} {doubt.reason}" for doubt in doubts[:3])
                raise Refused(
                    f"Campaign {name} is not started: {told}. Look at the file; "
                    f"if it is right, `tidegate campaign start {name} --confirm`."
                )
            aside = await asides.waiting(db, standing.campaign_id)
            to_us = await previews.marketing_to_us(db, standing.campaign_id)
            if standing.planned and standing.state in ("draft", "scheduled", "held"):
                first = await canaries.prepare(db, standing.campaign_id)
                phones = await controls.prepare(db, standing.campaign_id)

        done = await self._move("start campaign", name, ("draft", "scheduled"), "running", gate=settle_doubts)
        said = [f"{counted(phones, 'control phone')} first, and then the audience."] if phones else []
        said += [_kept_aside(name, aside)] if aside else []
        said += [_never_delivered(to_us)] if to_us else []
        said += [f"{counted(first, 'row')} first; the others follow when that went well."] if first else []
        return replace(done, warnings=(*done.warnings, *said))

    async def pause_campaign(self, name: str, reason: str | None = None) -> Done:
        """No request of this campaign starts until it is resumed."""

        def both(
            standing: Standing,
        ) -> str | None:  # whoever resumes it must still see why it had been stopped
            if standing.state != "held" or not standing.reason:
                return reason
            return f"{reason or 'paused'}; before that held: {standing.reason}"

        leaves = ("running", "scheduled", "held")
        return await self._move("pause campaign", name, leaves, "paused", reason, shown=both)

    async def resume_campaign(self, name: str) -> Done:
        """From paused, or from held once a person has looked, to running; to scheduled when its time never came."""
        standing = await _standing(self._pool, name)
        planned = await schedules.schedule(self._pool, standing.campaign_id)
        if planned.held_by == schedules.OVERDUE:
            raise Refused(f"Campaign {name} has not started yet ({standing.reason}).")
        never = planned.started_at is None and planned.start_at is not None
        raised: list[str] = []

        async def renew_budget(db: Connection, standing: Standing) -> None:
            left = await campaigns.tries_left(db, name)
            if left is not None and left <= 0 and standing.state in ("paused", "held"):
                counts = (await books.balances(db, standing.campaign_id)).get(standing.campaign_id, {})
                budget = await budgets.renew(
                    db, standing.campaign_id, left, sum(counts.get(state, 0) for state in OPEN)
                )
                raised.append(f"The try budget was spent: it is {budget:,} now, three for each open row.")

        done = await self._move(
            "resume campaign",
            name,
            ("paused", "held"),
            "scheduled" if never else "running",
            gate=renew_budget,
        )
        return replace(done, warnings=(*done.warnings, *raised))

    async def cancel_campaign(self, name: str, reason: str | None = None) -> Done:
        """Pending and claimed rows become cancelled; what has left stays open until settled, and is not sent again."""
        leaves = ("draft", "scheduled", "running", "paused", "held")
        done = await self._move("cancel campaign", name, leaves, "cancelled", reason)
        standing = await _standing(self._pool, name)
        moved = await campaigns.cancel_rows(self._pool, standing.campaign_id)
        counts = (await books.balances(self._pool, standing.campaign_id)).get(standing.campaign_id, {})
        left = sum(counts.get(state, 0) for state in (State.SENDING, State.UNKNOWN, State.ASSESSING))
        text = f"{done.text} {counted(moved, 'row')} cancelled, {left:,} still under way."
        return replace(done, text=text)

    async def list_campaigns(self) -> list[CampaignReport]:
        """All campaigns with their books."""
        return await self._reports(None)

    async def show_campaign(self, name: str) -> CampaignReport:
        """One campaign with its books."""
        found = await self._reports(name)
        if not found:
            raise _not_known(name)
        return found[0]

    async def _reports(self, name: str | None) -> list[CampaignReport]:
        async with (
            self._pool.acquire() as db,
            db.transaction(isolation="repeatable_read", readonly=True),  # figures of one moment
        ):
            rows = await campaigns.view(db, name)
            only = rows[0].campaign_id if name is not None and rows else None
            counts, tallies = await books.balances(db, only), await books.tallies(db, only)
            examples, standing = {}, None
            if only is not None:
                standing = await controls.standing(db, only)
            if only is not None and only in tallies:
                codes = {*tallies[only].errors, *tallies[only].refusals}
                examples = await row_lists.examples(db, only, codes)
            others = rows if name is None else await campaigns.view(db)
            waiting = counts if name is None else await books.balances(db)
            held = await books.held_rows(db, only)
        none = dict.fromkeys(State, 0)
        now = clock.now()
        return [
            CampaignReport(
                row,
                counts.get(row.campaign_id, none),
                tallies.get(row.campaign_id, books.Tallies()),
                examples,
                late_rows(_demand(row, waiting), [_demand(o, waiting) for o in others], now),
                held.get(row.campaign_id, {}),
                standing,
            )
            for row in rows
        ]

    async def _move(
        self,
        act: str,
        name: str,
        leaves: Sequence[str],
        state: str,
        reason: str | None = None,
        gate: Callable[[Connection, Standing], Awaitable[None]] | None = None,
        shown: Callable[[Standing], str | None] | None = None,
    ) -> Done:
        """`gate` runs first, in the act's transaction, and may raise Refused. `shown`: the reason that the campaign
        then shows, when that is more than the act's own."""
        async with self._act(act, name, reason) as (db, entry):
            before = await _standing(db, name)
            if gate is not None:
                await gate(db, before)
            moved = await campaigns.move(db, name, leaves, state, shown(before) if shown else reason)
            after = await _standing(db, name)
            if moved is None:
                text = _already_or_refused(act, name, state, after)
                entry.before = entry.after = after.state
                entry.result = "already"
                return Done(text, already=True)
            entry.before, entry.after = before.state, state
        return Done(f"Campaign {name} is {state}.", before=entry.before, after=state)


async def _confirm_overdue(db: Connection, name: str, standing: Standing, confirm: bool) -> None:
    """What did not start at its time starts only when a person says so; raises Refused when nobody does."""
    planned = await schedules.schedule(db, standing.campaign_id)
    if standing.state != "held" or planned.held_by != schedules.OVERDUE:
        return
    if not confirm:
        raise Refused(f"Campaign {name} is held: {standing.reason}.")
    await schedules.unhold(db, standing.campaign_id)


def _demand(row: CampaignRow, counts: Mapping[int, Mapping[State, int]]) -> Demand:
    of = counts.get(row.campaign_id, {})
    return Demand(
        row.name,
        row.state,
        row.priority,
        row.deadline,
        of.get(State.PENDING, 0) + of.get(State.CLAIMED, 0),
        row.rate,
        frozenset(row.numbers),
        row.quiet,
        row.zones,
    )


def _kept_aside(name: str, rows: int) -> str:
    return (
        f"{counted(rows, 'row')} kept aside, as other spellings of numbers that are in the campaign: "
        f"`tidegate rows release --campaign {name}` sends them, `tidegate rows discard` cancels them."
    )


def _never_delivered(rows: int) -> str:
    return f"{counted(rows, 'US number')} in it, and Meta delivers no marketing there: each costs a request and fails."


def _already_or_refused(act: str, name: str, wanted: str, now: Standing) -> str:
    """The sentence for an act that finds nothing to move; raises Refused when that is not what was wanted."""
    verb = act.split(" ")[0]
    if now.state == wanted:
        return f"Campaign {name} is {now.state} already."
    if verb == "start" and now.state == "finished":
        return f"Campaign {name} was started already and is finished."
    if now.state in ("finished", "cancelled"):
        raise Refused(
            f"Campaign {name} is {now.state}: nothing more is sent for it; create another campaign."
        )
    if now.planned == 0 and wanted == "running" and now.state in ("draft", "scheduled") and verb == "start":
        raise Refused(f"Campaign {name} has no recipients: import them first with `tidegate import`.")
    if verb == "start":
        raise Refused(f"Campaign {name} is {now.state}: `tidegate campaign resume {name}` lets it go on.")
    raise Refused(f"Campaign {name} is {now.state}: start it with `tidegate campaign start {name}`.")


async def _standing(db: Executor, name: str) -> Standing:
    found = await campaigns.standing(db, name)
    if found is None:
        raise _not_known(name)
    return found


async def _taken(db: Executor, name: str) -> str:
    """A name is taken for ever: journal, rows and webhooks speak of its campaign."""
    state = (await _standing(db, name)).state
    taken = f"There is a campaign {name} already ({state}): choose another name"
    if state != "draft":
        return f"{taken}."
    return f"{taken}, such as {name}-2; `tidegate campaign cancel {name}` ends a draft that is not wanted."


def _not_known(name: str) -> Refused:
    return Refused(f"There is no campaign {name}: `tidegate campaign list` shows those that exist.")


def report_json(report: CampaignReport) -> dict[str, object]:
    """The public shape of `campaign show --json`."""
    row, tallies = report.campaign, report.tallies
    return {
        "name": row.name,
        "state": row.word,
        "reason": row.reason,
        "planned": row.planned,
        "counts": {state.word: report.counts[state] for state in State},
        "accepted": tallies.accepted,
        "tries": tallies.tries,
        "attempts": tallies.attempts,
        "possible_duplicates": tallies.possible_duplicates,
        "assumed_sent": tallies.assumed_sent,
        "errors": _by_code(tallies.errors, report.examples),
        "refusals": _by_code(tallies.refusals, report.examples),
        "numbers": list(row.numbers),
        "started_at": row.started_at.isoformat() if row.started_at else None,
        "finished_at": row.finished_at.isoformat() if row.finished_at else None,
        "eta": _eta(report),
        "start_at": row.start_at.isoformat() if row.start_at else None,
        "deadline": row.deadline.isoformat() if row.deadline else None,
        "late": report.late,
        "canary": row.canary,
        "waits": [{"rows": wait.rows, "for": wait.of, "text": wait.text} for wait in _waits(report)],
        "aside": report.waiting.get(TWINS, 0),
        "controls": report.controls.as_json() if report.controls else None,
    }


def _waits(report: CampaignReport) -> list[Wait]:
    row, counts = report.campaign, report.counts
    unknown, assessing = counts[State.UNKNOWN], counts[State.ASSESSING]
    if row.state in ENDED:
        return []
    return waits(row.name, report.waiting, unknown, assessing, row.unknown_policy, row.quiet)


def _by_code(counts: Mapping[int, int], examples: Mapping[int, Example]) -> list[dict[str, object]]:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    found: list[dict[str, object]] = []
    for code, count in ordered:
        known, example = describe(code), examples.get(code)
        if count:
            found.append(
                {
                    "code": code,
                    "scope": known.scope.value,
                    "title": known.title,
                    "advice": known.advice,
                    "count": count,
                    "example": {"row": example.row, "phone": example.phone} if example else None,
                }
            )
    return found


def _eta(report: CampaignReport) -> str | None:
    """When nothing will be pending, at the pace that its numbers may send now, outside its quiet hours; None when that
    is not known. Rows that wait for a person wait longer."""
    pending = report.counts[State.PENDING] - report.waiting.get(TWINS, 0)
    if report.campaign.state != "running" or report.campaign.rate <= 0 or pending <= 0:
        return None
    row = report.campaign
    at = done_at(pending / row.rate, row.quiet, row.zones, clock.now())
    return at.isoformat(timespec="seconds") if at is not None else None
