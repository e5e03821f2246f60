"""? : the live table of keys, every column and word of the screen, and what the provider's errors mean."""

from collections.abc import Sequence
from textwrap import wrap

from console.frame import Frame
from console.glossary import glossary
from console.keys import LEAVING, table
from console.line import Line
from console.screens.page import PageScreen
from console.session import Session
from engine.domain.errors import MEANINGS, WAITS

_WORD = 20
"""Cells of a word of the glossary."""


class HelpScreen(PageScreen):
    """Every key of the registry, what it does, and how it asks."""

    def __init__(self, session: Session, mode: str) -> None:
        super().__init__(session)
        self._mode = mode

    def page_title(self, _frame: Frame) -> str:
        """How to get out again is in the title."""
        return "KEYS, columns, words, error codes  (j k PgDn move, Esc back)"

    def items(self, frame: Frame, width: int) -> Sequence[Line]:
        """Grouped as in the table."""
        lines, group = [Line(part, "strong") for part in LEAVING[self._mode].splitlines()], ""
        for name, key, text, asks in table():
            if name != group:
                group = name
                lines += [Line(), Line(group, "title")]
            line = Line("  ").cell(_spelled(key, frame), 11, role="key").add(_spelled(text, frame))
            lines.append(line.add(f"  [{asks}]", "faint") if asks else line)
        signs = frame.glyphs
        legend = f"{signs.critical} critical  {signs.warning} warning  {signs.normal} normal"
        legend += f"  {signs.paused} paused or held"
        legend += f"  {signs.running} sending  {signs.slowed} slowed  {signs.waiting} waiting"
        lines += [Line(), Line("Signs", "title"), Line(f"  {legend}")]
        for title, words in glossary():
            lines += [Line(), Line(title, "title")]
            for word, meaning in words:
                lines += _wrapped(_spelled(word, frame), _spelled(meaning, frame), width)
        return [*lines, *_errors(frame, width)]


def _wrapped(word: str, meaning: str, width: int) -> list[Line]:
    """The word, and its meaning beside it in as many lines as it takes."""
    room = max(20, width - _WORD - 2)
    first, *more = wrap(meaning, room)
    lines = [Line("  ").cell(word, _WORD, role="key").add(first)]
    return [*lines, *(Line(" " * (_WORD + 2)).add(part) for part in more)]


def _errors(frame: Frame, width: int) -> list[Line]:
    """The table that decides what an answer means, by scope: what happened, what to do."""
    lines: list[Line] = []
    for scope, wait in WAITS.items():
        codes = sorted(code for code, known in MEANINGS.items() if known.scope is scope and code >= 0)
        lines += [Line(), Line(f"Errors: {scope.value}", "title"), Line(f"  waits: {wait}", "faint")]
        for code in codes:
            known = MEANINGS[code]
            line = Line("  ").cell(str(code), 9, role="key").add(_spelled(known.title, frame))
            lines += line.add(f"  {_spelled(known.advice, frame)}", "faint").folded(width, 13)
    return lines


def _spelled(text: str, frame: Frame) -> str:
    """Signs of the keyboard as words where the terminal has no such signs."""
    if not frame.glyphs.ascii:
        return text
    return text.replace("⏎", frame.glyphs.enter).replace("↓", "Down").replace("↑", "Up")
