"""Pauses kept beside the database, in `<data_dir>/paused/<number>`: a stop must not need a database.

Each file is on disk (file and directory fsynced) before anyone is told that the pause holds. The engine of
this machine reads them before its first claim and while the database is away. Once the number's row holds the
pause, too, the file says so: a row that is going again was then resumed by somebody, perhaps elsewhere, and the
file is out of date. No clock decides that.
"""

import json
import os
import re
import secrets
from dataclasses import asdict, dataclass, replace
from pathlib import Path

_NUMBER = re.compile(r"\d{1,32}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Pause:
    """One kept pause: who stopped the number, why, and when by this machine's clock (ISO 8601, UTC)."""

    number: str
    by: str
    reason: str | None
    at: str
    recorded: bool = False
    """Whether the number's row holds it, too."""


class PauseFiles:
    """The directory of pauses of one machine."""

    def __init__(self, data_dir: Path) -> None:
        self.directory = data_dir / "paused"

    def write(self, pause: Pause) -> bool:
        """Keep `pause`, durably. False when one of its number was kept already; the newest words stay.

        Raises OSError when it cannot be kept, and ValueError when the number is not one.
        """
        path = self._path(pause.number)
        fresh = self.directory / f".{pause.number}-{secrets.token_hex(4)}"
        self.directory.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, json.dumps(asdict(pause)).encode())
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        new = not path.exists()
        fresh.rename(path)  # seen whole or not at all
        self._sync()
        return new

    def record(self, number: str) -> None:
        """The number's row holds the pause now. Raises OSError."""
        pause = self.read().get(number)
        if pause is not None and not pause.recorded:
            self.write(replace(pause, recorded=True))

    def remove(self, number: str) -> bool:
        """Forget the pause of `number`, durably. False when there was none. Raises OSError."""
        try:
            self._path(number).unlink()
        except FileNotFoundError:
            return False
        self._sync()
        return True

    def read(self) -> dict[str, Pause]:
        """All kept pauses by number. A file that cannot be read still pauses: that is the safe side."""
        try:
            names = [entry.name for entry in os.scandir(self.directory) if _NUMBER.fullmatch(entry.name)]
        except FileNotFoundError:
            return {}
        return {name: self._pause(name) for name in sorted(names)}

    def _pause(self, number: str) -> Pause:
        try:
            fields = json.loads((self.directory / number).read_text("utf-8"))
            recorded = fields.get("recorded") is True
            return Pause(number, str(fields["by"]), fields.get("reason"), str(fields["at"]), recorded)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return Pause(number, "unknown", f"{self.directory / number} (not readable)", "")

    def _path(self, number: str) -> Path:
        if not _NUMBER.fullmatch(number):
            raise ValueError(f"{number!r} is not a number's id")
        return self.directory / number

    def _sync(self) -> None:
        descriptor = os.open(self.directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
