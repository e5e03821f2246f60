"""The one table of keys: bindings, key line, help, palette and the README's key table are made from it."""

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from textual.binding import Binding, BindingType

from console.guard import Kind


class Level(Enum):
    """How much an act asks for before it happens."""

    VIEW = "changes nothing"
    L0 = "at once"
    L1 = "asks y"
    L2 = "asks a name and a reason"
    L2_ALL = 'asks "all" and a reason'
    """The name of the only open campaign will do as well."""
    DEPENDS = "may ask"


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that a key does. `keys` are Textual's names, `shown` is what a person reads on the keyboard."""

    name: str
    keys: tuple[str, ...]
    shown: str
    help: str
    group: str
    short: str = ""
    """For the key line; empty: not there."""
    level: Level = Level.VIEW
    kind: Kind = Kind.ONCE
    palette: bool = True


ACTIONS: tuple[Action, ...] = (
    Action("down", ("j", "down"), "j ↓", "next row", "Move", kind=Kind.MOVE, palette=False),
    Action("up", ("k", "up"), "k ↑", "previous row", "Move", kind=Kind.MOVE, palette=False),
    Action("top", ("g", "home"), "g", "first row", "Move", kind=Kind.MOVE, palette=False),
    Action("bottom", ("G", "end"), "G", "last row", "Move", kind=Kind.MOVE, palette=False),
    Action("page_down", ("pagedown",), "PgDn", "a page down", "Move", kind=Kind.MOVE, palette=False),
    Action("page_up", ("pageup",), "PgUp", "a page up", "Move", kind=Kind.MOVE, palette=False),
    Action("next_panel", ("tab",), "Tab", "next panel", "Move", kind=Kind.MOVE, palette=False),
    Action("previous_panel", ("shift+tab",), "Shift-Tab", "previous panel", "Move", kind=Kind.MOVE, palette=False),
    Action("panel(1)", ("1",), "1", "panel: numbers", "Move", kind=Kind.MOVE, palette=False),
    Action("panel(2)", ("2",), "2", "panel: errors", "Move", kind=Kind.MOVE, palette=False),
    Action("panel(3)", ("3",), "3", "panel: sending too long, and unknown", "Move", kind=Kind.MOVE, palette=False),
    Action("panel(4)", ("4",), "4", "panel: alerts (j k choose which one a acknowledges)", "Move",
           kind=Kind.MOVE, palette=False),
    Action("panel(5)", ("5",), "5", "panel: events", "Move", kind=Kind.MOVE, palette=False),
    Action("enter", ("enter",), "⏎", "apply a staged rate; else open what is under the cursor; on a hold: lift it",
           "Move", "open", Level.DEPENDS, palette=False),
    Action("describe", ("d",), "d", "open what is under the cursor", "Move", palette=False),
    Action("back", ("escape",), "Esc", "drop a staged rate; clear the filter; one level back; never quits", "Move",
           kind=Kind.MOVE, palette=False),
    Action("filter", ("slash",), "/", "show only numbers that contain a text", "Move", "filter"),
    Action("sort_previous", ("less_than_sign",), "<", "sort by the column before", "Move", kind=Kind.STEP),
    Action("sort_next", ("greater_than_sign",), ">", "sort by the next column", "Move", kind=Kind.STEP),
    Action("pause", ("p",), "p", "pause the number under the cursor", "Act", "pause", Level.L0),
    Action("resume", ("r",), "r", "resume it (asks after a hold; a rate of 0 needs =)", "Act", "resume", Level.DEPENDS),
    Action("rate_up", ("plus",), "+", "stage its rate 5 % up: ⏎ applies", "Act", "", Level.DEPENDS, Kind.STEP),
    Action("rate_down", ("minus",), "-", "stage its rate 5 % down", "Act", "rate", Level.L0, Kind.STEP),
    Action("rate_exact", ("equals_sign",), "=", "give an exact rate", "Act", "", Level.DEPENDS),
    Action("reconcile", ("R",), "R", "settle unknown rows: first shows what would happen", "Act",
           "reconcile", Level.L1),
    Action("undo", ("u",), "u", "take back your last rate or pause (5 min)", "Act", "undo", Level.L0),
    Action("start", ("s",), "s", "start the campaign (on its page)", "Act", "", Level.L0, palette=False),
    Action("cancel", ("x",), "x", "cancel the campaign (on its page)", "Act", "", Level.L2, palette=False),
    Action("retry_failed", ("F",), "F", "send the campaign's failed rows once more (on its page)", "Act", "", Level.L2,
           palette=False),
    Action("acknowledge", ("a",), "a", "acknowledge the alert shown", "Act", "ack", Level.L0),
    Action("acknowledge_all", ("A",), "A", "acknowledge all alerts", "Act", "", Level.L0),
    Action("pause_all", ("P",), "P", "pause everything", "Act", "pause all", Level.L2_ALL),
    Action("resume_all", ("C",), "C", "continue: lift what P stopped, and nothing else", "Act", "", Level.L1),
    Action("stop", ("Q",), "Q", "stop the engine: drain, then end", "Act", "stop", Level.L2_ALL),
    Action("freeze", ("f",), "f", "freeze the picture; again: live", "See", "freeze"),
    Action("window", ("w",), "w", "window 1m 5m 15m 1h 6h", "See", "window", kind=Kind.STEP),
    Action("events", ("e",), "e", "events and acts", "See"),
    Action("log", ("l",), "l", "the event log", "See"),
    Action("campaigns", ("c",), "c", "campaigns with their books", "See"),
    Action("alerts", ("!", "exclamation_mark"), "!", "all alerts, with what to do", "See", "alerts"),
    Action("holds", ("h",), "h", "holds: what stands still until a person lifts it (⏎)", "See"),
    Action("journal", ("J",), "J", "journal: who did what, also from elsewhere", "See"),
    Action("trends", ("t",), "t", "trends: every figure over the chosen window, back to six hours", "See"),
    Action("nodes", ("N",), "N", "nodes: who owns which number, and how fresh their figures are", "See"),
    Action("reveal", ("v",), "v", "show the phone number (on a row's page; journalled)", "See", palette=False),
    Action("export", ("S",), "S", "export the screen as SVG", "See"),
    Action("help", ("question_mark",), "?", "this help", "See", "help", palette=True),
    Action("palette", ("ctrl+p", "colon"), ":", "all commands by name (or ctrl+p)", "See", "palette", palette=False),
    Action("leave", ("q",), "q", "leave the screen", "See", "leave"),
    Action("interrupt", ("ctrl+c",), "ctrl+c", "says what q and Q do", "See", palette=False),
)  # fmt: skip

KEY_LINE = (
    "help", "pause", "resume", "rate_down", "alerts", "reconcile", "pause_all", "leave", "stop", "undo",
    "acknowledge", "filter", "enter", "freeze", "window", "palette",
)  # fmt: skip
"""What the last line of the screen shows, the most needed first: what does not fit is left out."""

LEAVING = {
    "run": "q: leave the screen, the engine goes on headless (then ctrl+c drains it).\nQ: stop the engine.",
    "attach": "q: close this viewer, the nodes go on.\nQ: refused here: a node is stopped where it runs.",
    "demo": "q: end the demo, screen and engine.\nQ: drain, then end.",
}
"""What q and Q do, by the way the screen was opened; ctrl+c says exactly this."""


def by_name(name: str) -> Action:
    """Raises KeyError for a name that is not in the table."""
    return _BY_NAME[name]


def kind_of(key: str) -> Kind:
    """What the guard must know of a key outside an input; a key that does nothing here counts as once."""
    return _KINDS.get(key, Kind.ONCE)


def bindings(names: Iterable[str] | None = None) -> list[BindingType]:
    """Textual's bindings: every key calls `action_key(name)` of its screen."""
    chosen = ACTIONS if names is None else [_BY_NAME[name] for name in names]
    return [
        Binding(key, f"key('{action.name}')", action.help, show=False)
        for action in chosen
        for key in action.keys
        if action.name not in ("palette", "interrupt")
    ]


def table() -> list[tuple[str, str, str, str]]:
    """(group, key, what it does, how it asks), in the order of the table."""
    return [(a.group, a.shown, a.help, "" if a.level is Level.VIEW else a.level.value) for a in ACTIONS]


def markdown() -> str:
    """The same table for the README."""
    head = "| Key | Does | Asks |\n| --- | --- | --- |\n"
    return head + "".join(f"| `{key}` | {text} | {asks} |\n" for _, key, text, asks in table())


BEGIN, END = "<!-- keys:begin -->", "<!-- keys:end -->"


def written_into(text: str) -> str:
    """A text with the table between its two marks made anew. Raises ValueError without them."""
    before, _, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise ValueError(f"There is no {BEGIN} … {END} in this text.")
    return f"{before}{BEGIN}\n{markdown()}{END}{after}"


PAGES_ONLY = {
    "start": "a campaign's page: c, then Enter",
    "cancel": "a campaign's page: c, then Enter",
    "retry_failed": "a campaign's page: c, then Enter",
    "reveal": "a row's page: Enter on a number, on its rows, on a row",
}
"""Keys that mean something only on the page that says so, and the way to it."""


def nothing_here(key: str) -> str:
    """What to say of a key that does nothing where it was pressed."""
    action = next((action for action in ACTIONS if key in action.keys), None)
    if action is None:
        return "no such key: ? or ctrl+p"
    shown = action.shown.replace("⏎", "Enter")
    return f"{shown} works on {PAGES_ONLY.get(action.name, 'the overview: Esc')}"


_BY_NAME = {action.name: action for action in ACTIONS}
_KINDS = {key: action.kind for action in ACTIONS for key in action.keys} | {"y": Kind.ONCE, "n": Kind.MOVE}


if __name__ == "__main__":
    _readme = Path(sys.argv[1])
    _readme.write_text(written_into(_readme.read_text("utf-8")), "utf-8")
