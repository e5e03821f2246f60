"""A client of the Cloud API that converses: messages at the moments of chance, one way and the other in turn.

Arguments: how many seconds, messages/s each way, then the URLs of the ways. Prints, as JSON, the seconds that the
answers of each way took. A process of its own, so that it is not held up by what the bench does besides.
"""

import asyncio
import json
import random
import sys
import time

import httpx

from tests.bench.message import headers

SEED = 7
"""Of the moments, so that every run has the same ones."""


async def say(client: httpx.AsyncClient, url: str, nth: int, took: list[float]) -> None:
    """One message, and how long its answer took."""
    text = {
        "messaging_product": "whatsapp",
        "to": f"+551197{nth:07}",
        "type": "text",
        "text": {"body": "olá"},
    }
    started = time.monotonic()
    answer = await client.post(url, json=text)
    took.append(time.monotonic() - started)
    answer.raise_for_status()


async def main(seconds: float, rate: float, urls: list[str]) -> list[list[float]]:
    """Nobody waits for an answer before the next message: people do not know of each other."""
    chance = random.Random(SEED)
    took: list[list[float]] = [[] for _ in urls]
    end = time.monotonic() + seconds
    nth = 0
    client = httpx.AsyncClient(headers=headers(), trust_env=False, timeout=30.0)
    async with client, asyncio.TaskGroup() as tasks:
        while time.monotonic() < end:
            await asyncio.sleep(chance.expovariate(rate * len(urls)))
            way = nth % len(urls)
            tasks.create_task(say(client, urls[way], nth, took[way]))
            nth += 1
    return took


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(float(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]))))
