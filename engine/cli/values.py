"""How options are written: moments, shares, lengths of time. What does not fit is a usage error of one sentence."""

import math
from datetime import datetime

import typer

from engine.domain.canary import Canary, CanaryRefused, parse_canary
from engine.domain.duration import parse_duration
from engine.domain.quiet import Quiet, QuietRefused, parse_quiet, parse_zone


def moment(text: str) -> datetime:
    """`2026-07-01T18:00:00-03:00`; without an offset it would mean another moment on another machine."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is no time: write ISO 8601, such as 2026-07-01T18:00:00-03:00"
        ) from None
    if at.tzinfo is None:
        raise typer.BadParameter(
            f"{text!r} has no time zone: write it in full, such as 2026-07-01T18:00:00-03:00"
        )
    return at


def share(text: str) -> float:
    """`10%` or `0.1` → 0.1."""
    try:
        value = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1:
        raise typer.BadParameter(f"{text!r} is no share: write a percentage from 0% to 100%")
    return value


def seconds(text: str) -> float:
    """`30m` → 1800.0."""
    try:
        return parse_duration(text)
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} does not fit: {error}") from None


def columns(text: str | None) -> tuple[str, ...]:
    """`name,date` → ("name", "date")."""
    return tuple(part.strip() for part in text.split(",")) if text else ()


def quiet_hours(text: str) -> Quiet:
    """`21:00-08:00`."""
    try:
        return parse_quiet(text)
    except QuietRefused as error:
        raise typer.BadParameter(str(error)) from None


def zone(text: str) -> str:
    """A time zone's name, or `recipient`."""
    try:
        return parse_zone(text)
    except QuietRefused as error:
        raise typer.BadParameter(str(error)) from None


def pair(text: str) -> tuple[str, str]:
    """`name=Ana` → ("name", "Ana")."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise typer.BadParameter(f"{text!r} is no column=value, such as name=Ana")
    return key.strip(), value.strip()


def canary(text: str) -> Canary:
    """`500` or `2%`."""
    try:
        return parse_canary(text)
    except CanaryRefused as error:
        raise typer.BadParameter(str(error)) from None
