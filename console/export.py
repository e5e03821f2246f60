"""From a screen's SVG to a picture, for the README and for people who judge a screen by looking at it."""

import re


def svg_to_png(svg: str) -> bytes:
    """A PNG of an exported screen. Needs cairosvg (extra `test`); raises ImportError without it.

    Textual names a web font that cairo cannot fetch and would replace by a proportional one.
    """
    import cairosvg

    local = re.sub(r"@font-face\s*\{.*?\}", "", svg, flags=re.DOTALL).replace("Fira Code", "DejaVu Sans Mono")
    png: bytes = cairosvg.svg2png(bytestring=local.encode())
    return png
