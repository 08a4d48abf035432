# SPDX-License-Identifier: GPL-2.0-or-later
"""unit_jail.py SETTINGS PROGRAM…: runs a program under the restrictions of a systemd unit, where no systemd runs.

SETTINGS is a JSON file: syscalls, families, writable, and whether the file system is read-only otherwise. What systemd does with
seccomp and mounts is done here with the same means: a filter by libseccomp, and a mount namespace (in a user namespace: the caller
need not be root).
"""
import ctypes
import json
import os
import socket
import sys

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 32, 4096, 16384, 1 << 18
MOUNT_SETATTR, AT_FDCWD, AT_RECURSIVE, MOUNT_ATTR_RDONLY = 442, -100, 0x8000, 1
PR_SET_NO_NEW_PRIVS = 38
ALLOW, EPERM_ACTION = 0x7FFF0000, 0x00050001
PROT_WRITE, PROT_EXEC = 2, 4
EQUAL, MASKED_EQUAL = 4, 7


class Compare(ctypes.Structure):
    _fields_ = [("arg", ctypes.c_uint), ("op", ctypes.c_int), ("a", ctypes.c_uint64), ("b", ctypes.c_uint64)]


class Attributes(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "userns")]


def must(result, what):
    if result != 0:
        number = ctypes.get_errno()
        sys.exit(f"unit_jail: {what}: {os.strerror(number)}")


def make_read_only(writable):
    """ProtectSystem=strict and ReadWritePaths=: all mounts read-only, then these directories writable again."""
    uid, gid = os.getuid(), os.getgid()
    must(LIBC.unshare(CLONE_NEWUSER | CLONE_NEWNS), "unshare")
    # PrivateUsers=yes would give it the same view: only itself.
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)
    for path in writable:
        must(LIBC.mount(path.encode(), path.encode(), None, MS_BIND | MS_REC, None), f"bind {path}")
    read_only = Attributes(set=MOUNT_ATTR_RDONLY)
    must(LIBC.syscall(MOUNT_SETATTR, AT_FDCWD, b"/", AT_RECURSIVE, ctypes.byref(read_only), ctypes.sizeof(read_only)),
         "mount_setattr")
    again = Attributes(clear=MOUNT_ATTR_RDONLY)
    for path in writable:
        must(LIBC.syscall(MOUNT_SETATTR, AT_FDCWD, path.encode(), 0, ctypes.byref(again), ctypes.sizeof(again)), path)


def filter_calls(syscalls, families):
    """SystemCallFilter=, RestrictAddressFamilies=, MemoryDenyWriteExecute=yes; SystemCallErrorNumber=EPERM."""
    seccomp = ctypes.CDLL("libseccomp.so.2", use_errno=True)
    seccomp.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(seccomp.seccomp_init(EPERM_ACTION))

    def allow(name, *compares):
        number = seccomp.seccomp_syscall_resolve_name(name.encode())
        if number >= 0:  # there is none of this name on this machine otherwise
            array = (Compare * max(len(compares), 1))(*compares)
            must(seccomp.seccomp_rule_add_array(context, ALLOW, number, len(compares), array), name)

    special = {"socket", "mmap", "mprotect", "pkey_mprotect"}
    for name in set(syscalls) - special:
        allow(name)
    for family in families:
        allow("socket", Compare(0, EQUAL, getattr(socket, family), 0))
    allow("mmap", Compare(2, MASKED_EQUAL, PROT_EXEC, 0))
    allow("mmap", Compare(2, MASKED_EQUAL, PROT_WRITE, 0))
    allow("mprotect", Compare(2, MASKED_EQUAL, PROT_EXEC, 0))
    must(LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    must(seccomp.seccomp_load(context), "seccomp_load")


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        settings = json.load(file)
    if settings["read_only"]:
        make_read_only(settings["writable"])
    filter_calls(settings["syscalls"], settings["families"])
    os.execv(sys.argv[2], sys.argv[2:])


main()
