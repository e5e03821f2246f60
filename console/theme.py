"""Colours: safe for colour-blind eyes, never the only carrier of a meaning; glyph, word and place come first.

Orange warns (bold), vermilion alarms (reverse), blue is paused. No red against green anywhere.
"""

from rich.style import Style
from textual.theme import Theme

ORANGE, VERMILION, BLUE = "#E69F00", "#D55E00", "#56B4E9"
GROUND, RAISED, TEXT, FAINT = "#0C0F12", "#1B2127", "#D5DADF", "#8A949E"

THEME = Theme(
    name="tidegate",
    primary=BLUE,
    secondary=BLUE,
    warning=ORANGE,
    error=VERMILION,
    success=BLUE,
    accent=BLUE,
    foreground=TEXT,
    background=GROUND,
    surface=GROUND,
    panel=RAISED,
    boost=RAISED,
    dark=True,
)

STYLES: dict[str, Style] = {
    "text": Style(color=TEXT),
    "strong": Style(color="#FFFFFF", bold=True),
    "faint": Style(color=FAINT),
    "title": Style(color=FAINT, bold=True),
    "title-focus": Style(color=BLUE, bold=True, underline=True),
    "key": Style(color=BLUE, bold=True),
    "normal": Style(color=TEXT),
    "running": Style(color="#FFFFFF", bold=True),
    "paused": Style(color=BLUE, bold=True),
    "warning": Style(color=ORANGE, bold=True),
    "critical": Style(color=VERMILION, bold=True, reverse=True),
    "critical-text": Style(color=VERMILION, bold=True),
    "staged": Style(color=ORANGE, bold=True, reverse=True),
    "bar": Style(color="#4A90B8"),
    "chart": Style(color=BLUE),
}
"""Role -> style. A line names roles, so a theme is one table."""
