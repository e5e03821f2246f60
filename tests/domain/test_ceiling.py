"""The search for what the provider grants, in virtual time against a provider that counts a sliding second."""

import heapq
import random
from collections import deque
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.domain.ceiling import LOWEST, Ceiling, calm, refused
from engine.domain.pacing import SlidingWindow, interval

RATE = 80.0
STEP = 0.002
SILENCE = 1.0


@dataclass
class Run:
    """Answers by second, of a number that follows the ceiling under a changing grant."""

    accepted: list[float] = field(default_factory=list)
    refused: list[float] = field(default_factory=list)

    def share_of(self, grant: float, start: float, end: float) -> float:
        return sum(start <= at < end for at in self.accepted) / (grant * (end - start))

    def throttled(self, start: float, end: float) -> float:
        no = sum(start <= at < end for at in self.refused)
        return no / max(1, no + sum(start <= at < end for at in self.accepted))


def run(grants: list[tuple[float, float]], seconds: float, seed: int = 1) -> Run:
    """`grants`: (from when, messages/s), the first at 0. Latency 0.2-0.3 s, a second of silence after a refusal."""
    chance = random.Random(seed)
    ceiling, window, out = Ceiling(), SlidingWindow(), Run()
    provider: deque[float] = deque()
    answers: list[tuple[float, bool]] = []
    recent: deque[float] = deque()
    silent_until = next_permit = looked = now = 0.0
    while now < seconds:
        while answers and answers[0][0] <= now:
            at, taken = heapq.heappop(answers)
            if taken:
                out.accepted.append(at)
                recent.append(at)
                continue
            out.refused.append(at)
            while recent and recent[0] <= at - 1:
                recent.popleft()
            ceiling = refused(ceiling, at, RATE, float(len(recent)))
            silent_until = max(silent_until, at + SILENCE)
        if now - looked >= 1:
            ceiling, looked = calm(ceiling, now, RATE), now
        rate = ceiling.allowed(RATE)
        if now >= max(silent_until, next_permit) and window.delay(now, rate) == 0:
            window.stamp(now)
            next_permit = max(next_permit + interval(rate), now - 0.02)
            while provider and provider[0] <= now - 1:
                provider.popleft()
            grant = [g for since, g in grants if since <= now][-1]
            if taken := len(provider) < grant:
                provider.append(now)
            heapq.heappush(answers, (now + 0.2 + chance.random() * 0.1, taken))
        now += STEP
    return out


@pytest.fixture(scope="module")
def storm() -> Run:
    return run([(0, 80), (40, 25), (140, 8), (240, 80)], 310)


def test_without_a_refusal_the_rate_alone_counts(storm: Run) -> None:
    assert storm.throttled(0, 40) == 0
    assert storm.share_of(80, 5, 40) > 0.975


def test_an_imposed_limit_is_used_and_hardly_ever_overrun(storm: Run) -> None:
    assert storm.share_of(25, 40, 140) >= 0.90
    assert storm.throttled(40, 140) < 0.03


def test_a_very_low_limit_is_used_too(storm: Run) -> None:
    assert storm.share_of(8, 145, 240) >= 0.93  # a second of silence in 32 is the price of looking
    assert storm.throttled(140, 240) < 0.03


def test_a_grant_that_returns_is_taken_up_within_a_minute(storm: Run) -> None:
    assert storm.share_of(80, 300, 310) > 0.97


def test_refusals_of_one_moment_lower_the_ceiling_once() -> None:
    first = refused(Ceiling(), 10.0, RATE, granted=25.0)
    assert first.level == 25.0
    assert refused(first, 10.4, RATE, granted=1.0).level == 25.0


def test_a_provider_that_refuses_everything_is_probed_every_few_seconds() -> None:
    ceiling = Ceiling()
    for second in range(0, 200, 2):
        ceiling = refused(ceiling, float(second), RATE, granted=0.0)
    assert ceiling.level == LOWEST


@given(
    st.lists(st.tuples(st.booleans(), st.floats(0.01, 20), st.floats(0, 100)), max_size=60),
    st.floats(0.3, 1000),
)
def test_the_level_never_leaves_its_bounds(steps: list[tuple[bool, float, float]], rate: float) -> None:
    ceiling, now = Ceiling(), 0.0
    for is_refusal, after, granted in steps:
        now += after
        ceiling = refused(ceiling, now, rate, granted) if is_refusal else calm(ceiling, now, rate)
        assert LOWEST <= ceiling.allowed(rate) <= rate or ceiling.allowed(rate) == rate
