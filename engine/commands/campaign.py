"""Acts on campaigns."""

import re
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from engine import clock
from engine.commands.act import Acts, Done, Refused
from engine.domain.content import Content, ContentRefused, read_content, write_content
from engine.domain.duration import format_duration
from engine.domain.errors import describe
from engine.domain.recipient import State
from engine.postgres import asides, audience_imports, books, campaigns, previews
from engine.postgres import rows as row_lists
from engine.postgres.campaigns import CampaignReport, Draft, Standing
from engine.postgres.pool import Connection, Executor
from engine.postgres.rows import Example

POLICIES = {
    "hold": "rows whose answer was lost wait for a person",
    "resend": "rows whose answer was lost are sent once more after {after}, which may reach a person twice",
    "assume_sent": "rows whose answer was lost count as sent after {after}, which may miss a person",
}
CATEGORIES = ("marketing", "utility", "authentication")


class CampaignCommands(Acts):
    """campaign create | start | pause | resume | cancel | show | list."""

    async def create_campaign(self, draft: Draft) -> Done:
        """A new campaign in state draft. An `unknown_after` below the floor is raised to it, and said."""
        draft = replace(draft, content=_content(draft))
        _check(draft)
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
                raise Refused(f"There is a campaign {draft.name} already: choose another name.")
            linked = await campaigns.link(db, campaign_id, draft.numbers)
            missing = [number for number in draft.numbers if number not in linked]
            if missing:
                raise Refused(f"There is no number {missing[0]}: add it first with `tidegate number add`.")
            entry.after = "draft"
        policy = POLICIES[draft.unknown_policy].format(after=format_duration(draft.unknown_after))
        text = f"Campaign {draft.name} is created. Unknown rows: {draft.unknown_policy} ({policy})."
        return Done(text, after="draft", warnings=tuple(warnings))

    async def start_campaign(self, name: str, confirm: bool = False) -> Done:
        """From draft to running. An empty campaign is refused, and one with many equal numbers in a file of its
        audience, unless `confirm` says that a person has looked. What is kept aside stays there, and is said."""
        aside = to_us = 0

        async def settle_doubts(db: Connection, standing: Standing) -> None:
            nonlocal aside, to_us
            await campaigns.lock(db, standing.campaign_id)
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

        done = await self._move("start campaign", name, ("draft", "scheduled"), "running", gate=settle_doubts)
        said = [_kept_aside(name, aside)] if aside else []
        said += [_never_delivered(to_us)] if to_us else []
        return replace(done, warnings=(*done.warnings, *said))

    async def pause_campaign(self, name: str, reason: str | None = None) -> Done:
        """No request of this campaign starts until it is resumed."""
        return await self._move("pause campaign", name, ("running", "scheduled", "held"), "paused", reason)

    async def resume_campaign(self, name: str) -> Done:
        """From paused, or from held once a person has looked, to running."""
        return await self._move("resume campaign", name, ("paused", "held"), "running")

    async def cancel_campaign(self, name: str, reason: str | None = None) -> Done:
        """Pending and claimed rows become cancelled; what has left stays open until settled, and is not sent again."""
        leaves = ("draft", "scheduled", "running", "paused", "held")
        done = await self._move("cancel campaign", name, leaves, "cancelled", reason)
        standing = await _standing(self._pool, name)
        moved = await campaigns.cancel_rows(self._pool, standing.campaign_id)
        counts = (await books.balances(self._pool, standing.campaign_id)).get(standing.campaign_id, {})
        left = sum(counts.get(state, 0) for state in (State.SENDING, State.UNKNOWN, State.ASSESSING))
        text = f"{done.text} {moved:,} rows cancelled, {left:,} still under way."
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
            examples = {}
            if only is not None and only in tallies:
                codes = {*tallies[only].errors, *tallies[only].refusals}
                examples = await row_lists.examples(db, only, codes)
        none = dict.fromkeys(State, 0)
        return [
            CampaignReport(
                row,
                counts.get(row.campaign_id, none),
                tallies.get(row.campaign_id, books.Tallies()),
                examples,
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
    ) -> Done:
        """`gate` runs first, in the act's transaction, and may raise Refused."""
        async with self._act(act, name, reason) as (db, entry):
            before = await _standing(db, name)
            if gate is not None:
                await gate(db, before)
            moved = await campaigns.move(db, name, leaves, state, reason)
            after = await _standing(db, name)
            if moved is None:
                text = _already_or_refused(act, name, state, after)
                entry.before = entry.after = after.state
                entry.result = "already"
                return Done(text, already=True)
            entry.before, entry.after = before.state, state
        return Done(f"Campaign {name} is {state}.", before=entry.before, after=state)


def _kept_aside(name: str, rows: int) -> str:
    return (
        f"{rows:,} rows are kept aside, as other spellings of numbers that are in the campaign: "
        f"`tidegate rows release --campaign {name}` sends them, `tidegate rows discard` cancels them."
    )


def _never_delivered(rows: int) -> str:
    return (
        f"{rows:,} rows are US numbers, and Meta delivers no marketing there: each costs a request and fails."
    )


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


def _not_known(name: str) -> Refused:
    return Refused(f"There is no campaign {name}: `tidegate campaign list` shows those that exist.")


def _content(draft: Draft) -> Content | None:
    """What fills the template, checked: the draft's content, whose body the draft's columns overrule."""
    if draft.content is None:
        return None
    content = draft.content
    if draft.body:
        content = replace(content, body=Content.of_columns(draft.body).body)
    try:
        return read_content(write_content(content))
    except ContentRefused as refused:
        raise Refused(f"The campaign's content is not usable: {refused}.") from None


def _check(draft: Draft) -> None:
    """Refuse what Meta or the engine could never carry out."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", draft.name):
        raise Refused(
            f"The name {draft.name!r} is not usable: write up to 64 letters, digits, dots, hyphens or _."
        )
    if not draft.numbers:
        raise Refused("A campaign needs a number to send from: give --number.")
    if not re.fullmatch(r"[a-z0-9_]{1,512}", draft.template):
        raise Refused(
            f"The template {draft.template!r} is not usable: lower-case letters, digits and _ alone."
        )
    if not re.fullmatch(r"[a-z]{2,3}(_[A-Z]{2,3})?", draft.language):
        raise Refused(f"The language {draft.language!r} is not usable: write it as Meta does, such as pt_BR.")
    if any(not column or column != column.strip() for column in draft.body):
        raise Refused(
            "--body names the columns for the template's variables, such as name,date: one is empty."
        )
    if draft.category not in CATEGORIES:
        raise Refused(f"The category {draft.category!r} is none of {', '.join(CATEGORIES)}.")
    if draft.unknown_policy not in POLICIES:
        raise Refused(f"The policy {draft.unknown_policy!r} is none of {', '.join(POLICIES)}.")
    if draft.deadline is not None and draft.deadline <= clock.now():
        raise Refused(f"The deadline {draft.deadline.isoformat()} has passed: nothing would be sent.")
    if not 1 <= draft.max_attempts <= 100:
        raise Refused(f"--max-attempts {draft.max_attempts} is not usable: 1 to 100.")
    if draft.try_budget is not None and draft.try_budget < 1:
        raise Refused(f"--try-budget {draft.try_budget} is not usable: 1 or more.")
    if not 0 <= draft.max_failed <= 1:
        raise Refused("--max-failed is a share of the rows: 0% to 100%.")
    if not -32768 <= draft.priority <= 32767:
        raise Refused(f"--priority {draft.priority} is not usable: -32768 to 32767.")


def report_json(report: CampaignReport) -> dict[str, object]:
    """The public shape of `campaign show --json`."""
    row, tallies = report.campaign, report.tallies
    return {
        "name": row.name,
        "state": row.state,
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
    }


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
    """When nothing will be pending, at the pace that its numbers may send now; None when that is not known."""
    pending = report.counts[State.PENDING]
    if report.campaign.state != "running" or report.campaign.rate <= 0 or pending <= 0:
        return None
    seconds = min(pending / report.campaign.rate, 10 * 365 * 86400.0)
    return (clock.now() + timedelta(seconds=seconds)).isoformat(timespec="seconds")
