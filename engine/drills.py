"""Scripted bad days for training, on the demo's own world: `tidegate demo --drill NAME`.

Most are a scenario of the simulator alone; two need a trouble of their own, which runs beside the engine.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from engine.config import Config, ConfigError, RunOptions
from engine.database import open_url
from engine.demo import NUMBERS, OpenConsole, Setting, world
from engine.domain.thresholds import DEFAULTS
from engine.postgres import obstruction
from engine.postgres.faults import DATABASE_FAULTS

TROUBLE_AFTER = 8.0
"""Seconds of a good day first, so that the change is seen."""

TROUBLE_FOR = 60.0
"""Seconds after which a trouble that only others could mend is mended."""

PEOPLE = 30_000
"""With a screen: work for some four minutes at full rate, and so time to look and to act. q ends it."""

PATIENCE = 60.0
"""Without a screen: seconds for which a campaign may be held before the drill ends, with exit code 4."""

QUICK = replace(
    DEFAULTS,
    throttled_for_s=10.0,
    silence_s=20.0,
    unknown_growth=5.0,
    deadline_for_s=5.0,
    database_slow_for_s=5.0,
    transaction_s=20.0,
)
"""Alerts come within seconds: nobody trains by waiting for two minutes."""

Trouble = Callable[[Config], AbstractContextManager[object]]

_FIRST, _SECOND, _THIRD = (number for number, _, _ in NUMBERS)


@dataclass(frozen=True, slots=True)
class Drill:
    """One bad day. `day`: what it changes in the simulator's scenario; `setting`: in what the campaign is like."""

    teaches: str
    day: Mapping[str, object] = field(default_factory=dict)
    trouble: Trouble = nullcontext
    setting: Setting = field(default_factory=Setting)
    request_deadline: float = 20.0


@contextmanager
def _beside(trouble: Callable[[threading.Event], None]) -> Iterator[None]:
    """Trouble in a thread of its own; it is told when the drill is over, and waited for."""
    over = threading.Event()
    thread = threading.Thread(target=trouble, args=(over,), name="trouble")
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextmanager
def _second_node(config: Config) -> Iterator[None]:
    """Another node takes its share of the numbers, is killed without a word, and is started again later."""
    with _beside(lambda over: _die_and_return(config, over)):
        yield


def _die_and_return(config: Config, over: threading.Event) -> None:
    for seconds in (2 * TROUBLE_AFTER, None):
        node = _start_node(config)
        try:
            over.wait(seconds)
        finally:
            node.kill()
            node.wait()
        if over.wait(TROUBLE_FOR):
            return


def _start_node(config: Config) -> "subprocess.Popen[bytes]":
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TIDEGATE_")}
    environment |= {"TIDEGATE_DATA_DIR": str(config.data_dir), "TIDEGATE_API_URL": config.api_url}
    environment |= {"TIDEGATE_METRICS_LISTEN": "off"}
    start = "from engine.cli import run_command; run_command()"
    command = [sys.executable, "-c", start, "run", "--no-ui", "--no-webhook", "--node", "second"]
    return subprocess.Popen(
        command, env=environment, cwd=config.data_dir, start_new_session=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


@contextmanager
def _slow_database(config: Config) -> Iterator[None]:
    """Somebody's maintenance locks the rows for seconds, again and again."""
    with _beside(lambda over: asyncio.run(_obstruct(config, over))):
        yield


async def _obstruct(config: Config, over: threading.Event) -> None:
    if await asyncio.to_thread(over.wait, TROUBLE_AFTER):
        return
    until = time.monotonic() + 1.5 * TROUBLE_FOR
    async with open_url(config) as url:
        while not over.is_set() and time.monotonic() < until:
            with suppress(*DATABASE_FAULTS):
                await obstruction.lock_rows(url, seconds=2.5)
            await asyncio.to_thread(over.wait, 1.0)


def _refusing(code: int, status: int) -> dict[str, object]:
    """A rule: this error for a minute, so that whoever lifts the hold afterwards sees it heal."""
    match = {"from_s": TROUBLE_AFTER, "until_s": TROUBLE_AFTER + TROUBLE_FOR}
    return {"do": "error", "code": code, "http_status": status, "match": match}


DRILLS: Mapping[str, Drill] = {
    "throttle": Drill(
        "One number gets less than its limit says. See its CEIL fall, what it is really granted (Enter on it), and "
        "that the others go on; lower its rate to that with - or =, and the alert clears.",
        {"numbers": {_FIRST: {"limit": 25}, _SECOND: {"limit": 80}, _THIRD: {"limit": 20}}},
    ),
    "expired-token": Drill(
        "The access token expires. Every number of it is held at once and nobody is lost. A colleague renews it a "
        "minute later: lift the hold on the page h then, and see what happens when you do it too early.",
        {"rules": [_refusing(190, 401)]},
    ),
    "template-paused": Drill(
        "Meta pauses the template for a minute. The campaign is held, not the numbers; its rows stay pending. Find the "
        "reason on the pages h and c, and lift the hold when the minute is over.",
        {"rules": [_refusing(132015, 400)]},
    ),
    "webhook-silence": Drill(
        "Messages are accepted, but for a minute and a half no status comes back. Learn to tell a dead webhook from "
        "dead sending, and why nothing may be reconciled by policy meanwhile.",
        {"statuses": {"sent_s": [90.0, 91.0], "delivered_s": [0.2, 1.0], "read_s": [0.5, 3.0]}},
    ),
    "dead-node": Drill(
        "A second node dies after a quarter of a minute. Its numbers stand still until its leases end, then come here "
        "(pages ! N e); what it had in flight becomes unknown, not twice sent. A minute later it is started again.",
        trouble=_second_node,
    ),
    "stuck-rows": Drill(
        "Some requests get no answer. Rows become unknown instead of being sent twice; Enter in panel 3 lists them, "
        "and R says what it would do about them before it does it.",
        {"rules": [{"do": "never_answer", "match": {"from_s": TROUBLE_AFTER, "every": 60}}],
         "statuses": {"lost_share": 0.3, "sent_s": [0.2, 1.0], "delivered_s": [0.2, 3.0]}},
        setting=Setting(unknown_policy="resend", unknown_after=45.0),
        request_deadline=5.0,
    ),
    "slow-database": Drill(
        "Somebody's maintenance locks our rows for a minute and a half. The word under BOUND BY is database, and the "
        "commit time says how bad it is; the alert names the pid whose lock it is.",
        trouble=_slow_database,
    ),
    "deadline-at-risk": Drill(
        "The campaign has too little time for its people. Compare ETA and deadline on the page c; raise the rates with "
        "= while there is time, and see how many rows would still be late.",
        setting=Setting(deadline_s=50.0, share=0.2),
    ),
}  # fmt: skip


def listing() -> str:
    """Each drill with what it teaches."""
    wide = max(len(name) for name in DRILLS)
    return "\n".join(f"{name:<{wide}}  {drill.teaches}" for name, drill in DRILLS.items())


def scenario_of(drill: Drill, good_day: Mapping[str, object]) -> dict[str, object]:
    """The demo's pleasant day with what the drill changes."""
    return {**good_day, **drill.day}


def lengthened(setting: Setting) -> Setting:
    """The same for somebody who looks on: more people, and their deadline as much later."""
    later = None if setting.deadline_s is None else setting.deadline_s * 4
    return replace(setting, people=PEOPLE if later is None else PEOPLE * 2 // 3, deadline_s=later)


def run_drill(name: str, options: RunOptions, open_console: OpenConsole | None) -> int:
    """The exit code. Raises ConfigError for a name that is none."""
    from importlib.resources import files

    from engine.app import run_headless

    drill = DRILLS.get(name)
    if drill is None:
        raise ConfigError(f"There is no drill {name!r}: `tidegate demo --list` shows them.")
    print(f"drill {name}: {drill.teaches}", file=sys.stderr)
    good_day = json.loads((files("engine.simulator") / "demo.json").read_text("utf-8"))
    with ExitStack() as up:
        place = Path(up.enter_context(tempfile.TemporaryDirectory()))
        (place / "day.json").write_text(json.dumps(scenario_of(drill, good_day)), "utf-8")
        seen = not (options.no_ui or open_console is None)
        config = up.enter_context(
            world(place / "day.json", lengthened(drill.setting) if seen else drill.setting)
        )
        config = config.model_copy(update={"alerts": QUICK, "request_deadline": drill.request_deadline})
        up.enter_context(drill.trouble(config))
        if options.no_ui or open_console is None:
            return run_headless(config, replace(options, no_ui=True, patience=PATIENCE))
        return open_console(config, options)
