"""Connections, and the one sentence a person reads when there is none."""

import asyncio
import socket
from urllib.parse import urlsplit

import asyncpg
import pytest

from engine.postgres.pool import DatabaseUnreachable, Pool, connect, masked, open_pool

SECRET = "s3cr3t"


async def test_a_pool_answers(pool: Pool) -> None:
    assert await pool.fetchval("SELECT count(*) FROM schema_migration") > 0


async def test_a_connection_comes_back_without_the_transaction_left_open_in_it(database_url: str) -> None:
    async with open_pool(database_url, size=1) as pool:
        async with pool.acquire() as connection:
            await connection.execute("CREATE TABLE t (n int)")
            await connection.execute("BEGIN")
            await connection.execute("INSERT INTO t VALUES (1)")
        assert await pool.fetchval("SELECT count(*) FROM t") == 0


@pytest.mark.parametrize("given", ["argument", "url"])
async def test_behind_pgbouncer_no_statement_is_prepared_by_name(database_url: str, given: str) -> None:
    url = database_url if given == "argument" else database_url + "&pgbouncer=true"
    async with open_pool(url, size=1, pgbouncer=given == "argument") as pool, pool.acquire() as connection:
        await connection.fetchval("SELECT $1::int", 1)
        assert await connection.fetchval("SELECT count(*) FROM pg_prepared_statements WHERE name <> ''") == 0


async def test_without_pgbouncer_statements_are_kept(database_url: str) -> None:
    async with open_pool(database_url, size=1) as pool, pool.acquire() as connection:
        await connection.fetchval("SELECT $1::int", 1)
        assert await connection.fetchval("SELECT count(*) FROM pg_prepared_statements WHERE name <> ''") > 0


async def test_a_statement_over_its_time_is_given_up(database_url: str) -> None:
    async with open_pool(database_url, size=1, command_timeout=1.0) as pool:
        with pytest.raises(TimeoutError):
            await pool.execute("SELECT pg_sleep(60)")


async def test_a_failing_block_does_not_wait_for_connections_still_held(database_url: str) -> None:
    async def fail_holding_one() -> None:
        async with open_pool(database_url, size=1) as pool:
            await pool.acquire()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail_holding_one()


async def refusal(url: str) -> str:
    with pytest.raises(DatabaseUnreachable) as caught:
        async with open_pool(url):
            pytest.fail("it connected")
    with pytest.raises(DatabaseUnreachable):
        async with connect(url):
            pytest.fail("it connected")
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    return str(caught.value)


async def test_a_closed_port_is_named_without_the_password() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        said = await refusal(f"postgresql://ann:{SECRET}@127.0.0.1:{port}/tidegate")
    assert said.startswith(
        f"The database postgresql://ann:***@127.0.0.1:{port}/tidegate could not be reached"
    )


async def test_a_missing_socket_directory_is_said() -> None:
    said = await refusal("postgresql://tidegate@/tidegate?host=/nowhere&port=5432")
    assert "host=/nowhere" in said
    assert "No such file or directory" in said


async def test_an_unknown_database_is_said(database_url: str) -> None:
    said = await refusal(urlsplit(database_url)._replace(path="/nonesuch").geturl())
    assert "/nonesuch?" in said
    assert "does not exist on that server" in said


async def test_a_server_that_hangs_up_is_said() -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        said = await refusal(f"postgresql://ann:{SECRET}@127.0.0.1:{port}/tidegate?sslmode=disable")
    assert "127.0.0.1" in said
    assert SECRET not in said


@pytest.mark.parametrize(
    "url",
    [
        f"mysql://ann:{SECRET}@host/db",
        f"postgresql://ann:{SECRET}/x@host/db",
        f"postgresql://ann:{SECRET}#x@host/db",
        f"postgresql://ann:{SECRET}?x@host/db",
        f"postgresql://ann:x@{SECRET}@host/db",
        f"postgresql://ann:{SECRET}@host:port/db",
        f"postgresql://ann:{SECRET}@[host/db",
        f"postgresql://host:port/db?password={SECRET}",
        f"ann:{SECRET}@host",
        SECRET,
    ],
)
async def test_a_url_that_cannot_be_read_is_refused_without_being_quoted(url: str) -> None:
    said = await refusal(url)
    assert "is not a valid Postgres URL" in said
    assert SECRET not in said


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (f"postgresql://ann:{SECRET}@db.example:6432/tide", "postgresql://ann:***@db.example:6432/tide"),
        (f"postgresql://ann:{SECRET}%40%2F@db/tide", "postgresql://ann:***@db/tide"),
        ("postgresql://ann@db/tide", "postgresql://ann@db/tide"),
        (f"postgresql://db/tide?user=ann&password={SECRET}", "postgresql://db/tide?user=ann&password=***"),
        (f"postgresql://db/tide?sslpassword={SECRET}", "postgresql://db/tide?sslpassword=***"),
        (
            "postgresql://tidegate@/tide?host=/run/pg&port=5432",
            "postgresql://tidegate@/tide?host=/run/pg&port=5432",
        ),
        (f"postgresql://ann:{SECRET}@[::1]:5432/tide", "postgresql://ann:***@[::1]:5432/tide"),
        (f"postgresql://ann:{SECRET}@one:1,two:2/tide", "postgresql://ann:***@one:1,two:2/tide"),
        (f"host=db user=ann password={SECRET}", "postgresql://…"),
    ],
)
def test_a_masked_url_shows_all_but_the_passwords(url: str, shown: str) -> None:
    assert masked(url) == shown


async def test_losing_a_connection_hides_no_error_of_the_block(database_url: str) -> None:
    async def lose_it_and_fail() -> None:
        async with connect(database_url) as doomed, connect(database_url) as other:
            await other.execute("SELECT pg_terminate_backend($1, 10000)", doomed.get_server_pid())
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await lose_it_and_fail()


async def test_a_lost_connection_is_replaced_at_the_next_use(pool: Pool) -> None:
    async with pool.acquire() as doomed:
        pid = doomed.get_server_pid()
        async with pool.acquire() as other:
            await other.execute("SELECT pg_terminate_backend($1, 10000)", pid)
        with pytest.raises(
            (asyncpg.PostgresConnectionError, asyncpg.InterfaceError, asyncpg.AdminShutdownError)
        ):
            await doomed.fetchval("SELECT 1")
    assert await pool.fetchval("SELECT 1") == 1
