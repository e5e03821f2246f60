"""The demo's audience: five thousand people, and one flaw of every kind that lists are known for."""

from importlib import resources
from pathlib import Path

from engine.intake.importer import import_audience
from engine.postgres.pool import Pool

CAMPAIGN = """
INSERT INTO campaign (name, random_id, template, language, body)
VALUES ('demo', 'demo', 'reminder_v2', 'pt_BR', '{name,date}')
"""


async def test_the_demo_audience_brings_five_thousand_people_and_accounts_for_each_flaw(pool: Pool) -> None:
    await pool.execute(CAMPAIGN)
    path = Path(str(resources.files("engine.intake") / "demo_audience.csv"))
    report = await import_audience(pool, path, campaign="demo", author="demo", country="BR")
    assert (report.taken, report.refused, report.folded, report.blank) == (5_000, 17, 5, 4)
    assert report.lines == 1 + 5_000 + 17 + 5 + 4
    assert len({reject.reason for reject in report.rejects}) >= 12
    assert await pool.fetchval("SELECT count(*) FROM lane WHERE country = 'BR'") == 1
