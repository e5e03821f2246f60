"""The acts of the overview, on the page of one number."""

from console.screens.confirm import ConfirmScreen
from console.screens.rate import RateScreen
from engine.domain.act import PauseNumber, SetRate
from tests.console.support import bad_night, normal, running


async def test_a_number_s_page_acts_on_its_number_as_the_overview_does() -> None:
    async with running(normal()) as run:
        await run.press("j", "enter")
        target = run.app.session.cursor
        assert target is not None
        assert "p pause r resume + - = rate" in run.text()
        run.app.session.move(1)  # the cursor may go where it will
        await run.press("minus")
        assert "80→76/s of the provider's limit" in run.text()
        assert "staged" in run.text()
        await run.press("enter", "p", "r")
        assert run.link.submitted == [SetRate(target, 76.0), PauseNumber(target)]
        assert "is active, not paused" in run.text()
        await run.press("equals_sign")
        assert isinstance(run.app.screen, RateScreen)


async def test_a_number_s_page_asks_where_the_overview_asks() -> None:
    async with running(bad_night()) as run:
        await run.press("enter", "r")
        assert isinstance(run.app.screen, ConfirmScreen)
        assert "131048" in run.text()
        await run.press("escape", *["plus"] * 5, "enter")
        assert isinstance(run.app.screen, ConfirmScreen)
        assert run.link.submitted == []


async def test_escape_on_a_number_s_page_drops_its_staged_rate_before_it_leaves() -> None:
    async with running(normal()) as run:
        await run.press("enter", "minus", "escape")
        assert not run.on_overview
        assert "80/s of the provider's limit" in run.text()
        await run.press("enter")
        assert run.link.submitted == []
        await run.press("escape", "escape")
        assert run.on_overview
