"""Access tokens by reference: `file:PATH` is read again whenever the file changes, `env:NAME` is read as it stands.

Only the reference is ever stored; the secret itself exists in memory, in a type that does not print it.
"""

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from pydantic import SecretStr

MAX_BYTES = 64 * 1024


class CredentialError(Exception):
    """A token cannot be had. The message is one sentence and holds the reference, never the secret."""


class Credentials:
    """Resolves references, and keeps what a file held until the file changes. Belongs to one thread."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._environ = environ
        self._read: dict[str, tuple[tuple[int, int, int], SecretStr]] = {}

    def resolve(self, reference: str) -> SecretStr:
        """The token that `file:PATH` or `env:NAME` stands for now. Raises CredentialError."""
        kind, _, name = reference.partition(":")
        if kind == "env" and name:
            return self._from_environment(name)
        if kind == "file" and name:
            return self._from_file(Path(name).expanduser())
        # Not quoted: whoever writes a bare token here must not find it in a log.
        raise CredentialError(
            "A token is given by reference: write file:PATH or env:NAME, not the token itself."
        )

    def _from_environment(self, name: str) -> SecretStr:
        value = self._environ.get(name, "").strip()
        if not value:
            raise CredentialError(
                f"The token env:{name} is not there: set the environment variable {name} and start again."
            )
        return _usable(value, f"env:{name}")

    def _from_file(self, path: Path) -> SecretStr:
        try:
            now = path.stat()
            seen = (now.st_mtime_ns, now.st_size, now.st_ino)
            kept = self._read.get(str(path))
            if kept and kept[0] == seen:
                return kept[1]
            if not stat.S_ISREG(now.st_mode) or now.st_size > MAX_BYTES:
                raise CredentialError(
                    f"The token file {path} is no small regular file: put the token alone into it."
                )
            text = path.read_text("utf-8").strip()
        except OSError as error:
            raise CredentialError(
                f"The token file {path} cannot be read ({error.strerror}): create it, readable by this user alone."
            ) from None
        except UnicodeDecodeError:
            raise CredentialError(
                f"The token file {path} is not text: put the token alone into it."
            ) from None
        if not text:
            raise CredentialError(f"The token file {path} is empty: put the token alone into it.")
        token = _usable(text, f"file:{path}")
        self._read[str(path)] = (seen, token)
        return token


def resolve_token(reference: str) -> SecretStr:
    """`Credentials.resolve` by itself, with nothing kept."""
    return Credentials().resolve(reference)


def permission_warning(reference: str) -> str | None:
    """One sentence when others may read a token's file, else None (also when the file is not there)."""
    kind, _, name = reference.partition(":")
    if kind != "file":
        return None
    path = Path(name).expanduser()
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return None
    if mode & 0o077:
        return f"The token file {path} is open to other users (mode {mode:04o}): chmod 600 {path}"
    return None


def _usable(token: str, reference: str) -> SecretStr:
    # It goes into a header, where a line break or a letter beyond ASCII would be an injection or a crash.
    if not token.isascii() or not token.isprintable() or " " in token:
        raise CredentialError(
            f"The token {reference} holds spaces, line breaks or special characters: keep it alone."
        )
    return SecretStr(token)
