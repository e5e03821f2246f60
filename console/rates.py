"""The rate rule: how far + and - go, what an exact figure may be, and when a change must be asked about."""

from engine.domain.snapshot import NumberView

STEP_SHARE = 0.05
ASK_ABOVE_SHARE = 0.20


def stepped(number: NumberView, staged: float | None, direction: int) -> float:
    """The staged rate one step up (1) or down (-1), messages/s: 5 % of the rate in force, at least 1."""
    step = max(1.0, float(round(number.rate * STEP_SHARE)))
    wanted = (number.rate if staged is None else staged) + direction * step
    if wanted >= 1:
        wanted = float(round(wanted))
    return min(max(0.0, wanted), number.limit)


def must_ask(number: NumberView, rate: float) -> bool:
    """Up by more than 20 %, or up to the provider's limit."""
    if rate <= number.rate:
        return False
    return rate >= number.limit or rate > number.rate * (1 + ASK_ABOVE_SHARE)


def parse(text: str, number: NumberView) -> float | str:
    """The rate that was typed, or a sentence that says what is wrong with it."""
    given = text.strip().replace(",", ".")
    try:
        value = float(given)
    except ValueError:
        return f"{given or 'Nothing'!r} is not a rate: type messages per second, such as 40 or 0.2."
    if not 0 <= value < float("inf"):
        return f"{given} is not a rate: it must be 0 or more (0 is a pause)."
    if value > number.limit:
        return f"{given} is above the provider's limit of {number.limit:g}/s: type at most that."
    return value
