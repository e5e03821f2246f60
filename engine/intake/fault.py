"""What is wrong with a whole file, as opposed to one of its rows."""


class FileFault(Exception):
    """The file cannot be read as an audience; nothing of it may be kept. `line` is 1 for the first."""

    def __init__(self, line: int | None, reason: str) -> None:
        super().__init__(reason)
        self.line = line
        self.reason = reason
