"""The seam between a screen and an engine: read one frozen snapshot, submit one act, ask one question."""

from concurrent.futures import Future
from typing import Protocol

from engine.domain.act import Act
from engine.domain.inspection import Answer, Query
from engine.domain.snapshot import Snapshot


class EngineLink(Protocol):
    """What a screen knows of an engine, in this process or attached."""

    def snapshot(self) -> Snapshot | None:
        """The newest published snapshot; None before the first. Never blocks."""

    def submit(self, act: Act) -> str:
        """Hand an act to the engine; returns its id at once. Its stages appear in `Snapshot.acts`."""

    def ask(self, query: Query) -> "Future[Answer]":
        """Ask what the snapshot does not hold; the screen looks now and then whether it is done, and never waits."""

    def ended(self) -> str | None:
        """None while the engine lives, else one line that says how it ended."""
