"""How long a row waits before its next try: full jitter, so that a crowd that failed together returns apart."""

BASE_SECONDS = 1.0
CAP_SECONDS = 300.0


def full_jitter(attempt: int, chance: float) -> float:
    """Seconds to wait after the `attempt`-th definite answer (1, 2, …): uniform in (0, min(cap, base * 2^attempt)].

    `chance` is uniform in [0, 1). At least 50 ms, so that `next_attempt_at` always moves.
    """
    ceiling = min(CAP_SECONDS, BASE_SECONDS * 2.0 ** min(attempt, 30))
    return max(0.05, ceiling * (1.0 - chance))


def pair_wait(attempt: int, chance: float) -> float:
    """Seconds for a person who got too much: 4^attempt is the provider's lower bound, so jitter goes only upward.

    Capped at 17 minutes (4^5 = 1,024 s).
    """
    return float(min(4.0 ** min(attempt, 5), 1024.0) * (1.0 + 0.25 * chance))
