"""The rejects file: every refused row as it was, with the reason, for a person to mend and import again."""

import csv
import os
import tempfile
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from types import TracebackType

from engine.intake.audience import Refusal
from engine.intake.records import PIECE_CHARS

END = "\r\n"


class RejectsFile:
    """Line, column and reason, and then the row's own cells, in the input's encoding (UTF-8 with its mark, for
    spreadsheets) and separator: once its cells are mended the file can be imported as it is.

    It appears under its name, with mode 0600, only by `keep`. `names`: the input's header. Use as a context manager.
    Raises OSError.
    """

    def __init__(self, path: Path, *, encoding: str, separator: str, names: Sequence[str]) -> None:
        self._path = path
        self._separator = separator
        handle, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
        self._temporary = Path(name)
        # What the encoding cannot hold is shown as \\ud800: the file must be readable, above all.
        self._file = os.fdopen(handle, "w", encoding=encoding, errors="backslashreplace", newline="")
        own = [_unused(title, names) for title in ("line", "column", "reason")]
        self._file.write(self._cells([*own, *names]) + END)

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
        row = refusal.raw.rstrip("\r\n")
        if (
            len(refusal.raw) >= PIECE_CHARS
        ):  # cut off, perhaps within quotes: as one cell it spoils no other row
            row = self._cells([row])
        about = self._cells([str(refusal.line), refusal.column or "", refusal.reason])
        self._file.write(about + self._separator + row + END)

    def complete(self) -> None:
        """Have everything on disk, so that a full disk shows while the import can still be undone."""
        self._file.flush()
        os.fsync(self._file.fileno())

    def keep(self) -> None:
        """Give the file its name, in place of any older one."""
        self._temporary.replace(self._path)

    def _cells(self, cells: Sequence[str]) -> str:
        text = StringIO()
        csv.writer(text, delimiter=self._separator, lineterminator="").writerow(cells)
        return text.getvalue()


def _unused(title: str, names: Sequence[str]) -> str:
    """A file of rejects that is imported again has these columns already: then `line 2`, and so on."""
    taken = {"".join(name.casefold().split()) for name in names}
    nth, found = 1, title
    while "".join(found.split()) in taken:
        nth += 1
        found = f"{title} {nth}"
    return found
