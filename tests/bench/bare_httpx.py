"""Baseline: httpx as its documentation shows it: one client with its default pool of 100 connections.

No database, no pace, no record of anything: the floor of what a loop around httpx costs.
Arguments: the messages URL, how many tasks send at once.
"""

import asyncio
import itertools
import sys
from collections.abc import Iterator

import httpx

from engine.domain.message import Token
from tests.bench.message import headers, message


async def send_for_ever(client: httpx.AsyncClient, url: str, numbers: Iterator[int]) -> None:
    while True:
        n = next(numbers)
        try:
            answer = await client.post(url, json=message(f"+5511{n:09}", "Ana", Token("bare", n, 1)))
        except httpx.PoolTimeout:  # with more tasks than connections some wait for longer than its 5 s
            continue
        answer.raise_for_status()
        answer.json()["messages"][0]["id"]


async def main(url: str, at_once: int) -> None:
    numbers = itertools.count(1)
    async with httpx.AsyncClient(headers=headers()) as client, asyncio.TaskGroup() as tasks:
        for _ in range(at_once):
            tasks.create_task(send_for_ever(client, url, numbers))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
