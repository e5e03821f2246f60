"""The state of a campaign in the one word that people read, on screens, in lists and in reports."""

from collections.abc import Iterable

STOPS = "stops"
"""held_by of a campaign none of whose numbers may send for it: it goes on by itself when one may."""


def shown(state: str, held_by: str | None, by_people: Iterable[bool], *, free: bool = False) -> str:
    """`state`, but paused where it is held for nothing but pauses: their act, and no trouble.

    `by_people`: of each of its numbers, whether a person has paused it. `free`: one of them may send again, so that it
    goes on at the next look, and is in no trouble any more.

    >>> shown("held", STOPS, [True, True]), shown("held", STOPS, [True, False]), shown("held", "budget", [True])
    ('paused', 'held', 'held')
    >>> shown("held", STOPS, [True, False], free=True), shown("held", "budget", [False], free=True)
    ('running', 'held')
    """
    if (state, held_by) != ("held", STOPS):
        return state
    return "running" if free else "paused" if only_people(by_people) else state


def only_people(by_people: Iterable[bool]) -> bool:
    """Whether people have paused all of its numbers, and it has some."""
    each = list(by_people)
    return bool(each) and all(each)
