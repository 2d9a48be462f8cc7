"""Saved synopses: a folder of numbers and plain text, checked whole before anything in it is believed."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shutil
import stat
import time
import zipfile
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.domain.factored import Factored
from tacit.domain.median import Median
from tacit.domain.receipt import Receipt
from tacit.domain.schema import Schema
from tacit.domain.synopsis import MOST_CELLS, Histogram, Marginals, Rows
from tacit.errors import InvalidData, InvalidInput, InvalidParameter, quoted

FORMAT, VERSION = "tacit synopsis", 1
SAID, TABLES = "synopsis.json", "tables.npz"
MOST_SAID = 2**26  # bytes
MOST_ARRAYS = 100_000
_DTYPES = ("<f8", "|u1", "<u2", "<u4")
_HEADER = 2**12  # bytes before the numbers of an array, at most
_MAGIC = b"\x93NUMPY\x01\x00"
# as numpy writes it; its own reader evaluates what stands there
_SAYS = re.compile(rb"\{'descr': '([^']{3})', 'fortran_order': False, 'shape': \(([0-9, ]{0,500})\), \} *\n")

Saved: TypeAlias = Histogram | Rows | Marginals | Factored | Median

KINDS: dict[str, type[Saved]] = {kind.kind: kind for kind in (Histogram, Rows, Marginals, Factored, Median)}


def save(
    synopsis: Saved, folder: str | os.PathLike[str], receipt: Receipt | None = None, *, overwrite: bool = False
) -> None:
    """Writes a synopsis with its receipt, as `synopsis.json` and `tables.npz`, in a folder that is there whole or not.

    A folder that exists is refused; with `overwrite` it is replaced, if it holds a synopsis.
    """
    place = Path(folder)
    if os.path.lexists(place):
        if not overwrite:
            raise InvalidParameter(f"{quoted(place)} exists; name another folder, or say overwrite=True.")
        if place.is_symlink() or not (place / SAID).is_file():
            raise InvalidParameter(f"{quoted(place)} is not a folder that holds a synopsis, so it is not replaced.")
    paid = synopsis.receipt if receipt is None else receipt
    if paid is None:
        raise InvalidParameter("a synopsis is saved with its receipt, and this one has none.")
    arrays = synopsis.arrays()
    if len(arrays) > MOST_ARRAYS or sum(array.nbytes for array in arrays.values()) > 8 * MOST_CELLS:
        raise InvalidParameter(
            f"a saved synopsis has at most {MOST_ARRAYS} tables and {8 * MOST_CELLS} bytes of numbers."
        )
    packed = {name: _packed(array) for name, array in arrays.items()}
    said: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "kind": synopsis.kind,
        "schema": synopsis.schema.describe(),
        "about": synopsis.describe(),
        "receipt": paid.describe(),
        "sha256": {name: hashlib.sha256(content).hexdigest() for name, content in packed.items()},
    }
    said["digest"] = _digest(said)
    mark = f"{os.getpid()}.{time.monotonic_ns()}"
    made, aside = (place.with_name(f".{place.name}.{mark}.{end}") for end in ("part", "old"))
    made.mkdir()
    try:
        with zipfile.ZipFile(made / TABLES, "x", zipfile.ZIP_STORED, allowZip64=True) as archive:
            for name, content in packed.items():
                archive.writestr(zipfile.ZipInfo(f"{name}.npy"), content)  # no clock: the same synopsis, the same bytes
        (made / SAID).write_text(
            json.dumps(said, indent=1, ensure_ascii=True, allow_nan=False) + "\n", encoding="ascii"
        )
        for written in (made / TABLES, made / SAID, made):
            to_disk(written)
        if os.path.lexists(place):
            os.rename(place, aside)
        os.rename(made, place)
        to_disk(place.absolute().parent)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        if os.path.lexists(aside) and not os.path.lexists(place):
            os.rename(aside, place)
        raise
    shutil.rmtree(aside, ignore_errors=True)


def load(folder: str | os.PathLike[str]) -> Saved:
    """The synopsis in a folder, with its receipt; or a refusal, if a byte of it is not what was written.

    Nothing in it is run, and no more is read than its own description says is there. The digests find damage,
    not forgery: whoever can write the folder can write other digests.
    """
    place = Path(folder)
    said = _said(place)
    try:
        schema = Schema.of(said["schema"])
        kind, receipt = KINDS[said["kind"]], Receipt.of(said["receipt"])
        return kind.restored(schema, said["about"], _arrays(place, said["sha256"]), receipt)
    except InvalidData as error:
        raise InvalidData(f"{quoted(place)} cannot be loaded: {error}") from None
    except (InvalidInput, KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        why = str(error) if isinstance(error, InvalidInput) else "what it says of itself cannot be read."
        raise InvalidData(f"{quoted(place)} cannot be loaded: {why}") from None


def _packed(array: NDArray[Any]) -> bytes:
    held = np.ascontiguousarray(array)
    little = held.astype(held.dtype.newbyteorder("<"), copy=False).reshape(array.shape)
    file = io.BytesIO()
    np.lib.format.write_array(file, little, version=(1, 0), allow_pickle=False)
    return file.getvalue()


def _digest(said: Mapping[str, Any]) -> str:
    plain = {name: value for name, value in said.items() if name != "digest"}
    return hashlib.sha256(json.dumps(plain, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


def to_disk(path: Path) -> None:
    """Waits until a file, or a folder's list of its files, would outlast a power cut."""
    held = os.open(path, os.O_RDONLY)
    try:
        os.fsync(held)
    finally:
        os.close(held)


def _said(place: Path) -> dict[str, Any]:
    file = place / SAID
    try:
        if not file.is_file() or file.stat().st_size > MOST_SAID:
            raise InvalidData(f"{quoted(place)} is not a folder that holds a synopsis. Nothing was spent.")
        said = json.loads(file.read_text(encoding="ascii"), parse_constant=_no_constant)
    except (OSError, ValueError, RecursionError) as error:
        if isinstance(error, InvalidData):
            raise
        raise InvalidData(f"{quoted(file)} cannot be read as JSON. Nothing was spent.") from None
    if not isinstance(said, dict) or said.get("format") != FORMAT:
        raise InvalidData(f"{quoted(file)} does not describe a synopsis. Nothing was spent.")
    if type(said.get("version")) is not int or said["version"] != VERSION:
        raise InvalidData(
            f"{quoted(file)} has version {quoted(said.get('version'))} of the format; this tacit reads {VERSION}. "
            "Nothing was spent."
        )
    if said.get("digest") != _digest(said):
        raise InvalidData(f"{quoted(file)} was changed after it was written. Nothing was spent.")
    if not isinstance(said.get("kind"), str) or said["kind"] not in KINDS:
        raise InvalidData(f"{quoted(file)} holds a kind of synopsis that this tacit does not know. Nothing was spent.")
    return said


def _no_constant(name: str) -> float:
    raise ValueError(name)  # NaN and infinities are not JSON


def _arrays(place: Path, digests: Mapping[str, str]) -> dict[str, NDArray[Any]]:
    file = place / TABLES
    try:
        seen = os.stat(file)
        if not stat.S_ISREG(seen.st_mode) or seen.st_size > 8 * MOST_CELLS + _HEADER * MOST_ARRAYS:
            raise InvalidData(f"{TABLES} is no plain file, or too large. Nothing was spent.")  # a pipe never ends
        with zipfile.ZipFile(file) as archive:
            held = {entry.filename: entry for entry in archive.infolist()}
            size = sum(entry.file_size for entry in held.values())
            if len(held) > MOST_ARRAYS or set(held) != {f"{name}.npy" for name in digests}:
                raise InvalidData(f"{TABLES} holds other arrays than {SAID} names. Nothing was spent.")
            stored = all(entry.compress_type == zipfile.ZIP_STORED for entry in held.values())
            if not stored or size > min(seen.st_size, 8 * MOST_CELLS + _HEADER * len(held)):
                raise InvalidData(f"{TABLES} is compressed or too large. Nothing was spent.")
            return {name: _array(archive.read(f"{name}.npy"), digest) for name, digest in digests.items()}
    except (OSError, zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError):
        raise InvalidData(f"{TABLES} is missing or damaged. Nothing was spent.") from None


def _array(content: bytes, digest: str) -> NDArray[Any]:
    if hashlib.sha256(content).hexdigest() != digest:
        raise InvalidData(f"an array in {TABLES} is not what was written. Nothing was spent.")
    start = len(_MAGIC) + 2
    ends = start + int.from_bytes(content[start - 2 : start], "little")
    says = _SAYS.fullmatch(content[start:ends])
    if not content.startswith(_MAGIC) or says is None:
        raise InvalidData(f"an array in {TABLES} has no header that can be read. Nothing was spent.")
    kind, shape = says[1].decode("latin-1"), tuple(int(size) for size in says[2].split(b",") if size.strip())
    if kind not in _DTYPES or len(content) - ends != np.dtype(kind).itemsize * prod(shape):
        raise InvalidData(f"an array in {TABLES} has not the numbers that it says. Nothing was spent.")
    return np.frombuffer(content, kind, offset=ends).reshape(shape)
