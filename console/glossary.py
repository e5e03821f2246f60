"""The words of the screen, for the help: columns from the grid's registry, the rest from here and from the pages."""

from console.screens.number import BOUNDS, NEXT
from console.why import WORDS
from console.widgets.numbers import COLUMNS

FRAME: tuple[tuple[str, str], ...] = (
    (
        "LIVE STALE FROZEN",
        "how old the picture is: newer than 2 s, older (the engine or the database is slow), or held by f",
    ),
    ("RW RO", "whether this screen may act (read-write) or only look (read-only)"),
    ("SENT", "messages that the provider accepted, of all planned; not yet that they arrived"),
    ("delivered", "arrived on a phone, by webhook; read ones are counted in"),
    ("pend, pending", "rows that have not left yet"),
    ("in flight", "requests that left and wait for their answer, for milliseconds to seconds"),
    ("STUCK", "requests without an answer for more than 2 min; they become unknown by themselves"),
    ("unknown", "it may have been sent or not: nothing is sent again until a webhook, R or the policy says"),
    ("failed", "refused for good, each with its code (2)"),
    ("ETA", "when nothing is pending any more, at the pace of the last minute"),
    ("tries/s", "requests per second, shown where they are more than the accepted ones"),
    ("token wait", "how long a ready row waits for its turn; grows when there is more work than rate"),
    ("claim", "time to reserve rows in the database"),
    ("commit", "time to mark rows as sending, and to store results; above 50 ms the database brakes"),
    ("answer", "the provider's latency"),
    ("sent to delivered", "from our send to the webhook that says delivered"),
    ("webhook lag", "age of the oldest webhook that is stored and not applied yet; inbox: how many such"),
    ("loop", "how late the engine's own loop wakes; above 100 ms this machine is overloaded"),
    ("p50 / p95 / p99", "half / 95 of 100 / 99 of 100 are below this"),
    ("hold", "a stop that the provider's answers caused; it needs a person: h lists them"),
    ("paused", "a stop by a person: r lifts it"),
    ("cleared 03:12Z", "the alert's cause is gone since then; it stays listed until a is pressed"),
    ("acked", "somebody has taken this alert on; it stays while its cause stays"),
)

Section = tuple[str, tuple[tuple[str, str], ...]]


def glossary() -> tuple[Section, ...]:
    """(title, (word, meaning)) in the order in which a reader meets them."""
    return (
        ("Columns of the numbers", tuple((c.head.strip(), c.meaning) for c in COLUMNS)),
        ("States of a number", tuple(NEXT.items())),
        ("Bound by", tuple(BOUNDS.items())),
        ("Why (below 120 columns)", WORDS),
        ("Words", FRAME),
    )
