"""Acts on business numbers."""

import math
import re
from dataclasses import replace
from enum import Enum, auto

from engine import clock
from engine.author import ENGINE
from engine.commands.act import Acts, Done, Refused
from engine.domain.heard import Heard
from engine.pause_file import Pause
from engine.postgres import nodes, numbers
from engine.postgres.faults import DATABASE_FAULTS, REFERENCED
from engine.postgres.numbers import Locked, NumberRow
from engine.postgres.pool import Connection

DEFAULT_SHARE = 0.8
"""Of the provider's limit; the rest is headroom for conversations."""

MOST_PER_SECOND = 100_000.0


class NumberCommands(Acts):
    """number add | list | show | pause | resume | rate | limit | remove."""

    async def add_number(
        self, number: str, *, display: str, account: str, token: str, limit: float, rate: float | None = None
    ) -> Done:
        """Make a number known. `token` is a reference; `rate` defaults to 80 % of `limit` (both messages/s)."""
        if not re.fullmatch(r"\d{5,32}", number, re.ASCII):
            raise Refused("A number's id is Meta's phone number id: digits alone, such as 106540352242922.")
        shown = re.sub(r"[\s().-]", "", display)
        if not re.fullmatch(r"\+\d{7,15}", shown, re.ASCII):
            raise Refused(
                f"The display number {display!r} is not international: write it like +5511988880001."
            )
        if not re.fullmatch(r"[A-Za-z0-9_.:-]{1,64}", account):
            raise Refused(f"The account {account!r} is not usable: write the WhatsApp business account's id.")
        if not re.fullmatch(r"(file|env):.+", token):
            raise Refused("A token is given by reference: write file:PATH or env:NAME, not the token itself.")
        _check_limit(limit)
        rate = _check_rate(limit * DEFAULT_SHARE if rate is None else rate, limit)
        async with self._act("add number", number) as (db, entry):
            if not await numbers.add(db, number, shown, account, token, limit, rate):
                raise Refused(f"Number {number} is known already: see `tidegate number show {number}`.")
            entry.after = f"rate {rate:g}, limit {limit:g}"
        return Done(
            f"Number {number} is added: rate {rate:g}/s of a limit of {limit:g}/s.", after=entry.after
        )

    async def list_numbers(self) -> list[NumberRow]:
        """All numbers as they stand."""
        return await numbers.view(self._pool)

    async def heard_nodes(self) -> list[Heard]:
        """Who runs, and who has fallen silent."""
        return await nodes.heard(self._pool)

    async def show_number(self, number: str) -> NumberRow:
        """One number as it stands."""
        found = await numbers.view(self._pool, number)
        if not found:
            raise _not_known(number)
        return found[0]

    async def pause_number(self, number: str, reason: str | None = None) -> Done:
        """No request starts from this number until it is resumed. Kept beside the database first, if possible."""
        kept = self._keep(number, reason)
        try:
            done = await self._pause(number, reason)
        except Refused:
            if kept is Kept.NEW and self._pauses is not None:
                self._pauses.remove(number)  # there is no such number
            raise
        except DATABASE_FAULTS as error:
            if kept is Kept.NOT or self._pauses is None:
                raise
            return kept_beside(
                number, str(self._pauses.directory), f"The database was lost ({type(error).__name__})"
            )
        if self._pauses is None:
            return done
        try:
            self._pauses.record(number)
        except OSError:
            kept = Kept.NOT
        if kept is not Kept.NOT:
            return done
        where = self._pauses.directory
        return replace(
            done, warnings=(f"The pause could not be kept in {where}, too: it is in the database alone.",)
        )

    async def resume_number(self, number: str, reason: str | None = None) -> Done:
        """Take back a pause, by a person or by the engine."""
        async with self._act("resume number", number, reason) as (db, entry):
            row = await _locked(db, number)
            entry.before, entry.after = _pause_text(row), "going"
            if row.paused_by is None:
                entry.result = "already"
            await numbers.resume(db, row.number_id)
        if self._pauses:
            self._pauses.remove(number)
        warnings = (
            () if row.rate > 0 else (f"Its rate is 0: `tidegate number rate {number} N` lets it send.",)
        )
        if row.paused_by is None:
            return Done(f"Number {number} is going already.", already=True, warnings=warnings)
        return Done(f"Number {number} is resumed.", before=entry.before, after=entry.after, warnings=warnings)

    async def set_rate(self, number: str, rate: float) -> Done:
        """messages/s that campaigns may take; 0 stops them; never above the provider's limit."""
        async with self._act("rate", number) as (db, entry):
            row = await _locked(db, number)
            rate = _check_rate(rate, row.limit)
            entry.before, entry.after = f"{row.rate:g}", f"{rate:g}"
            if rate == row.rate:
                entry.result = "already"
                return Done(f"The rate of {number} is {rate:g}/s already.", already=True)
            await numbers.set_rate(db, row.number_id, rate, row.limit)
        return Done(
            f"The rate of {number} is {rate:g}/s (was {row.rate:g}/s).",
            before=entry.before,
            after=entry.after,
        )

    async def set_limit(self, number: str, limit: float, rate: float | None = None) -> Done:
        """What Meta grants, messages/s. A limit that falls below the rate takes the rate down with it, in the
        same proportion: refusing would leave a number sending faster than it may until two more acts are done.
        A rising limit leaves the rate alone unless `rate` says otherwise.
        """
        _check_limit(limit)
        async with self._act("limit", number) as (db, entry):
            row = await _locked(db, number)
            if rate is not None:
                wanted = _check_rate(rate, limit)
            else:
                wanted = row.rate if row.rate <= limit else limit * (row.rate / row.limit)
            entry.before = f"limit {row.limit:g}, rate {row.rate:g}"
            entry.after = f"limit {limit:g}, rate {wanted:g}"
            if (limit, wanted) == (row.limit, row.rate):
                entry.result = "already"
                return Done(f"The limit of {number} is {limit:g}/s already.", already=True)
            await numbers.set_rate(db, row.number_id, wanted, limit)
        warnings: tuple[str, ...] = ()
        if rate is None and wanted < row.rate:
            warnings = (f"The rate went down with the limit, from {row.rate:g}/s to {wanted:g}/s.",)
        elif rate is None and limit > row.limit:
            warnings = (f"The rate stays {row.rate:g}/s: `tidegate number rate {number} N` raises it.",)
        text = f"The limit of {number} is {limit:g}/s, its rate {wanted:g}/s."
        return Done(text, before=entry.before, after=entry.after, warnings=warnings)

    async def remove_number(self, number: str) -> Done:
        """Forget a number that no unfinished campaign uses. Its tries and sends are kept."""
        async with self._act("remove number", number) as (db, entry):
            row = await _locked(db, number)
            users = await numbers.users(db, row.number_id)
            if users:
                raise Refused(
                    f"Number {number} is used by {', '.join(users)}: it can be removed once they have ended."
                )
            entry.before = f"rate {row.rate:g}, limit {row.limit:g}"
            try:
                async with db.transaction():
                    await numbers.remove(db, row.number_id)
            except REFERENCED:  # a campaign was created with it this very moment
                raise Refused(f"Number {number} has just come into use by a campaign.") from None
        if self._pauses:
            self._pauses.remove(number)
        return Done(f"Number {number} is removed.", before=entry.before)

    async def replay_pauses(self) -> list[str]:
        """Bring the pauses kept on this machine into the database; returns the numbers that were paused by it.

        A file whose pause had reached the row, while the row is going again, is out of date: the number was
        resumed from another machine, which cannot remove the file.
        """
        if self._pauses is None:
            return []
        applied = []
        for number, pause in self._pauses.read().items():
            if pause.recorded:
                if not await self._is_paused(number):
                    self._pauses.remove(number)
                continue  # the row holds it, or has been resumed since
            theirs = NumberCommands(self._pool, author=pause.by, origin=self._origin)
            try:
                done = await theirs._pause(number, pause.reason)
            except Refused:  # a number that is gone
                self._pauses.remove(number)
                continue
            self._pauses.record(number)
            applied += [] if done.already else [number]
        return applied

    async def _is_paused(self, number: str) -> bool:
        return any(row.paused_by is not None for row in await numbers.view(self._pool, number))

    async def _pause(self, number: str, reason: str | None) -> Done:
        async with self._act("pause number", number, reason) as (db, entry):
            row = await _locked(db, number)
            entry.before, entry.after = _pause_text(row), "paused"
            already = row.paused_by is not None and row.paused_by != ENGINE
            if already and not row.pause_all:
                entry.result = "already"
                return Done(f"Number {number} is paused already (by {row.paused_by}).", already=True)
            await numbers.pause(db, row.number_id, self._author, reason or row.pause_reason)
        text = "paused: resume-all will not lift it" if row.pause_all else "paused"
        return Done(f"Number {number} is {text}.", before=entry.before, after=entry.after)

    def _keep(self, number: str, reason: str | None) -> "Kept":
        if self._pauses is None:
            return Kept.NOT
        try:
            new = self._pauses.write(Pause(number, self._author, reason, clock.now().isoformat()))
        except (OSError, ValueError):  # a full disk must not keep a person from stopping a number
            return Kept.NOT
        return Kept.NEW if new else Kept.BEFORE


class Kept(Enum):
    """Whether a pause stands beside the database."""

    NEW = auto()
    BEFORE = auto()
    NOT = auto()


def kept_beside(number: str, directory: str, cause: str) -> Done:
    """A pause that could only be kept on this machine; `cause`: a sentence without its full stop."""
    done = Done(f"Number {number} is paused on this machine.", after="paused")
    warning = (
        f"{cause}; the pause is kept in {directory}/{number} and goes into the database when this machine's engine "
        "finds it again, and engines on other machines do not know of it until then."
    )
    return replace(done, warnings=(warning,))


async def _locked(db: Connection, number: str) -> Locked:
    row = await numbers.lock(db, number)
    if row is None:
        raise _not_known(number)
    return row


def _not_known(number: str) -> Refused:
    return Refused(f"There is no number {number}: `tidegate number list` shows those that are known.")


def _pause_text(row: Locked) -> str:
    return f"paused by {row.paused_by}" if row.paused_by else "going"


def _check_limit(limit: float) -> None:
    if not (math.isfinite(limit) and 0 < limit <= MOST_PER_SECOND):
        raise Refused(f"A limit of {limit:g} is not usable: write messages per second above 0, such as 80.")


def _check_rate(rate: float, limit: float) -> float:
    if not math.isfinite(rate) or rate < 0:
        raise Refused(f"A rate of {rate:g} is not usable: write messages per second, 0 or more.")
    if rate > limit:
        raise Refused(
            f"A rate of {rate:g}/s is above the provider's limit of {limit:g}/s: raise the limit first."
        )
    return rate
