"""The C interface, as `bezant.h` has it. Calls release the interpreter's lock while they wait."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

ABI = 1

NULL, INTEGER, REAL, TEXT, BLOB = range(5)
"""The kinds of values."""


class Bytes(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("length", ctypes.c_size_t)]

    @classmethod
    def of(cls, data: bytes) -> Bytes:
        """Points to these bytes, and keeps them. What is made of it as a part of something else does not."""
        made = cls(ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p), len(data))
        made.kept = data
        return made

    kept: bytes

    def get(self) -> bytes:
        """A copy."""
        return ctypes.string_at(self.data, self.length) if self.length else b""


class Value(ctypes.Structure):
    _fields_ = [
        ("kind", ctypes.c_int32),
        ("integer", ctypes.c_int64),
        ("real", ctypes.c_double),
        ("bytes", Bytes),
    ]


class Statement(ctypes.Structure):
    _fields_ = [("sql", Bytes), ("parameters", ctypes.POINTER(Value)), ("count", ctypes.c_size_t)]


class Failed(ctypes.Structure):
    _fields_ = [("sqlstate", Bytes), ("statement", ctypes.c_size_t)]


class Measures(ctypes.Structure):
    _fields_ = [
        ("rows", ctypes.c_size_t),
        ("columns", ctypes.c_size_t),
        ("changes", ctypes.c_uint64),
        ("last_insert_rowid", ctypes.c_int64),
    ]


def _load() -> ctypes.CDLL:
    path = Path(__file__).with_name("libbezant_ffi.so")
    if not path.is_file():
        raise ImportError(f"{path} is not there: install a wheel, which `cargo xtask wheel` builds")
    library = ctypes.CDLL(str(path))
    client, result, milliseconds, size = ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_size_t
    optional = ctypes.POINTER(Bytes)

    def declare(name: str, returns: Any, *takes: Any) -> None:
        function = getattr(library, name)
        function.restype, function.argtypes = returns, takes

    declare("bezant_abi", ctypes.c_uint32)
    declare("bezant_open", result, ctypes.c_char_p, ctypes.c_char_p, ctypes.POINTER(client))
    declare("bezant_close", None, client)
    declare("bezant_get", result, client, Bytes, milliseconds)
    declare("bezant_set", result, client, Bytes, Bytes, milliseconds)
    declare("bezant_delete", result, client, Bytes, milliseconds)
    declare("bezant_compare_and_set", result, client, Bytes, optional, optional, milliseconds)
    declare("bezant_sql", result, client, ctypes.POINTER(Statement), size, milliseconds)
    declare("bezant_execute", result, client, Bytes, milliseconds)
    declare("bezant_query", result, client, Bytes, milliseconds)
    declare("bezant_code", ctypes.c_int32, result)
    declare("bezant_message", Bytes, result)
    declare("bezant_failure", Failed, result)
    declare("bezant_tables", size, result)
    declare("bezant_table", Measures, result, size)
    declare("bezant_column", Bytes, result, size, size)
    declare("bezant_cell", Value, result, size, size, size)
    declare("bezant_free", None, result)
    if library.bezant_abi() != ABI:
        raise ImportError(f"{path} is of another version than this package")
    return library


library = _load()
