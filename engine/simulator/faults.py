"""Which fault, if any, a request meets."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from engine.simulator.scenario import Match, Rule


class Faults:
    """The rules of one scenario and how often each was met. Time zero is `since_us`."""

    def __init__(self, rules: Sequence[Rule], chance: Random, since_us: int) -> None:
        self._unread = [_Counted(rule) for rule in rules if rule.do == "close_before_reading"]
        self._read = [_Counted(rule) for rule in rules if rule.do != "close_before_reading"]
        self._chance, self._since_us = chance, since_us

    def at_headers(self, number: str, at_us: int) -> Rule | None:
        """The rule that ends a request before its body is read."""
        return self._first(self._unread, number, "", at_us)

    def at_message(self, number: str, to: str, at_us: int) -> Rule | None:
        """The rule for a message that was read and would otherwise be accepted; `to` is the wa_id."""
        return self._first(self._read, number, to, at_us)

    def _first(self, rules: Sequence[_Counted], number: str, to: str, at_us: int) -> Rule | None:
        second = (at_us - self._since_us) / 1e6
        for counted in rules:
            if counted.meets(number, to, second, self._chance):
                return counted.rule
        return None


class _Counted:
    __slots__ = ("rule", "seen", "taken")

    def __init__(self, rule: Rule) -> None:
        self.rule, self.seen, self.taken = rule, 0, 0

    def meets(self, number: str, to: str, second: float, chance: Random) -> bool:
        match = self.rule.match
        if not _concerns(match, number, to, second):
            return False
        self.seen += 1
        if match.every is not None and self.seen % match.every:
            return False
        if match.first is not None and self.taken >= match.first:
            return False
        if match.share is not None and chance.random() >= match.share:
            return False
        self.taken += 1
        return True


def _concerns(match: Match, number: str, to: str, second: float) -> bool:
    if match.number is not None and match.number != number:
        return False
    if match.from_s is not None and second < match.from_s:
        return False
    if match.until_s is not None and second >= match.until_s:
        return False
    return match.to_ends_with is None or to.endswith(match.to_ends_with)
