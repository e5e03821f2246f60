"""A console on the terminal of this process, over a fake link; writes what it submitted and how it was left.

Run as `python -m tests.console.on_pty RESULT_FILE [breaking]` with the terminal as stdin and stdout.
"""

import json
import signal
import sys
from dataclasses import replace
from pathlib import Path

import console.app
from console.app import ConsoleApp
from engine import clock
from engine.domain.snapshot import Snapshot
from tests.console.support import FakeLink, bad_night


class LivingLink(FakeLink):
    """Publishes something new at every look."""

    def snapshot(self) -> Snapshot | None:
        self.current = replace(self.current or bad_night(), at=clock.now())
        return self.current


class Breaking(ConsoleApp):
    """Dies of `!`, as no shield can prevent."""

    CSS_PATH = str(Path(console.app.__file__).with_name("console.tcss"))

    def action_key(self, name: str) -> None:
        """Every key of the table but one does what it does."""
        if name == "alerts":
            raise RuntimeError("a fault of the screen")
        super().action_key(name)


def main(result: Path, app: type[ConsoleApp] = ConsoleApp) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # the console must notice a lost terminal by itself
    link = LivingLink()
    left = app(link).run()
    result.write_text(json.dumps({"left": left, "submitted": [repr(act) for act in link.submitted]}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Breaking if sys.argv[2:] == ["breaking"] else ConsoleApp)
