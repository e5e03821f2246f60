"""A campaign's content on its way to its jsonb column and back."""

from functools import lru_cache

import msgspec

from engine.domain.content import Content, parse_content, write_content


@lru_cache(maxsize=256)  # engines read all campaigns at every act, and a content never changes
def stored_content(text: str | None) -> Content | None:
    """What stands in `campaign.content`; None for a campaign that has only columns for its body."""
    return None if text is None else parse_content(msgspec.json.decode(text))


def content_text(content: Content | None) -> str | None:
    """The other way."""
    return None if content is None else msgspec.json.encode(write_content(content)).decode()
