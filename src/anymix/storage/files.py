"""Read untrusted files once and safely; write files completely or not at all."""

from __future__ import annotations

import ctypes
import errno
import os
import re
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import islice
from operator import attrgetter
from pathlib import Path

from anymix.exceptions import AuditError, InputError, MissingError

# What a run that was killed may leave next to a file that it was writing.
TEMPORARY = re.compile(r"\.(.{1,80})-([0-9a-f]{16}|[a-z0-9_]{8})\.tmp(\.\w+)?")
A_SOURCE = "give a source folder, as anymix source pack writes"
# Of renameat2(2): names are relative to the working folder; two names are exchanged.
AT_FDCWD, RENAME_EXCHANGE = -100, 2
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
NOT_REPLACED: dict[Callable[[int], bool], str] = {
    stat.S_ISDIR: "is a folder; give the name of a file",
    stat.S_ISLNK: "is a link, through which nothing is written; give the file itself",
    lambda mode: not stat.S_ISREG(mode): "is not a plain file; choose another name",
}
# A file that has changed differs in one of these.
_identity = attrgetter("st_dev", "st_ino", "st_mtime_ns", "st_size")
STREAM = re.compile("/dev/(stdin|stdout|stderr)|/(?:dev|proc/self)/fd/([0-9]{1,6})")


def read_folder(folder: str | Path, limits: Mapping[str, int]) -> dict[str, bytes]:
    """Return the content of exactly the named files, each a plain file within its limit.

    A file is opened once and what was read is what is used, so nothing can be changed between
    the check and the use.
    """
    folder = Path(folder)
    if not folder.exists():
        raise MissingError(folder, "does not exist; give a folder that is there")
    if not folder.is_dir():
        raise AuditError(folder, f"is not a folder; {A_SOURCE}, unpacked")
    with os.scandir(folder) as entries:
        names = {entry.name for entry in islice(entries, len(limits) + 1)}
    if "model.json" in names:
        raise AuditError(folder, f"is a model folder; {A_SOURCE}")
    strange = sorted(names - set(limits))
    if strange:
        raise AuditError(
            folder,
            f"holds {strange[0]!r}, which does not belong there; remove it if your own computer "
            "put it there, or ask for the folder again",
        )
    missing = sorted(set(limits) - names)
    if missing:
        raise AuditError(folder, f"has no {missing[0]}; ask for the whole folder again")
    return {name: read_file(folder / name, limit) for name, limit in limits.items()}


def read_file(path: Path, limit: int) -> bytes:
    """Read a plain file of at most `limit` bytes; links, pipes and devices are refused."""
    if not stat.S_ISREG(os.lstat(path).st_mode):
        raise AuditError(path, "is not a plain file")
    # Another thing may have been put there since: it is neither followed nor waited for.
    flags = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"))
    try:
        descriptor = os.open(path, os.O_RDONLY | flags)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise AuditError(path, "is not a plain file") from error
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise AuditError(path, "is not a plain file")
        content = b"" if status.st_size > limit else file.read(limit + 1)
    if status.st_size > limit or len(content) > limit:
        raise AuditError(path, f"is larger than the {limit} bytes that are allowed")
    return content


@contextmanager
def replacing(path: str | Path, new: bool = False, suffix: str = "") -> Iterator[Path]:
    """Yield a temporary name next to `path`; move it into place when the block succeeds.

    The file that it replaces keeps its mode and owner; with `new` there must be none.  Folders and
    links are never replaced, nor a file that changed since the block began.  Pipes and devices are
    written to, once all is there; `suffix` is that of the temporary name where they have none.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(Path(folder) / "a.txt") as temporary:
    ...         _ = temporary.write_text("whole")
    ...     (Path(folder) / "a.txt").read_text()
    'whole'
    """
    path = Path(path)
    if is_stream(path):
        with _streaming(path, path.suffix or suffix) as temporary:
            yield temporary
        return
    before = path.lstat() if os.path.lexists(path) else None
    if before is not None:
        causes = [cause for is_kind, cause in NOT_REPLACED.items() if is_kind(before.st_mode)]
        causes += ["exists already; choose another name or remove it first"] * new
        if causes:
            raise InputError(path, causes[0])
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.stem[:40]}-{secrets.token_hex(8)}.tmp{path.suffix}")
    # A file that others may not read is not readable for them while it is written, either.
    mode = 0o666 if before is None else 0o600
    with _faults_of(path, temporary):
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
        try:
            yield temporary
            with open(temporary, "rb+") as file:
                os.fsync(file.fileno())
            _publish(temporary, path, before)
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def _faults_of(path: Path, temporary: Path) -> Iterator[None]:
    """Let faults of a temporary file name the one that it stands for."""
    try:
        yield
    except OSError as error:
        # To write to an open file that is full is a fault without a name.
        full = error.filename is None and error.errno in FULL
        if full or str(error.filename) == str(temporary):
            error.filename = str(path)
        raise


def is_stream(path: str | Path) -> bool:
    """Whether this name is a pipe, a terminal or a device, which is written to, not replaced."""
    if _descriptor(path) is not None:
        return True
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)


def is_standard_output(path: str | Path) -> bool:
    """Whether a stream writes to the same place as standard output."""
    number = _descriptor(path)
    try:
        status = os.stat(path) if number is None else os.fstat(number)
        return is_stream(path) and os.path.samestat(status, os.fstat(1))
    except OSError:
        return False


def check_open(word: str) -> None:
    """Refuse a command-line argument that names a closed file descriptor.

    Later a file of the command itself may have its number.
    """
    number = _descriptor(word.rpartition("=")[2])
    if number is None:
        return
    try:
        os.fstat(number)
    except OSError as error:
        raise InputError(
            word, f"is not open; give a file, or open it in the shell by {number}>file"
        ) from error


def _descriptor(path: str | Path) -> int | None:
    """Return the number of a stream that this process has open, such as 1 for /dev/stdout."""
    match = STREAM.fullmatch(str(path))
    if match is None:
        return None
    named = {"stdin": 0, "stdout": 1, "stderr": 2}
    return named[match[1]] if match[1] else int(match[2])


@contextmanager
def _streaming(path: Path, suffix: str) -> Iterator[Path]:
    number = _descriptor(path)
    with tempfile.TemporaryDirectory() as folder:
        temporary = Path(folder, f"output{suffix}")
        temporary.touch()
        yield temporary
        with (
            _faults_of(path, temporary),
            open(path if number is None else os.dup(number), "wb") as stream,
            open(temporary, "rb") as file,
        ):
            shutil.copyfileobj(file, stream)


def _publish(temporary: Path, path: Path, before: os.stat_result | None) -> None:
    now = path.lstat() if os.path.lexists(path) else None
    if now is not None and (before is None or _identity(now) != _identity(before)):
        raise InputError(path, "was changed by others meanwhile and is left as it is; run again")
    if before is not None and now is not None:
        # It has the owner and the mode of the file that it replaces, as far as one may.
        new = os.stat(temporary)
        if hasattr(os, "chown") and (new.st_uid, new.st_gid) != (before.st_uid, before.st_gid):
            with suppress(PermissionError):
                os.chown(temporary, before.st_uid, before.st_gid)
        temporary.chmod(stat.S_IMODE(before.st_mode))
        temporary.replace(path)
        return
    try:
        # Unlike a rename, this fails if a file of that name has come into being.
        os.link(temporary, path)
    except FileExistsError as error:
        raise InputError(
            path, "was made by others meanwhile and is left as it is; choose another name"
        ) from error
    except OSError:  # a disk without hard links
        temporary.rename(path)


def check_new(folder: str | Path) -> None:
    """Refuse a name that is taken."""
    folder = Path(folder)
    if os.path.lexists(folder):
        raise InputError(
            folder.absolute(), "exists already; choose another name or remove it first"
        )


def write_folder(folder: str | Path, files: Mapping[str, bytes], replace: bool = False) -> None:
    """Write a new folder under a temporary name and move it into place; never over another.

    With `replace` the folder that is there, and that the caller has looked into, makes way: in one
    step where the system can exchange two names (Linux), elsewhere in two, of which the first is
    undone if the second fails.
    """
    folder = Path(folder)
    if not replace:
        check_new(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = folder.with_name(f".{folder.name[:40]}-{secrets.token_hex(8)}.tmp")
    temporary.mkdir()
    try:
        for name, content in files.items():
            (temporary / name).parent.mkdir(parents=True, exist_ok=True)
            with open(temporary / name, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        if not (replace and folder.is_dir()):
            temporary.rename(folder)
        elif not _exchanged(temporary, folder):
            _swap(temporary, folder)
    finally:
        # After an exchange it is the old folder that has the temporary name.
        shutil.rmtree(temporary, ignore_errors=True)


def _exchanged(one: Path, other: Path) -> bool:
    """Exchange the names of two folders in one step; False where the system or disk cannot."""
    library = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
    renameat2 = getattr(library, "renameat2", None)
    if renameat2 is None:
        return False
    names = os.fsencode(one), os.fsencode(other)
    if renameat2(AT_FDCWD, names[0], AT_FDCWD, names[1], RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number not in (errno.EINVAL, errno.ENOSYS, errno.EPERM):
        raise OSError(number, os.strerror(number), str(other))
    return False


def _swap(new: Path, folder: Path) -> None:
    """Move a folder aside and the new one into place; if that fails, move the old one back."""
    old = new.with_name(f".{folder.name[:40]}-{secrets.token_hex(8)}.tmp")
    try:
        folder.rename(old)
        new.rename(folder)
    except BaseException as error:
        if not os.path.lexists(folder):
            old.rename(folder)
        elif new.exists() and old.exists():
            cause = f"was made by others meanwhile; the folder that it replaces is {old.name}"
            raise InputError(folder, cause) from error
        raise
    finally:
        if not new.exists():
            shutil.rmtree(old, ignore_errors=True)
