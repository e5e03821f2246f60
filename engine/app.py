"""The composition root: opens what an engine needs, in order, and closes it in reverse."""

import asyncio
import os
import random
import signal
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

import structlog

from engine.author import author
from engine.clients.forward import ForwardClient
from engine.clients.transport import open_transport
from engine.clients.whatsapp import WhatsApp
from engine.commands import Commands
from engine.config import Address, Config, ConfigError, RunOptions, refuse_open_doors
from engine.database import open_database
from engine.delivery.applier import Applier
from engine.delivery.forwarder import AT_ONCE, POST_SECONDS, Forwarder
from engine.delivery.group import GroupStore
from engine.delivery.receiver import Receiver
from engine.domain.heard import SILENT_S, Heard
from engine.domain.inbound import StopWords
from engine.domain.pacing import in_flight_bound
from engine.gateway import Gateway
from engine.node import Engine
from engine.observe.log import logging_to
from engine.observe.prometheus import metrics_app
from engine.observe.watchdog import loop_watched
from engine.pause_file import PauseFiles
from engine.postgres import desired, webhooks
from engine.postgres.pool import Pool
from engine.publisher import publishing
from engine.report import Outcome, final_report, summaries, until_finished
from engine.server import AddressInUseError, App, Application, bind, serve

CONNECTIONS = (100, 4000)
"""Fewest and most connections to the provider; between them, what the numbers need at 2 s latency."""

DATABASE_CONNECTIONS = 12
"""Marker, writer, applier, follower, leases, figures, jobs, acts, and a claim or two."""

ABANDONED_AFTER = 2.0
"""Seconds that a transaction of ours may stand still. One whose node was cut off or stopped in the middle holds rows
that its successor, or the node itself over a new connection, needs."""

log = structlog.get_logger()


@asynccontextmanager
async def open_engine(config: Config, options: RunOptions, origin: str) -> AsyncIterator[Engine]:
    """An engine with everything under it open; run it with `engine.run()`.

    Raises what a person can mend: ConfigError, DatabaseUnreachable, EmbeddedError, MigrationError, ListenError.
    """
    if not config.app_secret and not options.no_webhook:
        raise ConfigError(
            "Webhooks cannot be verified: set TIDEGATE_APP_SECRET to the app's secret, or run with --no-webhook."
        )
    refuse_open_doors(config, webhook=not options.no_webhook)
    async with AsyncExitStack() as up:
        db = await up.enter_async_context(
            open_database(config, size=DATABASE_CONNECTIONS, abandoned_after=ABANDONED_AFTER)
        )
        transport = open_transport(
            "pyreqwest", connections=await _connections(db), deadline=config.request_deadline
        )
        up.push_async_callback(transport.aclose)
        commands = Commands(
            db,
            author=author(),
            origin=origin,
            pauses=PauseFiles(config.data_dir),
            unknown_floor=config.unknown_floor,
            request_deadline=config.request_deadline,
        )
        whatsapp = WhatsApp(transport, config.api_url)
        engine = Engine(config, options, db, whatsapp, commands, author())
        arrived = await _open_inbox(up, config, engine)
        await _open_http(up, config, options, engine, whatsapp, arrived)
        if config.metrics_listen is not None:
            await _open_metrics(up, config.metrics_listen, engine)
        yield engine


async def _connections(db: Pool) -> int:
    fewest, most = CONNECTIONS
    numbers = (await desired.read(db)).numbers.values()
    return min(most, max(fewest, sum(in_flight_bound(n.limit, 2.0) for n in numbers)))


async def _open_http(
    up: AsyncExitStack,
    config: Config,
    options: RunOptions,
    engine: Engine,
    whatsapp: WhatsApp,
    arrived: asyncio.Event,
) -> None:
    """Webhook, gateway and health on one address. Without webhooks it is only opened where somebody asked for it."""
    if options.no_webhook and config.origins["listen"] == "default":
        return
    routes: dict[str, Application] = {}
    if not options.no_webhook:
        receiver, store = await open_receiver(up, config, engine.db, arrived)
        engine.webhook_answers = receiver.answers
        engine.watch(store)
        routes["/webhook"] = receiver
    gateway = Gateway(
        config.gateway_token,
        whatsapp,
        lambda: engine.follower.desired.numbers,
        lambda: {pipeline.number.id: pipeline for pipeline in engine.ownership.current()},
        lambda: engine.ownership.rows,
        engine.ownership.look_again,
        engine.access_token,
    )
    try:
        listening = up.enter_context(bind(config.listen.host, config.listen.port))
    except AddressInUseError as error:
        raise in_use(error, config.listen, await engine.commands.heard_nodes()) from None
    engine.watch(await up.enter_async_context(serve(App(engine.ready, routes, gateway), [listening])))


def in_use(error: AddressInUseError, where: Address, nodes: Sequence[Heard]) -> AddressInUseError:
    """When engines of this database are alive, one of them listens there, most likely: then one wants its screen."""
    alive = [one.node for one in nodes if one.silent_s < SILENT_S]
    if not alive:
        return error
    return AddressInUseError(
        f"{where} is in use, and an engine runs on this database already ({', '.join(alive)}): `tidegate attach` "
        "shows it. A second engine on this machine needs a free address of its own: set TIDEGATE_LISTEN."
    )


async def _open_inbox(up: AsyncExitStack, config: Config, engine: Engine) -> asyncio.Event:
    """What applies stored bodies and posts them on, whoever stored them: other nodes and receivers do, too.

    Entered before what stores: no new body, the last group stored, the last batch applied. Returns the nudge.
    """
    arrived = asyncio.Event()
    applier = Applier(
        engine.db, arrived, stop_words=StopWords(config.stop_words), codes=engine.figures.webhook_codes
    )
    await up.enter_async_context(applier)
    engine.webhooks = applier.counts
    forwarder = await open_forwarder(up, config, engine.db)
    for task in (applier.task, forwarder.task if forwarder else None):
        if task is not None:
            engine.watch(task)
    return arrived


async def open_receiver(
    up: AsyncExitStack, config: Config, db: Pool, arrived: asyncio.Event | None = None
) -> tuple[Receiver, "asyncio.Task[None]"]:
    """What takes webhooks, and the standing task that stores them; `arrived` is set after each group."""
    keep = partial(webhooks.store, db, forward=config.forward_url is not None)
    store = await up.enter_async_context(GroupStore(keep, arrived))
    secrets = [secret.get_secret_value().encode() for secret in config.app_secret]
    verify = config.verify_token.get_secret_value() if config.verify_token else ""
    assert store.task is not None  # it was entered
    return Receiver(store, secrets, verify), store.task


async def open_forwarder(up: AsyncExitStack, config: Config, db: Pool) -> Forwarder | None:
    """What posts bodies on, over connections of its own; None when nobody wants them."""
    if config.forward_url is None:
        return None
    transport = open_transport("pyreqwest", connections=AT_ONCE, deadline=POST_SECONDS)
    up.push_async_callback(transport.aclose)
    client = ForwardClient(transport, config.forward_url)
    return await up.enter_async_context(Forwarder(db, client, random.Random()))


async def _open_metrics(up: AsyncExitStack, where: Address, engine: Engine) -> None:
    listening = up.enter_context(bind(where.host, where.port, "TIDEGATE_METRICS_LISTEN"))
    app = App(engine.ready, {"/metrics": metrics_app(engine)})
    engine.watch(await up.enter_async_context(serve(app, [listening])))
    host, port, *_ = listening.getsockname()
    log.info("metrics are served", url=f"http://{Address(host, port)}/metrics")


async def run_engine(
    config: Config, options: RunOptions, origin: str, started: Callable[[Engine], None]
) -> Outcome:
    """One node from start to end. `started` is called in the loop once the engine stands."""
    async with open_engine(config, options, origin) as engine:
        outcome = Outcome()
        engine.stand(summaries(engine))
        engine.stand(publishing(engine))
        if options.until_finished:
            engine.stand(until_finished(engine, options, outcome))
        started(engine)
        async with loop_watched():
            await engine.run()
        if engine.fault is not None:
            outcome.code = 1
        outcome.report = await final_report(engine, outcome)
    return outcome


def run_headless(config: Config, options: RunOptions) -> int:
    """`run --no-ui`: log lines on stderr, the final report on stdout. Returns the exit code."""
    with logging_to(sys.stderr, plain=sys.stderr.isatty() and not options.json_log):
        return asyncio.run(_headless(config, options))


async def _headless(config: Config, options: RunOptions) -> int:
    loop = asyncio.get_running_loop()
    signalled: list[int] = []
    early: list[int] = []
    engines: list[Engine] = []

    def asked(number: int) -> None:
        for engine in engines:
            engine.drain(signal.Signals(number).name)
        if not engines:
            early.append(number)

    def on_signal(number: int, _: object) -> None:
        if signalled:  # told apart here, not in the loop: that may be what does not move any more
            exit_at_once(number)
        signalled.append(number)
        loop.call_soon_threadsafe(asked, number)

    def started(engine: Engine) -> None:
        engines.append(engine)
        for number in early:
            engine.drain(signal.Signals(number).name)

    def on_hangup(number: int, _: object) -> None:
        loop.call_soon_threadsafe(lambda: log.info("the terminal is gone, the engine goes on", signal=number))

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGTERM, signal.SIGINT)}
    before[signal.SIGHUP] = signal.signal(signal.SIGHUP, on_hangup)
    try:
        outcome = await run_engine(config, options, "cli", started)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    print(outcome.report)
    return 128 + signalled[0] if signalled and outcome.code == 0 else outcome.code


def exit_at_once(number: int) -> None:
    """The second signal: no drain, no clean-up. The next owner finds everything in the rows."""
    os._exit(128 + number)
