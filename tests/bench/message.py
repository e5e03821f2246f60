"""The request that every contestant sends."""

import os

from engine.domain.message import Template, Token, template_message
from tests.bench.world import TOKEN_VARIABLE

TEMPLATE = Template("reminder_v2", "pt_BR", ("name",))


def headers() -> dict[str, str]:
    """Those that Meta asks for; the token from the environment, as the engine has it."""
    return {"authorization": f"Bearer {os.environ[TOKEN_VARIABLE]}"}


def message(to: str, name: str, token: Token) -> dict[str, object]:
    """As the engine writes it."""
    return template_message(to, TEMPLATE, {"name": name}, token)
