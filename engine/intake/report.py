"""What an import did with every line of its file: the object that `tidegate import --json` prints."""

import msgspec
from msgspec import UNSET, UnsetType

LISTED = 100_000
"""Of refusals and of folds, how many a report lists: a full account of any sane file, about 20 MB at most."""


class Rejected(msgspec.Struct, frozen=True):
    """`column` is None when the fault is the whole record's."""

    line: int
    column: str | None
    reason: str


class Fold(msgspec.Struct, frozen=True):
    """The same person stood earlier in the file."""

    line: int
    into_line: int


class Twin(msgspec.Struct, frozen=True):
    """Another spelling of the number in line `of_line`; None: of somebody's who is in the campaign already."""

    line: int
    of_line: int | None


class FaultOfFile(msgspec.Struct, frozen=True):
    """Why a file was refused as a whole; `line` is None when the reason lies in no line."""

    line: int | None
    reason: str


class Report(msgspec.Struct):
    """Counts are exact: lines = heading + taken + refused + folded + already + blank, `heading` being the header
    and the sep= line, if there is one. A record counts as one line, its first. Lists end at LISTED.

    What has no reason to be there is left out: `aside` of the rows taken wait for a person, because their numbers are
    other spellings (`twins`) of somebody's; `cleaned` cells held marks or signs that were taken off first; `doubt`
    says why the campaign may not start before a person has looked at the file."""

    encoding: str | None = None
    separator: str | None = None
    lines: int = 0
    taken: int = 0
    refused: int = 0
    folded: int = 0
    blank: int = 0
    already: int = 0
    rejects: list[Rejected] = msgspec.field(default_factory=list)
    folds: list[Fold] = msgspec.field(default_factory=list)
    file_fault: FaultOfFile | UnsetType = UNSET
    aside: int | UnsetType = UNSET
    twins: list[Twin] | UnsetType = UNSET
    cleaned: list[Rejected] | UnsetType = UNSET
    doubt: str | UnsetType = UNSET

    @property
    def exit_code(self) -> int:
        """0 when any row was taken or was there already, else 2."""
        return 0 if self.taken or self.already else 2

    @property
    def result(self) -> str:
        """The counts, as the journal keeps them."""
        counts = (
            f"taken {self.taken}, refused {self.refused}, folded {self.folded}, "
            f"already {self.already}, blank {self.blank}"
        )
        return f"{counts}, aside {self.aside}" if self.aside else counts

    def json(self) -> str:
        """As the contract has it, in one line."""
        return msgspec.json.encode(self).decode()

    def refuse(self, line: int | None, reason: str) -> None:
        """Make it the report of a refused file: counts are zero, faults of rows found so far stay listed."""
        self.lines = self.taken = self.refused = self.folded = self.blank = self.already = 0
        self.folds = []
        self.aside = self.twins = self.cleaned = self.doubt = UNSET
        self.file_fault = FaultOfFile(line, reason)
