"""Numbers of things in sentences: 1 row, 2 rows, 6,016 lines."""


def proven_later(accepted: int, attempts: int) -> str:
    """Why more can be accepted than attempts were spent; empty where it is not so.

    >>> proven_later(12, 10)
    '2 more accepted by webhook, their answers were lost'
    """
    return (
        f"{accepted - attempts:,} more accepted by webhook, their answers were lost"
        if accepted > attempts
        else ""
    )


def counted(n: int, one: str, many: str | None = None) -> str:
    """`n` with its noun; `many` for plurals that are not made with an s.

    >>> counted(1, "row"), counted(6016, "line"), counted(2, "country", "countries")
    ('1 row', '6,016 lines', '2 countries')
    """
    return f"{n:,} {one if n == 1 else many or one + 's'}"
