"""Why a number sends no faster, in one short word: STATE and BOUND BY for a grid that has room for neither."""

from engine.domain.snapshot import NumberView

WORDS: tuple[tuple[str, str], ...] = (
    ("paused, held", "its state: a person or the engine stopped it, and a person lets it go on"),
    ("silent", "waiting: the provider asked for a pause, and it goes on by itself"),
    ("lease", "waiting: nobody sends from it until the lease of a silent node has run out"),
    ("ceiling", "slowed: the provider grants less than CFG, see CEIL"),
    ("away", "another node sends from it: tidegate attach shows its pace"),
    ("db", "bound by the database"),
    ("others", "a word of Bound by"),
)
"""For the help: what stands under WHY, and what it means."""

URGENT = ("silent", "ceiling", "db", "database", "provider", "hold", "lease", "no node")
"""Words that a person should notice also where the state is none."""

_SHORT = {"database": "db", "provider": "silent"}


def why(number: NumberView, *, away: bool) -> str:
    """At most seven cells. `away`: another node sends from it."""
    if number.state in ("paused", "held"):
        return number.state
    if number.bound_by == "lease":
        return "lease"
    if number.state == "waiting":
        return "silent"
    if away:
        return "away"
    if number.bound_by == "provider" and number.ceiling < number.rate:
        return "ceiling"
    return _SHORT.get(number.bound_by, number.bound_by)
