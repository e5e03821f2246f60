"""Whether a file looks as if its phone column were not people's: too many equal numbers in it."""

from engine.domain.count import counted

MANY = 10
"""Lines with one number: a default that a form fills in, the shop's own telephone."""

SHARE = 0.2
"""Of a file's usable lines, repeats; an honest list has a few in a hundred."""


def doubt(most: int, folded: int, usable: int) -> str | None:
    """Why a person should look before anything is sent, as a clause; or None.

    `most`: lines of the number that stands most often; `folded`: lines that repeat a number; `usable`: lines with one.
    """
    if most >= MANY:
        return f"one number stands in {most:,} of {counted(usable, 'line')}"
    if folded >= MANY and folded > SHARE * usable:
        return f"{folded:,} of {counted(usable, 'line')} repeat a number that stands further up"
    return None
