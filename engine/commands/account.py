"""Acts on accounts."""

from engine.commands.act import Acts, Done, Refused
from engine.postgres import reach
from engine.postgres.reach import Account


class AccountCommands(Acts):
    """account limit | list."""

    async def limit_account(self, account: str, limit: int | None) -> Done:
        """Say how many different people an account may reach within 24 hours; None: as many as it can. Raises
        Refused."""
        if limit is not None and not 1 <= limit <= 2_000_000_000:
            raise Refused(f"A messaging limit of {limit} is not usable: 1 or more, or none.")
        async with self._act("account limit", account) as (db, entry):
            found = await reach.accounts(db, account)
            if not found:
                raise Refused(
                    f"There is no account {account} with a number: `tidegate account list` shows those that exist."
                )
            entry.before, entry.after = _word(found[0].limit), _word(limit)
            if found[0].limit == limit:
                entry.result = "already"
                return Done(f"Account {account} may reach {_people(limit)} already.", already=True)
            await reach.set_limit(db, account, limit)
            [now] = await reach.accounts(db, account)
        told = f" It has reached {now.reached:,}." if now.reached is not None else ""
        return Done(
            f"Account {account} may reach {_people(limit)}.{told}", before=entry.before, after=entry.after
        )

    async def list_accounts(self) -> list[Account]:
        """All that have a number."""
        return await reach.accounts(self._pool)


def _word(limit: int | None) -> str:
    return "none" if limit is None else str(limit)


def _people(limit: int | None) -> str:
    return "any number of people" if limit is None else f"{limit:,} people within 24 h"
