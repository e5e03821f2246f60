"""What people want: numbers, rates, pauses, campaigns. Read as a whole when the control row's version moves."""

from dataclasses import dataclass
from datetime import datetime

from engine.domain.content import Content
from engine.domain.quiet import Quiet
from engine.postgres import breakers
from engine.postgres.breakers import Breaker
from engine.postgres.contents import stored_content
from engine.postgres.pool import Executor

VERSION = "SELECT version FROM control"

NUMBERS = """
SELECT number_id, id, display, account, token_ref, provider_limit, rate, ceiling, paused_at IS NOT NULL AS paused,
       pause_reason, paused_by, waiting_until, waiting_reason, coalesce(i.n, 0) AS inbound
  FROM number LEFT JOIN inbound_count i ON i.number = id ORDER BY number_id
"""

CAMPAIGNS = """
SELECT c.campaign_id, c.name, c.random_id, CASE  -- a round of control phones goes only while its campaign goes
         WHEN c.state = 'running' AND o.state <> 'running' AND o.held_by IS DISTINCT FROM 'stops' THEN 'paused'
         ELSE c.state END AS state, c.reason, c.template, c.language, c.body, c.priority, c.deadline,
       c.max_attempts, c.try_budget, c.planned, c.started_at, c.finished_at, c.category, c.held_by, c.unknown_policy,
       c.content, c.start_at, c.quiet_from, c.quiet_to, c.control_of,
       CASE c.zone WHEN 'recipient' THEN ARRAY(SELECT DISTINCT zone FROM lane l WHERE l.campaign_id = c.campaign_id)
                   ELSE ARRAY[c.zone] END AS zones,
       ARRAY(SELECT number_id FROM campaign_number n WHERE n.campaign_id = c.campaign_id ORDER BY 1) AS numbers,
       ARRAY(SELECT lane_id FROM lane l WHERE l.campaign_id = c.campaign_id AND l.hold IS NULL AND l.closes_at > now()
                AND c.control IS DISTINCT FROM 'first'
              ORDER BY l.deadline, l.lane_id) AS lanes,
       ARRAY(SELECT country FROM lane l WHERE l.campaign_id = c.campaign_id AND l.hold IS NULL AND l.closes_at > now()
                AND c.control IS DISTINCT FROM 'first'
              ORDER BY l.deadline, l.lane_id) AS countries
  FROM campaign c LEFT JOIN campaign o ON o.campaign_id = c.control_of
 WHERE c.state NOT IN ('finished', 'cancelled') OR c.finished_at > now() - interval '1 day' AND c.control_of IS NULL
    OR EXISTS (
       SELECT FROM lane l JOIN book b USING (lane_id)
        WHERE l.campaign_id = c.campaign_id AND b.n <> 0 AND b.state IN ('p', 'c', 's', 'u', 'a'))
 ORDER BY c.campaign_id
"""


@dataclass(frozen=True, slots=True)
class Number:
    """A number as people want it. Rates in messages per second."""

    number_id: int
    id: str
    display: str
    account: str
    token_ref: str
    limit: float
    rate: float
    ceiling: float | None
    paused: bool
    pause_reason: str | None
    paused_by: str | None
    waiting_until: datetime | None
    waiting_reason: str | None
    inbound: int = 0
    """Messages that people wrote to it, counted since ever, by whoever applied them."""


@dataclass(frozen=True, slots=True)
class Campaign:
    """A campaign as it stands, with the lanes that nothing holds."""

    campaign_id: int
    name: str
    random_id: str
    state: str
    reason: str | None
    template: str
    language: str
    body: tuple[str, ...]
    priority: int
    deadline: datetime | None
    max_attempts: int
    try_budget: int | None
    planned: int
    started_at: datetime | None
    finished_at: datetime | None
    category: str
    held_by: str | None
    """What held it, when the engine did: breaker:<id>, numbers, failures, budget."""
    numbers: tuple[int, ...]
    lanes: tuple[int, ...]
    countries: tuple[str, ...]
    """Of the lanes, in their order."""
    content: Content | None = None
    """What fills the template; None when `body` says it all."""
    start_at: datetime | None = None
    unknown_policy: str = "hold"
    control_of: int | None = None
    """The campaign of which this is a round of control phones."""
    quiet: Quiet | None = None
    zones: tuple[str, ...] = ()
    """Whose clocks tell the quiet hours; each entry may be several zones, with blanks between."""


@dataclass(frozen=True, slots=True)
class Desired:
    """Everything that an engine follows, as of one version."""

    version: int
    numbers: dict[int, Number]
    campaigns: dict[int, Campaign]
    breakers: tuple[Breaker, ...] = ()
    """All that stops something right now."""


async def version(db: Executor) -> int:
    """Grows with every act; 0.1 ms to read."""
    return int(await db.fetchval(VERSION))


async def read(db: Executor) -> Desired:
    """All of it. The version is read first: an act in between is seen again at the next look."""
    at = await version(db)
    numbers = {row["number_id"]: Number(*row.values()) for row in await db.fetch(NUMBERS)}
    campaigns = {}
    for row in await db.fetch(CAMPAIGNS):
        values = dict(row.items())
        begins, ends = values.pop("quiet_from"), values.pop("quiet_to")
        values["quiet"] = Quiet(begins, ends) if begins is not None else None
        for key in ("body", "numbers", "lanes", "countries", "zones"):
            values[key] = tuple(values[key])
        values["content"] = stored_content(values["content"])
        campaigns[row["campaign_id"]] = Campaign(**values)
    return Desired(at, numbers, campaigns, tuple(await breakers.open_breakers(db)))
