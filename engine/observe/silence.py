"""Whether anybody answers: for how long a number's accepted messages have waited for any status at all."""

from datetime import datetime

LEAST = 10
"""Messages that must be unheard of: the last few of a campaign may well lose their statuses."""


class Silence:
    """Of one number. Looked at about once a second."""

    def __init__(self) -> None:
        self._heard: datetime | None = None
        self._accepted = 0
        self._since: float | None = None

    def look(self, now: float, heard: datetime | None, accepted: int) -> float | None:
        """Seconds of silence, or None. `heard`: when the last status came; `accepted`: messages since the start."""
        if heard != self._heard:
            self._heard, self._accepted, self._since = heard, accepted, None
        if self._since is None and accepted - self._accepted >= LEAST:
            self._since = now
        return None if self._since is None else now - self._since
