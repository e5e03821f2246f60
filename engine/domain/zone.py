"""The time zones in which a person may live, by country and area of the phone number."""

from functools import lru_cache

from phonenumbers.tzdata import TIMEZONE_DATA, TIMEZONE_LONGEST_PREFIX

from engine.domain.phone import twins

MOST = 16
"""Numbers of no area (toll-free in North America) belong to more zones than that: they are of no zone."""


def zones_of(e164: str) -> str:
    """Names of zones with blanks between them, one for most numbers; '' when nothing can be said.

    >>> zones_of("+5592988880001")
    'America/Manaus'
    """
    spellings = (e164, *twins(e164))
    found = [
        zones for zones in map(_of_prefix, (s[1 : 1 + TIMEZONE_LONGEST_PREFIX] for s in spellings)) if zones
    ]
    fewest = min(found, key=len, default=())
    return " ".join(fewest) if len(fewest) <= MOST else ""


@lru_cache(maxsize=65_536)
def _of_prefix(digits: str) -> tuple[str, ...]:
    for length in range(len(digits), 0, -1):
        zones: tuple[str, ...] | None = TIMEZONE_DATA.get(digits[:length])
        if zones is not None:
            return zones
    return ()
