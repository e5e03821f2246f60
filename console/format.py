"""Pure text for a screen: glyph sets, numbers, durations, sparklines, and outside text made harmless.

Widths are terminal cells, never code points: a wide character takes two, a combining one none.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size

MASK = "·"
"""Stands for a character that could move the cursor, reorder the line or hide itself."""

_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_VARIATION = {chr(c) for c in range(0xFE00, 0xFE10)}  # they change the width that a terminal draws
_PHONE = re.compile(r"\+?\d{10,}")
_MAX_MARKS = 2  # combining marks in a row; more would climb into the lines above


@dataclass(frozen=True, slots=True)
class Glyphs:
    """One set of signs; the second set is for a terminal or locale without UTF-8."""

    ascii: bool
    normal: str
    warning: str
    critical: str
    paused: str
    running: str
    slowed: str
    waiting: str
    stopped: str
    cut: str
    arrow: str
    bar_full: str
    bar_empty: str
    bar_left: str
    bar_right: str
    spark: str
    sep: str
    rule: str
    tick: str
    cross: str
    enter: str
    dot: str
    up: str
    down: str
    greater: str


UTF8 = Glyphs(
    ascii=False, normal="●", warning="▲", critical="✖", paused="‖", running="▶", slowed="▼", waiting="◌",
    stopped="■", cut="…", arrow="→", bar_full="█", bar_empty="░", bar_left="▕", bar_right="▏",
    spark="▁▂▃▄▅▆▇█", sep="│", rule="─", tick="✓", cross="✗", enter="⏎", dot="·", up="↑", down="↓",
    greater=">",
)  # fmt: skip
ASCII = Glyphs(
    ascii=True, normal="ok", warning="!", critical="!!", paused="||", running=">", slowed="v", waiting="~",
    stopped="x", cut="~", arrow="->", bar_full="#", bar_empty=".", bar_left="[", bar_right="]",
    spark="_.-:=+*#", sep="|", rule="-", tick="ok", cross="no", enter="Enter", dot="-", up="^", down="v",
    greater=">",
)  # fmt: skip


def glyphs_for(environ: Mapping[str, str]) -> Glyphs:
    """The set that the locale of `environ` can show: UTF-8 unless the locale says otherwise.

    Python turns LC_CTYPE into C.UTF-8 by itself when the locale is C (PEP 538), so that exact value
    beside a LANG that is set and not UTF-8 does not count. No locale at all is no statement: UTF-8.
    """
    lang = environ.get("LANG", "")
    kind = environ.get("LC_CTYPE", "")
    if kind == "C.UTF-8" and lang and not _is_utf8(lang):
        kind = ""
    locale = environ.get("LC_ALL", "") or kind or lang
    return UTF8 if not locale or _is_utf8(locale) else ASCII


def _is_utf8(locale: str) -> bool:
    return locale.lower().replace("-", "").endswith(("utf8", "utf8@euro"))


def clean(text: str, glyphs: Glyphs = UTF8) -> str:
    """Outside text for one line: no control, bidi, zero-width or lone surrogate gets through."""
    if text.isascii() and text.isprintable():
        return text
    kept: list[str] = []
    marks = 0
    for char in text:
        if char in _VARIATION:
            continue
        kind = unicodedata.category(char)
        marks = marks + 1 if kind in ("Mn", "Me") else 0
        if marks > _MAX_MARKS:
            continue
        kept.append(_shown(MASK if kind in _HIDDEN else char, glyphs))
    return "".join(kept)


def _shown(char: str, glyphs: Glyphs) -> str:
    return char if char.isascii() or not glyphs.ascii else "?" * max(1, cell_len(char))


def masked(text: str, labels: Mapping[str, str], glyphs: Glyphs = UTF8) -> str:
    """`clean`, and no full phone number: a known number by its label, any other by its last four digits."""
    cut = ".." if glyphs.ascii else "…"
    return _PHONE.sub(lambda found: labels.get(found[0]) or cut + found[0][-4:], clean(text, glyphs))


def fit(text: str, width: int, align: str = "<", cut: str = "…") -> str:
    """Exactly `width` cells: cut with a sign, or padded ('<' to the right, '>' to the left)."""
    if width <= 0:
        return ""
    length = cell_len(text)
    if length > width:
        return set_cell_size(text, width - len(cut)) + cut if width > len(cut) else set_cell_size(text, width)
    space = " " * (width - length)
    return text + space if align == "<" else space + text


def number(value: int | None) -> str:
    """1,204,118; unknown is a dash, never 0."""
    return "-" if value is None else f"{value:,}"


def short_number(value: int) -> str:
    """At most seven cells: 611,240, 2.795M, 12.345M; cut, not rounded, from a million on."""
    if value < 1_000_000:
        return number(value)
    digits = 3 if value < 100_000_000 else 1
    return f"{value // 10 ** (6 - digits) / 10**digits:.{digits}f}M"


def rate(value: float | None) -> str:
    """messages/s: 0.2, 41.2, 318; whole values without a fraction."""
    if value is None:
        return "-"
    if value >= 100 or float(value).is_integer():
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 1 or round(value, 1) == value else f"{value:.2g}"


def percent(share: float | None, digits: int = 0) -> str:
    """0.3 -> 30%; rounded down, so that 100% means all of it."""
    if share is None:
        return "-"
    scale: int = 10**digits
    return f"{int(share * 100 * scale + 1e-9) / scale:.{digits}f}%"


def duration(seconds: float | None) -> str:
    """212ms, 1.9s, 45s, 11m02s, 2h26m, 3d04h."""
    if seconds is None:
        return "-"
    seconds = max(0.0, seconds)
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f}ms"
    if seconds < 9.95:
        return f"{seconds:.1f}s"
    whole = int(seconds)
    for size, unit, part, small in ((86400, "d", 3600, "h"), (3600, "h", 60, "m"), (60, "m", 1, "s")):
        if whole >= size:
            return f"{whole // size}{unit}{whole % size // part:02d}{small}"
    return f"{whole}s"


def eta(seconds: float | None) -> str:
    """As a duration, but no finer than seconds: an estimate is not known to the millisecond."""
    return "<1s" if seconds is not None and seconds < 1 else duration(seconds and round(seconds))


def age(seconds: float | None) -> str:
    """At most three cells: 9s, 12m, 3h, 4d."""
    if seconds is None:
        return "-"
    whole = max(0, int(seconds))
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if whole >= size:
            return f"{min(whole // size, 99)}{unit}"
    return f"{whole}s"


def sampled(values: Sequence[float], window: int, width: int, second: int = 0) -> list[float]:
    """The last `window` values as at most `width` means of equally many, oldest first.

    Means begin at whole multiples of their length on the clock (`second` is that of the newest value), and
    the last one is complete: so a strip stands still until a mean is full, instead of trembling every second.
    """
    if width <= 0 or window <= 0:
        return []
    size = -(-min(window, max(len(values), width)) // width)  # a short past is drawn as finely as it can be
    end = len(values) - (second + 1) % size if size > 1 else len(values)
    start = max(0, len(values) - window)
    return [sum(values[at - size : at]) / size for at in range(end, start + size - 1, -size)][::-1]


def spark(values: Iterable[float], signs: str, top: float | None = None) -> str:
    """One sign a value; the scale starts at 0 and ends at `top`, or at the largest value."""
    points = list(values)
    highest = max([top or 0.0, *points], default=0.0)
    if highest <= 0:
        return signs[0] * len(points)
    last = len(signs) - 1
    return "".join(signs[min(last, max(0, round(v / highest * last)))] for v in points)


def bar(share: float, width: int, glyphs: Glyphs) -> str:
    """A filled bar of `width` cells, ends included."""
    inner = max(0, width - 2)
    full = min(inner, int(max(0.0, share) * inner))
    return f"{glyphs.bar_left}{glyphs.bar_full * full}{glyphs.bar_empty * (inner - full)}{glyphs.bar_right}"


def short_labels(displays: Mapping[str, str], glyphs: Glyphs = UTF8) -> dict[str, str]:
    """Number id -> its last four digits (…0042), or more of them where two numbers share these four."""
    cut = "…" if not glyphs.ascii else ".."
    digits = {key: "".join(c for c in text if c.isdecimal()) or key for key, text in displays.items()}
    labels: dict[str, str] = {}
    for size in (4, 6, 8, 32):
        seen: dict[str, list[str]] = {}
        for key in digits.keys() - labels.keys():
            seen.setdefault(digits[key][-size:], []).append(key)
        for tail, keys in seen.items():
            if len(keys) == 1:
                labels[keys[0]] = clean(cut + tail, glyphs)
    for key in digits.keys() - labels.keys():  # the same number under two ids: only the id tells them apart
        labels[key] = clean(cut + key[-8:], glyphs)
    return labels


_BOX = str.maketrans(
    dict.fromkeys("─┈╌━═", "-") | dict.fromkeys("│┃║┤├", "|") | dict.fromkeys("┌┐└┘┬┴┼╭╮╰╯", "+") | {"▘": "'"}
)


def ascii_box(text: str) -> str:
    """Box drawing as + - |; anything else that is not ASCII becomes a star."""
    return "".join(c if c.isascii() else "*" for c in text.translate(_BOX))
