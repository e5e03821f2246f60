"""Pauses kept beside the database, in `<data_dir>/paused/<number>`: a stop must not need a database.

Each file is on disk (file and directory fsynced) before anyone is told that the pause holds. The engine of
this machine reads them before its first claim and while the database is away.
"""

import json
import os
import re
import secrets
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

_NUMBER = re.compile(r"\d{1,32}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Pause:
    """One kept pause: who stopped the number, why, and when by this machine's clock (ISO 8601, UTC)."""

    number: str
    by: str
    reason: str | None
    at: str

    @property
    def since(self) -> datetime:
        """`at` as an aware time; the epoch when the file's text was not readable."""
        try:
            at = datetime.fromisoformat(self.at)
        except ValueError:
            return datetime.fromtimestamp(0, UTC)
        return at if at.tzinfo else at.replace(tzinfo=UTC)


class PauseFiles:
    """The directory of pauses of one machine."""

    def __init__(self, data_dir: Path) -> None:
        self.directory = data_dir / "paused"

    def write(self, pause: Pause) -> bool:
        """Keep `pause`, durably. False when the number's file was there already (it is then left as it is).

        Raises OSError when it cannot be kept, and ValueError when the number is not one.
        """
        path = self._path(pause.number)
        if path.exists():
            return False
        self.directory.mkdir(parents=True, exist_ok=True)
        fresh = self.directory / f".{pause.number}-{secrets.token_hex(4)}"
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, json.dumps(asdict(pause)).encode())
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        fresh.rename(path)  # seen whole or not at all
        self._sync()
        return True

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
            return Pause(number, str(fields["by"]), fields.get("reason"), str(fields["at"]))
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
