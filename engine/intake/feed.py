"""From an audience to what the database copies in, chunk by chunk, counting everything on the way."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from itertools import islice

from engine.intake.audience import Audience, Blank, Refusal, Row
from engine.intake.fault import FileFault
from engine.intake.rejects import RejectsFile
from engine.intake.report import LISTED, Rejected, Report
from engine.postgres.imports import staged_row

CHUNK_RECORDS = 1_000  # about 30 ms of reading, 100 kB to copy

Progress = Callable[[int, int], None]


class Feed:
    """Reads an audience in a thread of its own, never more than one chunk ahead of the database."""

    def __init__(
        self,
        audience: Audience,
        report: Report,
        rejects: RejectsFile | None,
        progress: Progress | None,
        *,
        by_zone: bool = False,
    ) -> None:
        self.fault: FileFault | OSError | None = None
        self._audience = audience
        self._records: Iterator[Row | Refusal | Blank] = iter(audience)
        self._report = report
        self._rejects = rejects
        self._progress = progress
        self._by_zone = by_zone

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Rows for COPY. A fault ends them and is left in `fault`: the COPY itself must end cleanly."""
        more = True
        while more:
            reading = asyncio.ensure_future(asyncio.to_thread(self._read))
            try:
                chunk, more = await asyncio.shield(reading)
            finally:
                if (
                    not reading.done()
                ):  # cancelled: the thread must have let go of the files before they close
                    await asyncio.wait([reading])
            if self._progress:
                self._progress(self._audience.bytes_done, self._audience.bytes_total)
            if chunk:
                yield chunk

    def _read(self) -> tuple[bytes, bool]:
        """The next rows, and whether there may be more."""
        rows: list[bytes] = []
        count = 0
        try:
            for record in islice(self._records, CHUNK_RECORDS):
                count += 1
                if isinstance(record, Row):
                    rows.append(
                        staged_row(
                            record.line, record.phone, record.country, record.params, by_zone=self._by_zone
                        )
                    )
                    if record.cleaned:
                        self._clean(record)
                elif isinstance(record, Refusal):
                    self._refuse(record)
                else:
                    self._report.blank += 1
        except (FileFault, OSError) as fault:
            self.fault = fault
            return b"", False
        self._report.lines += count
        return b"".join(rows), count == CHUNK_RECORDS

    def _staged(self, row: Row) -> bytes:
        return staged_row(row.line, row.phone, row.country, row.params, by_zone=self._by_zone)

    def _clean(self, row: Row) -> None:
        listed = self._report.cleaned or []
        listed += [Rejected(row.line, *cell) for cell in row.cleaned][: LISTED - len(listed)]
        self._report.cleaned = listed

    def _refuse(self, refusal: Refusal) -> None:
        self._report.refused += 1
        if len(self._report.rejects) < LISTED:
            self._report.rejects.append(Rejected(refusal.line, refusal.column, refusal.reason))
        if self._rejects:
            self._rejects.write(refusal)
