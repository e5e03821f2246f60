"""`campaign create --from FILE.toml`: a campaign in a file, for what flags cannot say, and to keep it with one's code.

Every flag of the command is a key (`max-attempts` or `max_attempts`), and stands in for the flag where that is not
given. Beyond flags there are `header`, `body` as a list and `buttons`, in the shape of engine/domain/content.py.
"""

import re
import tomllib
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import typer

from engine.domain.content import Content, ContentRefused, read_content

NOT_OF_A_CAMPAIGN = frozenset({"from", "json", "help"})
CONTENT = ("header", "body", "buttons")
_KEPT = "tidegate.content"


def read_campaign_file(ctx: typer.Context, path: Path | None) -> Path | None:
    """The callback of --from: its keys become the defaults of the other parameters, which a flag still overrules.

    Raises typer.BadParameter with the line where that is certain, and OSError.
    """
    if path is None or ctx.resilient_parsing:
        return path
    text = _text(path)
    written = _parsed(path, text)
    flags = {key: value for key, value in written.items() if key not in CONTENT or isinstance(value, str)}
    ctx.default_map = {**(ctx.default_map or {}), **_defaults(ctx, path, text, flags)}
    content = {key: value for key, value in written.items() if key in CONTENT and key not in flags}
    if content:
        try:
            ctx.meta[_KEPT] = read_content(content)
        except ContentRefused as refused:
            raise typer.BadParameter(f"{_where(path, text, refused.key)}: {refused}") from None
    return path


def content_of_file(ctx: typer.Context) -> Content | None:
    """The header, body and buttons that the file gave, if it did."""
    content: Content | None = ctx.meta.get(_KEPT)
    return content


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8-sig")
    except UnicodeDecodeError:
        raise typer.BadParameter(f"{path} is not UTF-8: save it as UTF-8") from None


def _parsed(path: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise typer.BadParameter(f"{path} is not TOML: {error}") from None


def _defaults(ctx: typer.Context, path: Path, text: str, flags: Mapping[str, Any]) -> dict[str, Any]:
    """The keys by the names of the parameters that they stand in for; values as they would be typed."""
    known = _parameters(ctx)
    found = {}
    for key, value in flags.items():
        parameter = known.get(key.replace("_", "-"))
        if parameter is None:
            names = ", ".join(sorted({*known, *CONTENT}))
            raise typer.BadParameter(f"{_where(path, text, key)}: there is no key {key!r}, only {names}")
        found[parameter.name] = _typed(_where(path, text, key), key, value, several=parameter.multiple)
    return found


def _parameters(ctx: typer.Context) -> dict[str, Any]:
    """The command's parameters by the word of their flag; its argument by its name."""
    found = {}
    for parameter in ctx.command.params:
        for word in parameter.opts:
            name = word.removeprefix("--").replace("_", "-")
            if name not in NOT_OF_A_CAMPAIGN and not name.startswith("-"):
                found[name] = parameter
    return found


def _typed(where: str, key: str, value: object, *, several: bool) -> object:
    if several and isinstance(value, Mapping):  # control-values as a table
        return [f"{one}={_typed(where, key, text, several=False)}" for one, text in value.items()]
    if several and isinstance(value, list):
        return [_typed(where, key, one, several=False) for one in value]
    if isinstance(value, bool):
        return value
    if isinstance(value, datetime):
        value = value.isoformat()
    if isinstance(value, Mapping | list):
        raise typer.BadParameter(f"{where}: {key!r} takes one value, as its flag does")
    return [str(value)] if several else str(value)


def _where(path: Path, text: str, key: str | None) -> str:
    """The file, and the line when the key stands in one alone."""
    if key is None:
        return str(path)
    stands = re.compile(rf"""(?:^|[\s{{,\[."'])["']?{re.escape(key)}["']?\s*(?:=|\]|\.)""")
    lines = [n for n, line in enumerate(text.splitlines(), start=1) if stands.search(line.partition("#")[0])]
    return f"{path}, line {lines[0]}" if len(lines) == 1 else str(path)
