"""What the rows of a campaign wait for that does not come by itself in a moment: why it is not at its end."""

from collections.abc import Mapping
from dataclasses import dataclass

from engine.domain.count import counted
from engine.domain.quiet import Quiet

TWINS, CANARY, QUIET = "twins", "canary", "quiet"
"""What holds pending rows, as their lanes say; any other word is a reason for people."""


@dataclass(frozen=True, slots=True)
class Wait:
    """So many rows wait for `of`; `text` is the end of a sentence that begins with "waits for"."""

    rows: int
    of: str
    text: str


def waits(
    name: str,
    held: Mapping[str, int],
    unknown: int,
    assessing: int,
    policy: str,
    quiet: Quiet | None = None,
) -> list[Wait]:
    """Of a campaign that has not ended. `held`: pending rows by what holds their lane.

    >>> [wait.text for wait in waits("may", {"twins": 1}, 0, 0, "hold")]
    ['a person: 1 row kept aside: `tidegate rows list --campaign may --twins`']
    """
    found = []
    for why, rows in sorted(held.items()):
        told = counted(rows, "row")
        match why:
            case "twins":
                text = f"a person: {told} kept aside: `tidegate rows list --campaign {name} --twins`"
                found.append(Wait(rows, "person", text))
            case "canary":
                found.append(Wait(rows, "canary", f"its canary: {told} to follow when the first did well"))
            case "quiet":
                hours = f" ({quiet})" if quiet is not None else ""
                found.append(Wait(rows, "quiet hours", f"the end of quiet hours{hours}: {told}"))
            case _:
                found.append(Wait(rows, "hold", f"{why}: {told}"))
    if unknown:
        ask = f"{counted(unknown, 'unknown row')}: `tidegate reconcile --campaign {name} --dry-run`"
        of = "person" if policy == "hold" else "evidence"
        first = "evidence or a person" if policy == "hold" else f"evidence, then its policy {policy}"
        found.append(Wait(unknown, of, f"{first}: {ask}"))
    if assessing:
        found.append(
            Wait(assessing, "provider", f"Meta, which holds {counted(assessing, 'row')} for assessment")
        )
    return found
