"""The provider's double: answers like Meta's Cloud API, posts signed status webhooks, and keeps a ledger.

It runs as a process of its own and imports nothing else of `engine`, so that it can judge the engine: what
was accepted, what was accepted twice, how fast requests really arrived. Reading order: `scenario` (what a run
does), `cloud_api` (what a request gets), `faults`, `limits`, `ledger`, `statuses` and `webhooks` (what is
told later), `wire` (bytes), `http` (sockets), `control` (its own endpoints), `process`.
"""

from engine.simulator.process import run

__all__ = ["run"]
