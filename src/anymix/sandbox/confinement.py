"""Restrict the limited process through the kernel, even if its memory is corrupted.

    limits     memory, processor time, no new file descriptor (POSIX)
    landlock   no file system, no TCP, no signals to others (Linux 5.13 and later, by its version)
    seccomp    the system calls in `ALLOWED` alone: no open, socket, fork, exec, ptrace, kill, and
               no new executable memory (Linux on x86-64 and ARM64)

Limits alone leave calls by a name, such as unlink and rename, and reading the memory of another
process of the same user.  Both other layers are irrevocable, and pass to all that is started.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys
from typing import Any

# prctl(2): nobody of this user may read or trace this process; no right is gained by exec.
PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS = 4, 38
# landlock(7), of which the numbers are the same on all machines.
CREATE_RULESET, RESTRICT_SELF, ASK_VERSION = 444, 446, 1
# Rights over files that are given up, by the version that first knows them.
FILE_RIGHTS = {1: 0x1FFF, 2: 0x3FFF, 3: 0x7FFF, 5: 0xFFFF}
TCP_RIGHTS, SCOPES = 0x3, 0x3
TCP_SINCE, SCOPES_SINCE = 4, 6
# seccomp(2).
SET_MODE_FILTER, ALL_THREADS, NO_SPECULATION_PENALTY = 1, 1, 4
ALLOW, EPERM_INSTEAD, KILL = 0x7FFF0000, 0x00050000 | 1, 0x80000000
# Machine -> its name in audit records, the number of seccomp itself, and of calls by name.
MACHINES: dict[str, tuple[int, int, dict[str, int]]] = {
    "x86_64": (
        0xC000003E,
        317,
        {
            **{"read": 0, "write": 1, "close": 3, "fstat": 5, "lseek": 8, "mmap": 9},
            **{"mprotect": 10, "munmap": 11, "brk": 12, "rt_sigaction": 13},
            **{"rt_sigprocmask": 14, "rt_sigreturn": 15, "readv": 19, "writev": 20},
            **{"sched_yield": 24, "mremap": 25, "madvise": 28, "nanosleep": 35, "getpid": 39},
            **{"exit": 60, "gettimeofday": 96, "getrusage": 98, "sigaltstack": 131},
            **{"gettid": 186, "futex": 202, "sched_getaffinity": 204, "restart_syscall": 219},
            **{"clock_gettime": 228, "clock_nanosleep": 230, "exit_group": 231},
            **{"set_robust_list": 273, "prlimit64": 302, "getcpu": 309, "getrandom": 318},
            **{"membarrier": 324, "rseq": 334},
        },
    ),
    "aarch64": (
        0xC00000B7,
        277,
        {
            **{"close": 57, "lseek": 62, "read": 63, "write": 64, "readv": 65, "writev": 66},
            **{"fstat": 80, "exit": 93, "exit_group": 94, "futex": 98, "set_robust_list": 99},
            **{"nanosleep": 101, "clock_gettime": 113, "clock_nanosleep": 115},
            **{"sched_getaffinity": 123, "sched_yield": 124, "restart_syscall": 128},
            **{"sigaltstack": 132, "rt_sigaction": 134, "rt_sigprocmask": 135},
            **{"rt_sigreturn": 139, "getrusage": 165, "getcpu": 168, "gettimeofday": 169},
            **{"getpid": 172, "gettid": 178, "brk": 214, "munmap": 215, "mremap": 216},
            **{"mmap": 222, "mprotect": 226, "madvise": 233, "prlimit64": 261},
            **{"getrandom": 278, "membarrier": 283, "rseq": 293},
        },
    ),
}
PROT_EXEC = 4
LAYERS = ("landlock", "seccomp")


def confine() -> list[str]:
    """Block access to files, sockets, signals and other processes; return the active layers."""
    if sys.platform != "linux":
        return []
    library = ctypes.CDLL(None, use_errno=True)
    library.syscall.restype = ctypes.c_long
    library.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    if library.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        return []
    steps = {"landlock": _landlock, "seccomp": _seccomp}
    return [name for name in LAYERS if steps[name](library)]


def missing_layers(held: list[str]) -> str:
    """Name in one line the layers that this system lacks; nothing if all are active.

    >>> missing_layers(["landlock", "seccomp"])
    ''
    >>> missing_layers(["seccomp"])
    'this system has no landlock: predictors of others are run with limits and seccomp alone'
    """
    missing = [name for name in LAYERS if name not in held]
    if not missing:
        return ""
    rest = " and ".join(["limits", *held])
    return (
        f"this system has no {' and no '.join(missing)}: predictors of others are run with {rest} "
        "alone"
    )


def _landlock(library: Any) -> bool:
    """Allow nothing of what Landlock of this version can forbid."""
    none = ctypes.c_void_p(None)
    version = library.syscall(CREATE_RULESET, none, ctypes.c_size_t(0), ASK_VERSION)
    if version < 1:
        return False
    files = FILE_RIGHTS[max(known for known in FILE_RIGHTS if known <= version)]
    handled = [files]
    handled += [TCP_RIGHTS] * (version >= TCP_SINCE) + [SCOPES] * (version >= SCOPES_SINCE)
    rules = struct.pack(f"={len(handled)}Q", *handled)
    made = library.syscall(CREATE_RULESET, rules, ctypes.c_size_t(len(rules)), 0)
    if made < 0:
        return False
    held = library.syscall(RESTRICT_SELF, ctypes.c_int(made), 0) == 0
    os.close(made)
    return held


def _seccomp(library: Any) -> bool:
    """Answer every system call but the allowed ones with EPERM."""
    machine = MACHINES.get(platform.machine())
    if machine is None or struct.calcsize("P") != 8 or sys.byteorder != "little":
        return False
    audit, own_number, allowed = machine
    program = _filter(audit, allowed)
    held = ctypes.create_string_buffer(program)
    # struct sock_fprog: how many instructions, and where.
    head = struct.pack("=H6xQ", len(program) // 8, ctypes.addressof(held))
    flags = ALL_THREADS | NO_SPECULATION_PENALTY
    return library.syscall(own_number, SET_MODE_FILTER, flags, head) == 0


# Instructions of classic BPF, and where the data of a call lies that they load.
LOAD, IF_EQUAL, IF_ANY_BIT, RETURN = 0x20, 0x15, 0x45, 0x06
NUMBER, ARCHITECTURE, FIRST, THIRD = 0, 4, 16, 32


def _filter(audit: int, allowed: dict[str, int]) -> bytes:
    """Compile the filter: kill on another machine's calls, allow what is listed, refuse the rest.

    prlimit64 is allowed for this process alone, mmap and mprotect without the right to execute.
    """
    plain = [n for name, n in allowed.items() if name not in ("prlimit64", "mmap", "mprotect")]
    code = [(LOAD, 0, 0, ARCHITECTURE), (IF_EQUAL, 1, 0, audit), (RETURN, 0, 0, KILL)]
    code.append((LOAD, 0, 0, NUMBER))
    for number in plain:
        code += [(IF_EQUAL, 0, 1, number), (RETURN, 0, 0, ALLOW)]
    for name in ("mmap", "mprotect"):
        code += [(IF_EQUAL, 0, 4, allowed[name]), (LOAD, 0, 0, THIRD)]
        code += [(IF_ANY_BIT, 0, 1, PROT_EXEC), (RETURN, 0, 0, EPERM_INSTEAD)]
        code.append((RETURN, 0, 0, ALLOW))
    code += [(IF_EQUAL, 0, 3, allowed["prlimit64"]), (LOAD, 0, 0, FIRST)]
    code += [(IF_EQUAL, 0, 1, 0), (RETURN, 0, 0, ALLOW), (RETURN, 0, 0, EPERM_INSTEAD)]
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)
