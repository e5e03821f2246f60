"""The webhook's door as a process of its own: receiver, inbox, applier, put together as the engine puts them.

Arguments: database URL, port. Prints `ready` when it listens, and ends on SIGTERM.
"""

import asyncio
import signal
import sys
from contextlib import AsyncExitStack
from functools import partial

from engine.delivery.applier import Applier
from engine.delivery.group import GroupStore
from engine.delivery.receiver import Receiver
from engine.postgres import webhooks
from engine.postgres.pool import open_pool
from engine.server import App, bind, serve
from tests.support.simulator import APP_SECRET


async def main(database: str, port: int) -> None:
    end = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, end.set)
    async with AsyncExitStack() as up:
        pool = await up.enter_async_context(open_pool(database, size=4))
        arrived = asyncio.Event()
        await up.enter_async_context(Applier(pool, arrived))
        store = await up.enter_async_context(GroupStore(partial(webhooks.store, pool), arrived))
        app = App(_ready, {"/webhook": Receiver(store, [APP_SECRET.encode()], "")})
        listening = up.enter_context(bind("127.0.0.1", port))
        await up.enter_async_context(serve(app, [listening]))
        print("ready", flush=True)
        await end.wait()


async def _ready() -> None:
    return None


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
