"""The rejects file: every refused row as it was, with the reason, for a person to mend and import again."""

import csv
import os
import tempfile
from pathlib import Path
from types import TracebackType

from engine.intake.audience import Refusal


class RejectsFile:
    """A CSV of line, column, reason, row. It appears under its name, with mode 0600, only by `keep`.

    Use as a context manager. Raises OSError.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        handle, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
        self._temporary = Path(name)
        # What UTF-8 cannot hold is shown as \\ud800: the file must be readable, above all.
        self._file = os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace", newline="")
        self._writer = csv.writer(self._file)
        self._writer.writerow(("line", "column", "reason", "row"))

    def __enter__(self) -> "RejectsFile":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._file.close()
        finally:
            self._temporary.unlink(missing_ok=True)

    def write(self, refusal: Refusal) -> None:
        """Add one row."""
        self._writer.writerow(
            (refusal.line, refusal.column or "", refusal.reason, refusal.raw.rstrip("\r\n"))
        )

    def complete(self) -> None:
        """Have everything on disk, so that a full disk shows while the import can still be undone."""
        self._file.flush()
        os.fsync(self._file.fileno())

    def keep(self) -> None:
        """Give the file its name, in place of any older one."""
        self._temporary.replace(self._path)
