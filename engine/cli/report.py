"""tidegate campaign report"""

import csv
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.session import Json, Name, database, print_json, print_table, run_once, settings
from engine.domain.count import counted, proven_later
from engine.domain.duration import format_duration
from engine.domain.message import masked

if TYPE_CHECKING:
    from engine.domain.closing import Closing
    from engine.domain.control import ControlStanding

DOES_NOT_BALANCE = 5


def register(group: typer.Typer) -> None:
    """Add the command to the group of campaigns."""
    group.command()(report)


def report(
    ctx: typer.Context,
    name: Name,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV: section, name, detail, value.")] = False,
    as_json: Json = False,
) -> None:
    """What a campaign came to: planned against every outcome, with reasons, time line, pace. Code 5: it does not
    add up.

    \b
    Example:
      tidegate campaign report reminder
      tidegate campaign report reminder --csv > reminder.csv
    """
    if as_csv and as_json:
        raise typer.BadParameter("--csv and --json are two forms: give one of them")
    config = settings(ctx)

    async def once() -> "Closing":
        async with database(config) as (_, commands):
            return await commands.report_campaign(name)

    found = run_once(once())
    if as_json:
        print_json(as_object(found))
    elif as_csv:
        csv.writer(sys.stdout, lineterminator="\n").writerows(lines(found))
    else:
        _print(found)
    if found.faults:
        raise typer.Exit(DOES_NOT_BALANCE)


def as_object(found: "Closing") -> dict[str, object]:
    """The public shape of `campaign report --json`."""
    return {
        "name": found.name,
        "state": found.state,
        "reason": found.reason,
        "at": found.at.isoformat(timespec="seconds"),
        "started_at": found.started_at.isoformat() if found.started_at else None,
        "finished_at": found.finished_at.isoformat() if found.finished_at else None,
        "deadline": found.deadline.isoformat() if found.deadline else None,
        "planned": found.planned,
        "counts": {state.word: n for state, n in found.counts.items()},
        "balances": not found.faults,
        "faults": found.faults,
        "reasons": [
            {"outcome": r.outcome, "code": r.code, "reason": r.reason, "rows": r.rows} for r in found.reasons
        ],
        "tries": found.tries,
        "attempts": found.attempts,
        "accepted": found.accepted,
        "possible_duplicates": found.possible_duplicates,
        "confirmed_duplicates": found.confirmed_duplicates,
        "assumed_sent": found.assumed_sent,
        "refused_lines": found.refused_lines,
        "folded_lines": found.folded_lines,
        "minutes": [
            {
                "minute": b.minute.isoformat(timespec="minutes"),
                "tries": b.tries,
                "accepted": b.accepted,
                "refused": b.refused,
                "throttled": b.throttled,
            }
            for b in found.line
        ],
        "numbers": [
            {
                "number": p.number,
                "tries": p.tries,
                "throttled": p.throttled,
                "mean_per_second": round(p.mean, 3) if p.mean is not None else None,
                "best_minute_per_second": round(p.best, 3),
                "rate": p.rate,
                "limit": p.limit,
            }
            for p in found.paces
        ],
        "pace_changes": [
            {
                "at": c.at.isoformat(timespec="seconds"),
                "number": c.number,
                "act": c.act,
                "before": c.before,
                "after": c.after,
                "author": c.author,
            }
            for c in found.pace_changes
        ],
        "controls": found.controls.as_json() if found.controls else None,
    }


def lines(found: "Closing") -> list[tuple[object, ...]]:
    """The report as rows of one table."""
    whole = as_object(found)
    plain = ("state", "reason", "at", "started_at", "finished_at", "deadline", "planned", "balances")
    counters = (
        "tries", "attempts", "accepted", "possible_duplicates", "confirmed_duplicates", "assumed_sent",
        "refused_lines", "folded_lines",
    )  # fmt: skip
    rows: list[tuple[object, ...]] = [("section", "name", "detail", "value")]
    rows += [("campaign", key, "", whole[key]) for key in plain]
    rows += [("outcome", state.word, "", n) for state, n in found.counts.items()]
    rows += [
        ("reason", r.outcome, f"{r.code} {r.reason}" if r.code is not None else r.reason, r.rows)
        for r in found.reasons
    ]
    rows += [("counter", key, "", whole[key]) for key in counters]
    for b in found.line:
        minute = b.minute.isoformat(timespec="minutes")
        for word in ("tries", "accepted", "refused", "throttled"):
            rows.append(("minute", minute, word, getattr(b, word)))
    for p in found.paces:
        figures = {"tries": p.tries, "throttled": p.throttled, "mean per second": p.mean}
        figures |= {"best minute per second": p.best, "rate": p.rate, "limit": p.limit}
        rows += [("number", p.number, word, value) for word, value in figures.items()]
    rows += [
        (
            "pace change",
            c.number,
            f"{c.act}, {c.at.isoformat(timespec='seconds')}",
            f"{c.before} to {c.after}",
        )
        for c in found.pace_changes
    ]
    for one in found.controls.phones if found.controls else ():
        for word in ("sent", "delivered", "failed", "not_sent"):
            rows.append(("control", masked(one.phone), word, getattr(one, word)))
    return rows


def _print(found: "Closing") -> None:
    state = f"{found.state.upper()}" + (f" ({found.reason})" if found.reason else "")
    print(f"Report of campaign {found.name}, {state}, as of {found.at.isoformat(timespec='seconds')}")
    print(
        f"started {_moment(found.started_at)}  finished {_moment(found.finished_at)}  "
        f"deadline {_moment(found.deadline)}"
    )
    print(f"Refused of its files: {counted(found.refused_lines, 'line')}; folded: {found.folded_lines:,}.\n")
    print_table(
        ["OUTCOME", "ROWS", "SHARE"],
        [
            *((s.word, n, _share(n, found.planned)) for s, n in found.counts.items() if n),
            ("planned", found.planned, "100%"),
        ],
    )
    if found.reasons:
        print()
        print_table(
            ["OUTCOME", "CODE", "ROWS", "REASON"],
            [
                (r.outcome, str(r.code) if r.code is not None else None, r.rows, r.reason)
                for r in found.reasons
            ],
        )
    proven = proven_later(found.accepted, found.attempts)
    accepted = f"{found.accepted:,} accepted" + (f" ({proven})" if proven else "")
    print(
        f"\n{found.tries:,} tries, {accepted}, {found.possible_duplicates:,} possible duplicates "
        f"({found.confirmed_duplicates:,} confirmed), {found.assumed_sent:,} assumed sent\n"
    )
    print_table(
        ["NUMBER", "TRIES", "THROTTLED", "MEAN/S", "BEST MINUTE/S", "RATE/S NOW", "LIMIT/S NOW"],
        [
            (
                p.display,
                p.tries,
                p.throttled,
                f"{p.mean:.2f}" if p.mean else None,
                f"{p.best:.2f}",
                p.rate,
                p.limit,
            )
            for p in found.paces
        ],
    )
    for c in found.pace_changes:
        at = c.at.isoformat(timespec="seconds")
        print(f"{at}: {c.act} of {c.number} from {c.before} to {c.after} (messages/s), by {c.author}")
    if found.line:
        print()
        print_table(
            ["MINUTE", "TRIES", "ACCEPTED", "REFUSED", "THROTTLED"],
            [
                (b.minute.isoformat(timespec="minutes"), b.tries, b.accepted, b.refused, b.throttled)
                for b in found.line
            ],
        )
    if found.controls:
        print()
        print_controls(found.controls)
    print()
    if not found.faults:
        print(f"It balances: {found.planned:,} planned, {sum(found.counts.values()):,} accounted for.")
        return
    print("IT DOES NOT BALANCE: " + " ".join(found.faults) + " Run `tidegate audit`.")


def print_controls(controls: "ControlStanding") -> None:
    """Control phones, who are no part of the audience."""
    every = f", every {format_duration(controls.every_s)}" if controls.every_s else ""
    print(f"Control phones, not counted above: {counted(controls.rounds, 'round')}{every}")
    print_table(
        ["CONTROL", "SENT", "DELIVERED", "FAILED", "NOT SENT", "LATEST", "WAITING"],
        [
            (
                masked(one.phone),
                one.sent,
                one.delivered,
                one.failed,
                one.not_sent,
                one.last_state,
                None if one.waiting_s is None else f"{one.waiting_s:.0f} s",
            )
            for one in controls.phones
        ],
    )


def _moment(at: object) -> str:
    from datetime import datetime

    return at.isoformat(timespec="seconds") if isinstance(at, datetime) else "-"


def _share(n: int, planned: int) -> str | None:
    return f"{n / planned:.1%}" if planned else None
