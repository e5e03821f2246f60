"""Help shows what the provider's errors mean, from the one table that decides."""

from console.screens.help import HelpScreen
from console.widgets.numbers import COLUMNS
from engine.domain.errors import MEANINGS, WAITS
from tests.console.support import normal, running


async def test_help_shows_every_code_with_what_happened_and_what_to_do() -> None:
    async with running(normal(), (200, 360)) as run:
        await run.press("question_mark")
        assert isinstance(run.app.screen, HelpScreen)
        shown = run.text()
        for scope, wait in WAITS.items():
            assert f"Errors: {scope.value}" in shown
            assert wait in shown
        lines = [line.split() for line in shown.splitlines()]
        for code, known in MEANINGS.items():
            if code >= 0:  # the rest are our own, and reach no screen as an answer
                assert any(str(code) in line for line in lines), code
                assert known.title in shown, code


async def test_help_explains_every_column_and_word() -> None:
    async with running(normal(), (200, 360)) as run:
        await run.press("question_mark")
        shown = run.text()
        for column in COLUMNS:
            assert column.head.strip() in shown
            assert column.meaning in shown
        for word in (
            "STUCK",
            "unknown",
            "token wait",
            "webhook lag",
            "bucket",
            "slowed",
            "LIVE STALE FROZEN",
        ):
            assert word in shown
