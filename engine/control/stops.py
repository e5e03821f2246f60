"""Campaigns follow the stops around them: held while none of their numbers may send for them, no moment longer."""

import structlog

from engine.author import ENGINE
from engine.domain.breaker import country_key, over_number, template_key
from engine.domain.campaign import STOPS, only_people
from engine.domain.campaign import shown as word
from engine.domain.errors import Scope
from engine.postgres import holds
from engine.postgres.breakers import Breaker
from engine.postgres.desired import Campaign, Desired, Number
from engine.postgres.pool import Pool

log = structlog.get_logger()

Stopped = dict[tuple[Scope, str], Breaker]


def held_breakers(desired: Desired) -> Stopped:
    """Those that need a person, new credentials or news; what only waits holds no campaign."""
    return {(b.scope, b.key): b for b in desired.breakers if b.state == "held"}


def number_stop(number: Number, stopped: Stopped) -> Breaker | None:
    """The breaker over a whole number, if one is open."""
    keys = over_number(number.id, number.account, number.token_ref)
    return next((stopped[scope, key] for scope, key in keys.items() if (scope, key) in stopped), None)


def blocked(campaign: Campaign, desired: Desired) -> str | None:
    """Why none of its numbers may send for this campaign; None when one may."""
    stopped = held_breakers(desired)
    reasons = [
        _why_not(campaign, desired.numbers[n], stopped) for n in campaign.numbers if n in desired.numbers
    ]
    if not reasons or None in reasons:
        return None
    return "; ".join(dict.fromkeys(reason for reason in reasons if reason))


def shown(campaign: Campaign, desired: Desired) -> str:
    """Its state in the word that people read."""
    by_people, free = _by_people(campaign, desired), blocked(campaign, desired) is None
    return word(campaign.state, campaign.held_by, by_people, free=free and bool(by_people))


def _by_people(campaign: Campaign, desired: Desired) -> list[bool]:
    numbers = [desired.numbers[n] for n in campaign.numbers if n in desired.numbers]
    return [n.paused and n.paused_by not in (None, ENGINE) for n in numbers]


def _why_not(campaign: Campaign, number: Number, stopped: Stopped) -> str | None:
    if not number.paused and number.rate <= 0:
        return f"the rate of number {number.display} is 0: `tidegate number rate {number.id} N` lets it send"
    if number.paused:
        by = f" by {number.paused_by}" if number.paused_by else ""
        return f"number {number.display} is paused{by}"
    over = number_stop(number, stopped) or stopped.get(
        (Scope.TEMPLATE, template_key(number.account, campaign.template, campaign.language))
    )
    if over is not None:
        return over.reason or f"{over.scope} is held"
    countries = [stopped.get((Scope.COUNTRY, country_key(number.account, c))) for c in campaign.countries]
    if countries and all(countries):
        return countries[0].reason if countries[0] else None
    return None


async def follow(db: Pool, desired: Desired) -> None:
    """Hold what is blocked, resume what was only held for that. Guarded by state: any node may do it at any time."""
    for campaign in desired.campaigns.values():
        if campaign.state == "running" or campaign.held_by == STOPS:
            await _follow_one(
                db, campaign, blocked(campaign, desired), by_people=only_people(_by_people(campaign, desired))
            )


async def _follow_one(db: Pool, campaign: Campaign, reason: str | None, *, by_people: bool) -> None:
    if reason is None:
        free = "one of its numbers may send again"
        if campaign.held_by == STOPS and await holds.resume(db, campaign.campaign_id, STOPS, free):
            log.info("campaign resumed", campaign=campaign.name)
    elif (campaign.state, campaign.reason) != ("held", reason) and await holds.hold(
        db, campaign.campaign_id, reason, STOPS
    ):
        if by_people:  # what people did is no trouble
            log.info("campaign paused", campaign=campaign.name, reason=reason)
        else:
            log.error("campaign held", campaign=campaign.name, reason=reason)
