"""What becomes of an accepted message: the statuses its webhooks will tell, and when."""

from __future__ import annotations

from hashlib import blake2b
from random import Random
from typing import NamedTuple

from engine.simulator.scenario import Failure, Statuses


class Planned(NamedTuple):
    """One status to come, `delay_us` after acceptance. `failure` only for kind "failed"."""

    delay_us: int
    kind: str
    failure: Failure | None = None


def plan(settings: Statuses, wa_id: str, seed: int, chance: Random) -> list[Planned]:
    """The statuses of one message, in the order they happen; shuffled ones have exchanged their times."""
    if not settings.enabled or chance.random() < settings.lost_share:
        return []
    told = _life(settings, wa_id, seed, chance)
    if len(told) > 1 and chance.random() < settings.shuffled_share:
        delays = [planned.delay_us for planned in told]
        chance.shuffle(delays)
        told = [planned._replace(delay_us=delay) for planned, delay in zip(told, delays, strict=True)]
    if settings.duplicated_share:
        told += [
            planned._replace(delay_us=planned.delay_us + _draw_us((0.0, 3.0), chance))
            for planned in told
            if chance.random() < settings.duplicated_share
        ]
    return told


def failure_of(settings: Statuses, wa_id: str, seed: int) -> Failure | None:
    """The way this recipient always fails, or None. Pure: a test can foretell each recipient's end."""
    for failure in settings.failures:
        if failure.to_ends_with is not None and not wa_id.endswith(failure.to_ends_with):
            continue
        if failure.share >= 1 or _fraction(f"{seed}:{failure.code}:{wa_id}") < failure.share:
            return failure
    return None


def _life(settings: Statuses, wa_id: str, seed: int, chance: Random) -> list[Planned]:
    sent = Planned(_draw_us(settings.sent_s, chance), "sent")
    failure = failure_of(settings, wa_id, seed)
    if failure is not None:
        start = sent.delay_us if failure.after_sent else 0
        failed = Planned(start + _draw_us(settings.failed_s, chance), "failed", failure)
        return [sent, failed] if failure.after_sent else [failed]
    if chance.random() < settings.undelivered_share:
        return [sent]
    delivered = Planned(sent.delay_us + _draw_us(settings.delivered_s, chance), "delivered")
    if chance.random() >= settings.read_share:
        return [sent, delivered]
    read = Planned(delivered.delay_us + _draw_us(settings.read_s, chance), "read")
    if chance.random() < settings.read_without_delivered_share:
        return [sent, read]
    return [sent, delivered, read]


def _draw_us(bounds: tuple[float, float], chance: Random) -> int:
    low, high = bounds
    return int((low + (high - low) * chance.random()) * 1e6)


def _fraction(text: str) -> float:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big") / 2.0**64
