"""Settling what is not known, on a person's word or on the engine's own."""

from engine.commands.act import Acts


class ReconcileCommands(Acts):
    """reconcile, with or without --dry-run."""
