"""Taking an alert on, from a screen that is not in the node's own process."""

from engine.commands.act import Acts, Done


class AlertCommands(Acts):
    """The nodes look for these acts in the journal."""

    async def acknowledge(self, key: str | None) -> Done:
        """One alert by its key, or all with None, on every node."""
        async with self._act("acknowledge", key or "all"):
            return Done(f"{key or 'All alerts'} acknowledged.")
