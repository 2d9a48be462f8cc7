"""What a power cut leaves: a recorded run's system calls, replayed onto a model of a disk that forgets.

The model is harsh but lawful. A file's content is durable as of its last successful fsync, a folder's names as of the
folder's; a file that was never synced may be empty. What was written since may have reached the disk in any part,
sector by sector, and renames and unlinks in any prefix. Where fsync fails, its pages are dropped from what a later
fsync would write, though readers still see them: what Linux does, and what a retried fsync hides.
"""

from __future__ import annotations

import re
from pathlib import Path

SECTOR = 512
_CALL = re.compile(r"^\d+ +(\w+)\((.*)\) += (-?\d+)(.*)$")
_BYTES = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
TRACED = "openat,open,write,pwrite64,fsync,fdatasync,rename,unlink,ftruncate"


class Disk:
    """One folder: what programs see, what is durable, and what lies between."""

    def __init__(self, start, folder):
        """What lay in `start`, all of it durable, as the program saw it in `folder`."""
        self.folder = str(folder)
        self.content, self.durable, self.pending = {}, {}, {}  # by inode
        self.names, self.pending_names = {}, []
        for number, file in enumerate(sorted(Path(start).iterdir())):
            self.names[file.name] = number
            self.content[number] = bytearray(file.read_bytes())
            self.durable[number], self.pending[number] = bytes(self.content[number]), []
        self.durable_names = dict(self.names)
        self.open_files = {}

    def seen_from(self, folder):
        """The same disk after the program died and another saw it in `folder`: nothing was synced by that."""
        self.folder, self.open_files = str(folder), {}
        return self

    def apply(self, call, arguments, result):
        """Takes one recorded call; True where it changed what is seen or what is durable."""
        paths = (
            [bytes.fromhex(text.replace("\\x", "")).decode() for text in _BYTES.findall(arguments)]
            if call in ("openat", "open", "rename", "unlink")
            else []
        )
        if call in ("openat", "open"):
            return self._open(paths[0], arguments, result)
        if call in ("rename", "unlink"):
            if result or not paths[0].startswith(self.folder):
                return False
            self._rename(*(path.rsplit("/", 1)[1] for path in paths)) if call == "rename" else self._unlink(
                paths[0].rsplit("/", 1)[1]
            )
            return True
        file = int(arguments.split(",")[0].rstrip(")"))
        inode = self.open_files.get(file)
        if inode is None:
            return False
        if call in ("fsync", "fdatasync"):
            self._sync(inode, result == 0)
        elif call == "ftruncate" and result == 0:
            self._change(inode, ("size", int(arguments.split(",")[1]), b""))
        elif call == "pwrite64" and result > 0:
            data = bytes.fromhex(_BYTES.search(arguments)[1].replace("\\x", ""))[:result]
            self._change(inode, ("data", int(arguments.rsplit(",", 1)[1]), data))
        elif call == "write" and result > 0:
            raise AssertionError("the model follows no file offsets, and a ledger should need none")
        return True

    def _open(self, path, arguments, result):
        if result < 0:
            return False
        self.open_files.pop(result, None)
        if path == self.folder:
            self.open_files[result] = "folder"
            return False
        if not path.startswith(self.folder + "/"):
            return False
        name, fresh = path.rsplit("/", 1)[1], False
        if name not in self.names:
            inode, fresh = len(self.content), True
            self.content[inode], self.durable[inode], self.pending[inode] = bytearray(), b"", []
            self._link(name, inode)
        self.open_files[result] = self.names[name]
        if "O_TRUNC" in arguments and not fresh:
            self._change(self.names[name], ("size", 0, b""))
            return True
        return fresh

    def _link(self, name, inode):
        self.names[name] = inode
        self.pending_names.append({name: inode})

    def _unlink(self, name):
        del self.names[name]
        self.pending_names.append({name: None})

    def _rename(self, old, new):
        inode = self.names.pop(old)
        self.names[new] = inode
        self.pending_names.append({old: None, new: inode})

    def _change(self, inode, operation):
        _alter(self.content[inode], operation)
        self.pending[inode].append(operation)

    def _sync(self, inode, succeeded):
        if inode == "folder":
            if succeeded:
                self.durable_names, self.pending_names = dict(self.names), []
            return
        if succeeded:
            self.durable[inode] = self._settled(inode, self.pending[inode])
        self.pending[inode] = []

    def _settled(self, inode, operations):
        content = bytearray(self.durable[inode])
        for operation in operations:
            _alter(content, operation)
        return bytes(content)

    def after_power_cut(self, how, rng=None):
        """What the next start finds, `how` being lost, kept, head or names (lost but for them), or mixed."""
        names = dict(self.durable_names)
        steps = len(self.pending_names)
        for step in self.pending_names[: {"lost": 0, "mixed": rng and rng.randint(0, steps)}.get(how, steps)]:
            names.update(step)
        files = {}
        for name, inode in names.items():
            if inode is None:
                continue
            if how == "kept":
                files[name] = bytes(self.content[inode])
            elif how == "mixed":
                files[name] = self._settled(inode, list(_torn(self.pending[inode], rng)))
            else:
                head_too = how == "head" and "-head" in name
                files[name] = self._settled(inode, self.pending[inode] if head_too else [])
        return files


def _alter(content, operation):
    kind, at, data = operation
    if kind == "size":
        content[at:] = b"\0" * max(0, at - len(content))
    else:
        content.extend(b"\0" * (at + len(data) - len(content)))
        content[at : at + len(data)] = data


def _torn(operations, rng):
    for kind, at, data in operations:
        if kind == "size":
            if rng.random() < 0.5:
                yield kind, at, data
            continue
        edge = at
        while edge < at + len(data):
            end = min((edge // SECTOR + 1) * SECTOR, at + len(data))
            if rng.random() < 0.5:
                yield kind, edge, data[edge - at : end - at]
            edge = end


def replay(disk, log, acks_file):
    """Takes the log's calls one by one; yields, after each that mattered, its name and what the client knew by then."""
    told, acks = b"", None
    for text in log:
        if not (match := _CALL.match(text)):
            continue
        call, arguments, result = match[1], match[2], int(match[3])
        if call in ("openat", "open") and result >= 0:
            path = bytes.fromhex(_BYTES.search(arguments)[1].replace("\\x", "")).decode()
            acks = result if path == str(acks_file) else None if acks == result else acks
        if call == "write" and acks is not None and arguments.startswith(f"{acks},"):
            told += bytes.fromhex(_BYTES.search(arguments)[1].replace("\\x", ""))
        elif not disk.apply(call, arguments, result):
            continue
        yield call, told
