"""Acts on a campaign under way, or at its end: its failed rows once more, and the numbers that it is sent from."""

from dataclasses import dataclass
from datetime import datetime

from engine import clock
from engine.commands.act import Acts, Done, Refused
from engine.domain.count import counted
from engine.domain.errors import Scope, describe
from engine.domain.retry import Offer, offers
from engine.postgres import campaign_numbers, campaigns, retries
from engine.postgres.campaigns import Standing
from engine.postgres.pool import Connection, Executor


@dataclass(frozen=True, slots=True)
class Retried:
    """What a retry did, or with `dry_run` would do: the failed rows by code, and how many went back to pending."""

    campaign: str
    state: str
    dry_run: bool
    offers: tuple[Offer, ...]
    retried: int
    warnings: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """One sentence."""
        if self.dry_run:
            rows = counted(self.retried, "failed row")
            return f"{rows} of campaign {self.campaign} would be sent again; nothing was changed."
        if not self.retried:
            return f"No failed row of campaign {self.campaign} is sent again."
        return f"{counted(self.retried, 'failed row')} of campaign {self.campaign} pending again; it is {self.state}."

    def as_json(self) -> dict[str, object]:
        """For `--json`."""
        return {
            "campaign": self.campaign,
            "state": self.state,
            "dry_run": self.dry_run,
            "retried": self.retried,
            "codes": [
                {
                    "code": o.code,
                    "title": o.title,
                    "failed": o.failed,
                    "retried": o.retried,
                    "why_not": o.why_not,
                }
                for o in self.offers
            ],
            "warnings": list(self.warnings),
        }


class SteeringCommands(Acts):
    """campaign retry-failed | number."""

    async def retry_failed(
        self,
        name: str,
        code: int | None = None,
        *,
        dry_run: bool = False,
        marketing_limit: bool = False,
        reason: str | None = None,
        page: int = retries.PAGE,
    ) -> Retried:
        """Send failed rows again whose failure may pass: all such, or those of one `code`, which must be such.

        Page by page, each with exact books; a finished campaign runs again from the first page on. Raises Refused.
        """
        if dry_run:
            standing = await _sendable(self._pool, name)
            found = await self._offers(self._pool, standing, code, marketing_limit)
            return Retried(name, standing.state, True, found, sum(o.retried for o in found))
        total = 0
        reason = reason or (None if code is None else f"code {code}")
        async with self._act("retry failed", name, reason) as (db, entry):
            standing = await _sendable(db, name)
            found = await self._offers(db, standing, code, marketing_limit)
            wanted = [o.code for o in found if o.retried and o.code is not None]
            planned = sum(o.retried for o in found)
            state = standing.state
            if wanted:
                total = await _page(db, standing.campaign_id, wanted, page)
                state = (await _sendable(db, name)).state
            entry.before, entry.after = standing.state, state
            entry.result = (
                f"{counted(planned, 'row')}, codes {', '.join(map(str, wanted))}" if wanted else "already"
            )
        while wanted and total < planned:
            async with self._pool.acquire() as more, more.transaction():
                moved = await _page(more, standing.campaign_id, wanted, page)
            if not moved:  # a late `delivered` has taken some of them out
                break
            total += moved
        return Retried(name, state, False, found, total, tuple(await self._budget(name, total)))

    async def change_numbers(self, name: str, add: str | None, remove: str | None) -> Done:
        """Let one more number send for a campaign, or one no longer, also while it runs. Raises Refused."""
        if (add is None) == (remove is None):
            raise Refused("Say one of --add and --remove, with the number's id.")
        async with self._act("campaign number", name) as (db, entry):
            standing = await _sendable(db, name)
            await campaigns.lock(db, standing.campaign_id)
            before = await campaign_numbers.of(db, standing.campaign_id)
            entry.before = ", ".join(n.id for n in before)
            done = (
                await _add(db, name, standing, before, add)
                if add is not None
                else await _remove(db, name, standing, before, remove or "")
            )
            entry.after = ", ".join(n.id for n in await campaign_numbers.of(db, standing.campaign_id))
            if done.already:
                entry.result = "already"
        return done

    async def _offers(
        self, db: Executor, standing: Standing, code: int | None, marketing_limit: bool
    ) -> tuple[Offer, ...]:
        allowed = marketing_limit or await campaigns.retries_marketing_limit(db, standing.campaign_id)
        found = offers(await retries.failed(db, standing.campaign_id), marketing_limit=allowed)
        if code is None:
            return tuple(found)
        chosen = [offer for offer in found if offer.code == code]
        if chosen and chosen[0].why_not and not chosen[0].retried:
            raise Refused(f"Rows that failed with {code} are not sent again. {chosen[0].why_not}")
        return tuple(chosen)

    async def _budget(self, name: str, rows: int) -> list[str]:
        """A sentence when the tries that are left are fewer than the rows that need one."""
        left = await campaigns.tries_left(self._pool, name) if rows else None
        if left is None or left >= rows:
            return []
        return [
            f"The campaign's try budget has {counted(max(0, left), 'try', 'tries')} left for {counted(rows, 'row')}: "
            "when it is spent, the campaign is held."
        ]


async def _page(db: Executor, campaign_id: int, codes: list[int], page: int) -> int:
    if await retries.reopen(db, campaign_id) is None:
        return 0
    rested = [code for code in codes if describe(code).scope is Scope.MARKETING]
    return await retries.retry(db, campaign_id, codes, rested, page)


async def _sendable(db: Executor, name: str) -> Standing:
    standing = await campaigns.standing(db, name)
    if standing is None:
        raise Refused(f"There is no campaign {name}: `tidegate campaign list` shows those that exist.")
    if standing.state == "cancelled":
        raise Refused(f"Campaign {name} is cancelled: nothing more is sent for it; create another campaign.")
    deadline = await campaigns.deadline(db, standing.campaign_id)
    if deadline is not None and deadline <= clock.now():
        raise Refused(
            f"Campaign {name} is past its deadline ({_moment(deadline)}): nothing more is sent for it."
        )
    return standing


async def _add(
    db: Connection, name: str, standing: Standing, before: list[campaign_numbers.Linked], number: str
) -> Done:
    if any(n.id == number for n in before):
        return Done(f"Campaign {name} is sent from {number} already.", already=True)
    if not await campaigns.link(db, standing.campaign_id, [number]):
        raise Refused(f"There is no number {number}: add it first with `tidegate number add`.")
    after = await campaign_numbers.of(db, standing.campaign_id)
    account = next(n.account for n in after if n.id == number)
    warnings = (
        ()
        if not before or any(n.account == account for n in before)
        else (f"{number} belongs to another account, {account}: the template must be approved there, too.",)
    )
    return Done(f"Campaign {name} is sent from {number}, too.", warnings=warnings)


async def _remove(
    db: Connection, name: str, standing: Standing, before: list[campaign_numbers.Linked], number: str
) -> Done:
    if all(n.id != number for n in before):
        if not await campaign_numbers.exists(db, number):
            raise Refused(f"There is no number {number}: `tidegate number list` shows those that exist.")
        return Done(f"Campaign {name} is not sent from {number} already.", already=True)
    if len(before) == 1 and standing.state != "finished":
        raise Refused(
            f"{number} is the only number of campaign {name}: add another first, or pause the campaign."
        )
    await campaign_numbers.unlink(db, standing.campaign_id, number)
    return Done(f"Campaign {name} is no longer sent from {number}; what has left stays with it.")


def _moment(at: datetime) -> str:
    return at.isoformat(timespec="minutes")
