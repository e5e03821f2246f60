"""From a screen's SVG to a picture, for the README and for people who judge a screen by looking at it."""

import re


def svg_to_png(svg: str) -> bytes:
    """A PNG of an exported screen. Needs resvg-py (extra `test`) (else ImportError is raised) and the DejaVu fonts.

    Textual names a web font, which a picture cannot fetch; the replacement has every glyph that the console draws.
    """
    import resvg_py

    local = re.sub(r"@font-face\s*\{.*?\}", "", svg, flags=re.DOTALL).replace("Fira Code", "DejaVu Sans Mono")
    return bytes(resvg_py.svg_to_bytes(svg_string=local.replace("arial", "DejaVu Sans")))
