"""Planted secrets and phone numbers, and a run with everything going wrong: nothing that a run leaves holds them."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import html
import os
import pty
import re
import signal
import struct
import termios
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import httpx
import pyte
import pytest

from engine.postgres.pool import open_pool
from tests.faults.test_database import TERMINATE
from tests.support.process import ROOT, TIDEGATE, without_settings
from tests.support.simulator import APP_SECRET, TOKEN
from tests.support.world import NUMBER, World, free_port, scenario, world

SECRETS = {
    "access token": "EAAplantedAccessToken7",
    "app secret": "plantedAppSecret7",
    "gateway token": "plantedGatewayToken7",
    "verify token": "plantedVerifyToken7",
    "database password": "plantedDatabasePassword7",
    "forward key": "plantedForwardKey7",
}
PHONE = re.compile(r"551196\d{7}")
"""Of the audience, whole; masked ones have no seven digits in a row there."""

WHOLE = re.compile(r"\+\d{9,15}|(?<![\d.])(55|44|351|49|1)\d{10}(?!\d)|(?<![\d.])55\d{11}(?!\d)")
"""A phone number of anybody, as people and the provider write it; an epoch has 13 digits and begins with 17 or 18."""

CREDENTIAL = re.compile(rf"EAA\w{{4}}|Bearer|://\w+:[^*@\s]+@|{re.escape(TOKEN)}|{re.escape(APP_SECRET)}")

TABLES = (
    "SELECT quote_ident(relname) FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'"
)
ENDS_WITHIN_S = 60.0
SIZE = (50, 160)


def _with_password(url: str) -> str:
    parts = urlsplit(url)
    login = f"{parts.username}:{SECRETS['database password']}"
    return urlunsplit(parts._replace(netloc=f"{login}@{parts.netloc.rpartition('@')[2]}"))


@asynccontextmanager
async def _on_terminal(
    w: World, environment: dict[str, str]
) -> AsyncIterator[tuple[list[str], Callable[[bytes], int]]]:
    """`tidegate run` with its console on a terminal of its own: the screens as painted, and what presses a key."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", *SIZE, 0, 0))
    process = await asyncio.create_subprocess_exec(
        *TIDEGATE,
        "run",
        cwd=w.directory,
        env=without_settings() | environment | {"PYTHONPATH": str(ROOT), "TERM": "xterm-256color"},
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    )
    os.close(slave)
    screens: list[str] = []
    screen = pyte.Screen(SIZE[1], SIZE[0])
    stream = pyte.ByteStream(screen)

    def painted() -> None:
        try:
            data = os.read(master, 1 << 16)
        except OSError:
            asyncio.get_running_loop().remove_reader(master)
            return
        stream.feed(re.sub(rb"\x1b\[[<>=?][\d;]*[a-zA-Z$]+", b"", data))  # private modes, which pyte prints
        screens.append(data.decode(errors="replace") + "\n".join(screen.display))

    asyncio.get_running_loop().add_reader(master, painted)
    try:
        yield screens, partial(os.write, master)
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(ENDS_WITHIN_S):
            assert await process.wait() == 143
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        asyncio.get_running_loop().remove_reader(master)
        os.close(master)


async def _exported(w: World, screens: list[str], press: Callable[[bytes], int]) -> str:
    """The screen with the campaign on it, as S writes it into the data directory."""
    data = w.directory / "data"

    async def painted() -> bool:
        return any("reminder" in screen for screen in screens)

    async def written() -> bool:
        return any("</svg>" in path.read_text() for path in data.glob("*.svg"))

    await w.until(painted, "the campaign on the screen")
    press(b"S")
    await w.until(written, "an exported screen")
    [path] = data.glob("*.svg")
    return path.read_text()


def visible(svg: str) -> str:
    """What a person reads on an exported screen."""
    return html.unescape(re.sub(r"<style.*?</style>|<[^>]*>", " ", svg, flags=re.DOTALL))


def _command_lines() -> str:
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            lines.append(path.read_bytes().decode(errors="replace"))
    return "\n".join(lines)


async def _dump(url: str) -> str:
    """Every value of every table, as text."""
    parts = []
    async with open_pool(url, size=1) as db:
        for (table,) in await db.fetch(TABLES):
            rows = await db.fetch(f"SELECT t::text AS line FROM {table} AS t")  # noqa: S608 - quoted by Postgres
            parts += [row["line"] for row in rows]
    return "\n".join(parts)


async def _knock(port: int) -> str:
    """Strangers and clients at every door, and what they are told."""
    said = []
    async with httpx.AsyncClient(trust_env=False, base_url=f"http://127.0.0.1:{port}", timeout=20) as http:
        for bearer in ("wrong", SECRETS["gateway token"]):
            reply = await http.post(
                f"/v25.0/{NUMBER}/messages", content=b"{", headers={"authorization": f"Bearer {bearer}"}
            )
            said.append(reply.text + str(reply.headers))
        said.append(
            (await http.post("/webhook", content=b"{}", headers={"x-hub-signature-256": "sha256=00"})).text
        )
        query = {"hub.mode": "subscribe", "hub.verify_token": "wrong", "hub.challenge": "1"}
        said += [
            (await http.get(path, params=query)).text
            for path in ("/webhook", "/healthz", "/readyz", "/nothing")
        ]
    return "\n".join(said)


def _assert_clean(artefacts: dict[str, str], *, phones: bool = True) -> None:
    for where, text in artefacts.items():
        assert text, f"nothing was looked at: {where}"
        for what, secret in SECRETS.items():
            for written in (secret, secret.encode().hex()):  # a column of bytes reads as hex
                assert written not in text, f"the {what} is in {where}"
        if phones:
            found = PHONE.search(text)
            assert found is None, (
                f"a whole phone number is in {where}: {text[max(0, found.start() - 200) : found.end()]}"
            )


async def test_no_secret_and_no_whole_phone_number_is_in_anything_that_a_run_leaves(
    database_url: str,
) -> None:
    provider = scenario(
        {"do": "error", "code": 131000, "match": {"every": 5}, "details": "about +5511960000001"},
        {"do": "half_reply", "match": {"every": 7}},
        {"do": "error", "code": 131026, "match": {"every": 9}},
        tokens=[SECRETS["access token"]],
        app_secret=SECRETS["app secret"],
    )
    async with world(database_url, provider, {NUMBER: 40}) as w:
        token = w.directory / "token"
        token.write_text(SECRETS["access token"])
        token.chmod(0o600)
        await w.db.execute("UPDATE number SET token_ref = $1", f"file:{token}")
        await w.db.execute("UPDATE control SET version = version + 1")
        w.environment |= {
            "TIDEGATE_DATABASE_URL": _with_password(database_url),
            "TIDEGATE_APP_SECRET": SECRETS["app secret"],
            "TIDEGATE_GATEWAY_TOKEN": SECRETS["gateway token"],
            "TIDEGATE_VERIFY_TOKEN": SECRETS["verify token"],
            "TIDEGATE_FORWARD_URL": f"http://127.0.0.1:{free_port()}/{SECRETS['forward key']}",
        }
        await w.campaign(people=300)
        artefacts: dict[str, str] = {}
        async with _on_terminal(w, w.environment) as (screens, press):
            await w.until_requests(40)
            artefacts["the exported screen"] = visible(await _exported(w, screens, press))
            assert "reminder" in artefacts["the exported screen"]
            artefacts["the process list"] = _command_lines()
            artefacts["answers over HTTP"] = await _knock(w.port)
            await w.db.fetchval(TERMINATE)
            await w.until_requests(120)
        artefacts["the terminal"] = "\n".join(screens)
        assert "reminder" in artefacts["the terminal"], "the console painted no campaign"
        engine = await w.engine()
        await w.until_requests(200)
        artefacts["the metrics"] = await _metrics(w)
        engine.signal(signal.SIGTERM)
        await engine.ended()
        artefacts["standard output and error of the engine"] = engine.out + engine.err
        for command in COMMANDS:
            ended = await w.tidegate(*command)
            artefacts[f"tidegate {' '.join(command)}"] = ended.out + ended.err
        for path in sorted((w.directory / "data").rglob("*")):
            if path.is_file() and path.stat().st_size:
                artefacts[f"the file {path.name}"] = path.read_text(errors="replace")
        assert any(name.startswith("the file") and "log" in name for name in artefacts), sorted(artefacts)
        _assert_clean(artefacts)
        _assert_clean({"the database": await _dump(database_url)}, phones=False)


@pytest.mark.parametrize("path", sorted((ROOT / "screenshots").glob("*.svg")), ids=lambda path: path.stem)
def test_no_screenshot_shows_a_whole_phone_number_or_a_secret(path: Path) -> None:
    shown = visible(path.read_text())
    assert "tidegate" in shown.lower()
    assert not WHOLE.search(shown)
    assert not CREDENTIAL.search(shown)


def test_the_search_finds_what_it_looks_for() -> None:
    for phone in ("+5511988880001", "+447700900123", "5511988880001", "447700900123"):
        assert WHOLE.search(f"to {phone} ")
    assert not WHOLE.search("…0001 epoch 1796069041199 1,234,567 rows")
    for secret in (TOKEN, APP_SECRET, "EAAG8zZB", "Bearer x", "postgresql://ann:s3cr3t@db/tide"):
        assert CREDENTIAL.search(secret)


COMMANDS = (
    ("check",),
    ("number", "list", "--json"),
    ("campaign", "show", "reminder", "--json"),
    ("rows", "list", "--campaign", "reminder", "--json"),
    ("audit",),
)


async def _metrics(w: World) -> str:
    async with httpx.AsyncClient(trust_env=False, timeout=20) as http:
        reply = await http.get(f"http://{w.environment['TIDEGATE_METRICS_LISTEN']}/metrics")
        return reply.text


async def test_a_database_that_is_not_there_is_named_without_its_password(database_url: str) -> None:
    parts = urlsplit(_with_password(database_url))
    url = urlunsplit(parts._replace(query=f"host=127.0.0.1&port={free_port()}"))
    async with world(database_url, scenario(), {NUMBER: 40}) as w:
        w.environment["TIDEGATE_DATABASE_URL"] = url
        ended = await (await w.engine()).ended()
        assert ended.code == 2
        _assert_clean({"the error": ended.out + ended.err})
        with_everything = await w.tidegate("check")
        _assert_clean({"the check": with_everything.out + with_everything.err})
