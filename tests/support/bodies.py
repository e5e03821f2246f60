"""Webhook bodies as Meta writes them."""

import json
from typing import Any

from engine.domain.message import Token
from tests.support.truth import NUMBER


def status(word: str, token: Token | None, *, wamid: str | None = None, code: int = 131026) -> dict[str, Any]:
    """One status; the wamid follows from the token unless it is given."""
    item: dict[str, Any] = {"id": wamid or f"wamid.{token.row}.{token.n}" if token else wamid, "status": word}
    item |= {"timestamp": "1750030073", "recipient_id": "16505551234"}
    if token is not None:
        item["biz_opaque_callback_data"] = str(token)
    if word == "failed":
        item["errors"] = [{"code": code, "title": "Message undeliverable", "error_data": {"details": "No."}}]
    return item


def webhook(*statuses: dict[str, Any], number: str = NUMBER) -> bytes:
    """A body of statuses about one number."""
    metadata = {"display_phone_number": "15550783881", "phone_number_id": number}
    value = {"messaging_product": "whatsapp", "metadata": metadata, "statuses": list(statuses)}
    entry = {"id": "WABA", "changes": [{"field": "messages", "value": value}]}
    return json.dumps(
        {"object": "whatsapp_business_account", "entry": [entry]}, separators=(",", ":")
    ).encode()
