"""tidegate check"""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import typer

from engine.cli.root import WRONG
from engine.cli.session import Json, database, print_json, print_table, run_once, settings
from engine.cli.values import seconds

if TYPE_CHECKING:
    from engine.config import Config
    from engine.domain.capacity import Capacity
    from engine.postgres.numbers import NumberRow

Finding = tuple[str, str, str]
"""(ok | warning | wrong, what, a sentence)."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("check")(check)


def check(
    ctx: typer.Context,
    latency: Annotated[
        Any, typer.Option("--latency", metavar="TIME", parser=seconds, help="Of one request to Meta.")
    ] = "250ms",
    inbound: Annotated[
        float, typer.Option("--inbound", min=0, help="Messages per second that people write to you.")
    ] = 0,
    audience: Annotated[
        int | None, typer.Option("--audience", min=0, help="How many people (default: all that is pending).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Settings with their origins, database, credentials, webhook, and what the rates ask of everything.

    \b
    Example:
      tidegate check --audience 4000000
    """
    config = settings(ctx)
    findings, numbers, pending = run_once(_look(config))
    findings += _webhook(config) + _environment(config)
    from engine.domain.capacity import capacity

    people = pending if audience is None else audience
    sums = capacity([row.rate for row in numbers], latency=latency, inbound=inbound, audience=people)
    if as_json:
        print_json(
            {
                "settings": [
                    dict(zip(("name", "value", "origin"), line, strict=True)) for line in _shown(config)
                ],
                "findings": [dict(zip(("result", "what", "text"), line, strict=True)) for line in findings],
                "capacity": asdict(sums),
            }
        )
    else:
        _print(config, findings, sums)
    if any(result == "wrong" for result, _, _ in findings):
        raise typer.Exit(WRONG)


async def _look(config: "Config") -> "tuple[list[Finding], list[NumberRow], int]":
    """What only the database can tell: findings, numbers, and rows pending in all campaigns."""
    from engine.credentials import CredentialError, permission_warning, resolve_token
    from engine.domain.recipient import State
    from engine.postgres import books
    from engine.postgres.embedded import EmbeddedError
    from engine.postgres.migrate import MigrationError
    from engine.postgres.pool import DatabaseUnreachable

    try:
        async with database(config) as (pool, commands):
            numbers = await commands.list_numbers()
            pending = sum(counts[State.PENDING] for counts in (await books.balances(pool)).values())
            version = await pool.fetchval("SHOW server_version")
    except MigrationError as error:
        return [("ok", "database", "reachable"), ("wrong", "migrations", str(error))], [], 0
    except (DatabaseUnreachable, EmbeddedError) as error:
        return [("wrong", "database", str(error))], [], 0
    kind = "embedded Postgres" if config.database_url is None else "Postgres"
    findings: list[Finding] = [("ok", "database", f"{kind} {version}"), ("ok", "migrations", "current")]
    if not numbers:
        findings.append(("warning", "numbers", "There are none yet: `tidegate number add`."))
    for row in numbers:
        try:
            resolve_token(row.token_ref)
        except CredentialError as error:
            findings.append(("wrong", f"token of {row.id}", str(error)))
            continue
        warning = permission_warning(row.token_ref)
        findings.append(("warning" if warning else "ok", f"token of {row.id}", warning or row.token_ref))
    return findings, numbers, pending


def _webhook(config: "Config") -> list[Finding]:
    findings: list[Finding] = []
    if config.app_secret:
        findings.append(
            ("ok", "webhook", f"{len(config.app_secret)} app secret(s); POST {config.listen}/webhook")
        )
    else:
        text = "TIDEGATE_APP_SECRET is not set: `run` needs it, unless --no-webhook."
        findings.append(("warning", "webhook", text))
    if config.verify_token is None:
        text = "TIDEGATE_VERIFY_TOKEN is not set: Meta cannot verify the webhook's address."
        findings.append(("warning", "webhook", text))
    return findings


def _environment(config: "Config") -> list[Finding]:
    from engine.config import unknown_variables

    findings: list[Finding] = []
    for name in unknown_variables():
        findings.append(("warning", "environment", f"{name} is set but means nothing: is it misspelt?"))
    if config.grace <= config.request_deadline:
        text = f"The grace ({config.grace:g} s) is not longer than the request deadline: some rows end as unknown."
        findings.append(("warning", "grace", text))
    return findings


def _shown(config: "Config") -> list[tuple[str, str, str]]:
    """(setting, value fit for any eye, origin)."""
    from engine.postgres.pool import masked

    lines = []
    for name, origin in config.origins.items():
        value = getattr(config, name)
        if name == "database_url":
            text = masked(value.get_secret_value()) if value else "embedded"
        elif name in ("app_secret", "verify_token", "gateway_token"):
            text = "set" if value else "not set"
        elif name == "forward_url" and value:
            text = _without_key(value)
        elif isinstance(value, float):
            text = f"{value:g}s"
        elif name == "metrics_listen":
            text = "off" if value is None else str(value)
        else:
            text = "not set" if value is None else str(value)
        lines.append((name, text, origin))
    return lines


def _without_key(url: str) -> str:
    """Scheme, host and port: a path may hold a key, and a login may stand before the host."""
    parts = urlsplit(url)
    where = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    return f"{where}/…" if parts.path.strip("/") or "@" in parts.netloc else where


def _print(config: "Config", findings: list[Finding], sums: "Capacity") -> None:
    print_table(["SETTING", "VALUE", "FROM"], _shown(config))
    print()
    print_table(["", "WHAT", "RESULT"], [(result.upper(), what, text) for result, what, text in findings])
    print()
    hours = "never: no number has a rate" if sums.hours is None else _duration(sums.hours)
    print_table(
        ["CAPACITY", "SUM"],
        [
            ("messages/s, all numbers", f"{sums.rate:g}"),
            ("requests in flight (rate x latency)", f"{sums.in_flight:,.1f}"),
            ("statuses/s (3 x rate + inbound)", f"{sums.statuses:,.1f}"),
            ("database rows written/s", f"{sums.database_rows:,.1f}"),
            (f"{sums.audience:,} people take", hours),
        ],
    )


def _duration(hours: float) -> str:
    return f"{hours:,.1f} h" if hours >= 1 else f"{hours * 60:,.1f} min"
