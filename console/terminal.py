"""Textual's Linux driver, made steady: no byte from a terminal, and no lost terminal, may end the process.

Stock, one byte that is no UTF-8 (a tmux re-attach sends old mouse reports) or a closed terminal ends the input
thread with a panic, and the app with it.
"""

import os
import selectors
from codecs import getincrementaldecoder
from typing import Protocol, cast

from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver


class Leavable(Protocol):
    """What the driver needs of its app."""

    mouse: bool

    def terminal_lost(self) -> None:
        """The terminal is gone; called in the driver's thread."""


class SteadyDriver(LinuxDriver):
    """Asks for the mouse only when the app does."""

    def __init__(
        self, app: object, *, debug: bool = False, mouse: bool = True, size: tuple[int, int] | None = None
    ) -> None:
        self._leavable = cast(Leavable, app)
        super().__init__(app, debug=debug, mouse=mouse and self._leavable.mouse, size=size)  # type: ignore[arg-type]

    def run_input_thread(self) -> None:
        """Read until told to stop; what cannot be understood is dropped."""
        decode = getincrementaldecoder("utf-8")("replace").decode
        parser = XTermParser(self._debug)
        with selectors.DefaultSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            while not self.exit_event.is_set():
                text = ""
                if selector.select(0.1):
                    data = self._read()
                    if not data:
                        self._leavable.terminal_lost()
                        return
                    text = decode(data)
                parser = self._feed(parser, text)

    def _read(self) -> bytes:
        """Empty when the terminal is gone."""
        try:
            return os.read(self.fileno, 4096)
        except OSError:
            return b""

    def _feed(self, parser: XTermParser, text: str) -> XTermParser:
        try:
            for message in parser.feed(text) if text else ():
                self.process_message(message)
            for message in parser.tick():
                self.process_message(message)
        except Exception:  # noqa: BLE001  a sequence that the parser cannot take: start afresh behind it
            return XTermParser(self._debug)
        return parser
