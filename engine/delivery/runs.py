"""How runs go by their webhooks: a run whose people are refused after every request was answered 200 holds itself.

The same judge as on the requests' path (engine.domain.health), with the other evidence: delivered and read are good,
`failed` is not. Each applier judges what it applied itself; breakers look after what reaches beyond a run.
"""

from collections.abc import Sequence
from datetime import datetime

import structlog

from engine.domain.errors import meaning
from engine.domain.health import Health
from engine.domain.past import CodeCounts
from engine.postgres import holds
from engine.postgres.pool import Pool
from engine.postgres.statuses import Verdict

log = structlog.get_logger(__name__)


class Runs:
    """The health of each campaign on the webhooks' path, in the memory of one applier."""

    def __init__(self, pool: Pool, codes: CodeCounts) -> None:
        """`codes`: where refusals by webhook are counted, for screens."""
        self._pool = pool
        self._codes = codes
        self._health: dict[int, Health] = {}
        self._since: dict[int, datetime | None] = {}

    async def judge(self, verdicts: Sequence[Verdict], now: float) -> None:
        """Take in what became known, in its order, and hold the campaigns that go wrong. `now`: loop time.

        Raises what the database raises: the next failure of the run then says it again.
        """
        if not verdicts:
            return
        for one in verdicts:
            if one.code is not None:
                self._codes.add(now, one.code)
        standings = await holds.standings(self._pool, {one.lane_id for one in verdicts})
        reasons: dict[int, str] = {}
        for one in verdicts:
            standing = standings.get(one.lane_id)
            if standing is None or not self._counts(standing, one):
                continue
            reason = self._take(self._health.setdefault(standing.campaign_id, Health()), one, now)
            if reason is not None:
                reasons[standing.campaign_id] = reason
        for campaign_id, reason in reasons.items():
            name = await holds.hold(self._pool, campaign_id, reason, holds.FAILURES)
            self._health.pop(campaign_id, None)  # judged anew when a person resumes it
            if name is not None:
                log.error("campaign held", campaign=name, reason=reason)

    def _counts(self, standing: holds.Standing, one: Verdict) -> bool:
        """Only for a run that goes on, and only what left since a person last let it go on."""
        campaign_id = standing.campaign_id
        if standing.state != "running" or self._since.get(campaign_id) != standing.resumed_at:
            self._health.pop(campaign_id, None)
            self._since[campaign_id] = standing.resumed_at
        if standing.state != "running":
            return False
        return one.left is None or standing.resumed_at is None or one.left >= standing.resumed_at

    @staticmethod
    def _take(health: Health, one: Verdict, now: float) -> str | None:
        if one.code is None:
            health.good()
            return None
        return health.refused(now, one.code, meaning(one.code, details=one.raw))
