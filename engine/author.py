"""Whom the journal names for an act: the OS user and, over SSH, the peer that the session comes from."""

import getpass
import os
from collections.abc import Mapping

ENGINE = "auto"
"""The author of what the engine does by itself; a number paused by it counts as held, not as paused."""


def author(environ: Mapping[str, str] = os.environ) -> str:
    """`ana@10.1.2.3`, or `ana` at the machine itself."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a uid without a name, as in containers
        user = f"uid{os.getuid()}"
    for name in ("SSH_CLIENT", "SSH_CONNECTION"):
        peer = environ.get(name, "").split(" ")[0]
        if peer:
            return f"{user}@{peer}"
    return user
