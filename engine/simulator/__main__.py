"""`python -m engine.simulator`: the provider's double without the rest of Tidegate."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from engine.simulator import run

EPILOG = """\
example:
  python -m engine.simulator --port 9090 --scenario engine/simulator/demo.json

Secrets come from the scenario file or from the environment: TIDEGATE_APP_SECRET (signs webhooks),
TIDEGATE_SIMULATOR_TOKEN (the bearer token to accept), TIDEGATE_SIMULATOR_WEBHOOK (where statuses go).
"""


def main() -> int:
    """Parse the flags and serve."""
    parser = argparse.ArgumentParser(
        prog="python -m engine.simulator",
        description="Answers like Meta's Cloud API on loopback, to try sending without sending.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--port", type=int, default=9090, help="0 takes a free port (default: 9090)")
    parser.add_argument(
        "--scenario", type=Path, metavar="FILE", help="limits, latency, faults, statuses (JSON)"
    )
    parser.add_argument("--exit-with-stdin", action="store_true", help="end when stdin is closed")
    flags = parser.parse_args()
    return run(port=flags.port, scenario=flags.scenario, exit_with_stdin=flags.exit_with_stdin)


if __name__ == "__main__":
    sys.exit(main())
