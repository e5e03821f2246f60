"""tidegate migrate"""

from typing import Annotated

import typer

from engine.cli.session import run_once, settings


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("migrate")(migrate)


def migrate(
    ctx: typer.Context,
    sql: Annotated[bool, typer.Option("--sql", help="Print the SQL for a DBA, apply nothing.")] = False,
) -> None:
    """Bring the database to this program's schema. Running it again does nothing.

    \b
    Example:
      tidegate migrate --sql | psql "$DATABASE_URL"
    """
    from engine.database import open_url
    from engine.postgres import migrate as migrations

    if sql:
        print(migrations.sql_script())
        return
    config = settings(ctx)

    async def once() -> list[str]:
        async with open_url(config) as url:
            return await migrations.migrate(url)

    for name in (applied := run_once(once())):
        print(f"applied {name}")
    if not applied:
        print("The database is current already.")
