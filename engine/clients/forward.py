"""Posting webhook bodies on, as they came, to whoever answers people."""

import httpx


class ForwardClient:
    """Posts to one address over one transport. The address is not shown: it may hold a key."""

    def __init__(self, transport: httpx.AsyncBaseTransport, url: str) -> None:
        self._transport = transport
        self._url = httpx.URL(url)

    async def post(self, body: bytes, signature: str) -> str | None:
        """None when it was taken (2xx), else why not in a few words. Cancellation passes."""
        request = httpx.Request(
            "POST",
            self._url,
            headers={"content-type": "application/json", "x-hub-signature-256": signature},
            content=body,
        )
        try:
            response = await self._transport.handle_async_request(request)
            await response.aread()
        except httpx.TransportError as error:
            return type(error).__name__
        return None if 200 <= response.status_code < 300 else f"HTTP {response.status_code}"
