"""A client of a cluster."""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Iterable, Iterator, List, Optional, Sequence, Tuple, Type, Union

from . import _library as c
from .errors import BY_CODE, Error, InternalError, InvalidArgument, SqlError

Value = Union[None, int, float, str, bytes]
"""A value of SQL. Integers have 64 bits."""

Buffer = Union[str, bytes, bytearray, memoryview]
"""What is taken for bytes: text is encoded as UTF-8."""

Parameters = Sequence[Union[Value, bytearray, memoryview]]

_SQL = 11


@dataclass(frozen=True)
class Rows(Sequence[Tuple[Value, ...]]):
    """What a statement of SQL gave."""

    columns: Tuple[str, ...]
    """The names of the columns; none if the statement gives no rows."""
    rows: List[Tuple[Value, ...]]
    changes: int
    """Rows that the statement inserted, changed or removed."""
    last_insert_rowid: int
    """Of the row that was inserted last; 0 if there is none."""

    def __iter__(self) -> Iterator[Tuple[Value, ...]]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Any:
        return self.rows[index]


class Client:
    """A client of the cluster that this file describes. Any number of threads may share one.

    It connects in the background, with the secret key in `client.key` beside the file or in the file `key`. A call
    ends after `timeout` seconds at the latest, its own or the client's. A process that is forked needs a client of its
    own.
    """

    def __init__(
        self,
        cluster: Union[str, "os.PathLike[str]"],
        *,
        key: Union[str, "os.PathLike[str]", None] = None,
        timeout: float = 30.0,
    ) -> None:
        self._number = 0
        self._timeout = _milliseconds(timeout)
        number = ctypes.c_uint64(0)
        path = None if key is None else _path(key)
        _Result(c.library.bezant_open(_path(cluster), path, ctypes.byref(number))).end()
        self._number = number.value

    def close(self) -> None:
        """Closes the connections. Calls of other threads that are under way go on to their end."""
        number, self._number = self._number, 0
        c.library.bezant_close(number)

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self.close()

    def __del__(self) -> None:
        # The library may have gone before, when the interpreter ends.
        if getattr(self, "_number", 0) and c is not None:
            self.close()

    def get(self, key: Buffer, *, timeout: Optional[float] = None) -> Optional[bytes]:
        """The value of a key, if it has one."""
        value = self._one(c.library.bezant_get, timeout, _bytes(key))
        return value if isinstance(value, bytes) else None

    def set(self, key: Buffer, value: Buffer, *, timeout: Optional[float] = None) -> None:
        """Gives a key (at most 4 KiB) a value (512 KiB)."""
        self._call(c.library.bezant_set, timeout, _bytes(key), _bytes(value)).end()

    def delete(self, key: Buffer, *, timeout: Optional[float] = None) -> bool:
        """Removes a key, and says whether it had a value."""
        return self._one(c.library.bezant_delete, timeout, _bytes(key)) == 1

    def compare_and_set(
        self,
        key: Buffer,
        expected: Optional[Buffer],
        value: Optional[Buffer],
        *,
        timeout: Optional[float] = None,
    ) -> bool:
        """Gives a key a value if it has the expected one, and says whether it had. `None`: no value."""
        both = [None if given is None else ctypes.byref(_bytes(given)) for given in (expected, value)]
        return self._one(c.library.bezant_compare_and_set, timeout, _bytes(key), *both) == 1

    def sql(self, statement: str, parameters: Parameters = (), *, timeout: Optional[float] = None) -> Rows:
        """Carries out a statement of SQL, with values for its parameters ?1, ?2 and so on."""
        return self.sql_batch([(statement, parameters)], timeout=timeout)[0]

    def sql_batch(
        self, statements: Iterable[Tuple[str, Parameters]], *, timeout: Optional[float] = None
    ) -> List[Rows]:
        """Carries out statements of SQL in one transaction, all or none."""
        kept: List[Any] = []
        made = [_statement(text, parameters, kept) for text, parameters in statements]
        array = (c.Statement * len(made))(*made)
        return self._call(c.library.bezant_sql, timeout, array, len(made)).tables()

    def execute(self, operation: Buffer, *, timeout: Optional[float] = None) -> bytes:
        """Has an operation of a service of one's own executed, exactly once if at all."""
        return _reply(self._one(c.library.bezant_execute, timeout, _bytes(operation)))

    def query(self, operation: Buffer, *, timeout: Optional[float] = None) -> bytes:
        """Asks an operation of a service of one's own that only reads; `NotReadOnly` if it does not."""
        return _reply(self._one(c.library.bezant_query, timeout, _bytes(operation)))

    def _call(self, function: Any, timeout: Optional[float], *arguments: Any) -> "_Result":
        milliseconds = self._timeout if timeout is None else _milliseconds(timeout)
        return _Result(function(self._number, *arguments, milliseconds))

    def _one(self, function: Any, timeout: Optional[float], *arguments: Any) -> Value:
        rows = self._call(function, timeout, *arguments).tables()[0].rows
        value: Value = rows[0][0]
        return value


class _Result:
    """What came of a call, until it has been read."""

    def __init__(self, pointer: Optional[int]) -> None:
        self._pointer = pointer

    def end(self) -> None:
        """Raises what is to be raised."""
        self.tables()

    def tables(self) -> List[Rows]:
        """Reads everything."""
        try:
            code = c.library.bezant_code(self._pointer)
            if code:
                raise self._error(code)
            return [self._table(table) for table in range(c.library.bezant_tables(self._pointer))]
        finally:
            c.library.bezant_free(self._pointer)
            self._pointer = None

    def _error(self, code: int) -> Error:
        message = c.library.bezant_message(self._pointer).get().decode()
        if code == _SQL:
            failure = c.library.bezant_failure(self._pointer)
            return SqlError(message, failure.sqlstate.get().decode(), failure.statement)
        return BY_CODE.get(code, InternalError)(message)

    def _table(self, table: int) -> Rows:
        measures = c.library.bezant_table(self._pointer, table)
        columns = range(measures.columns)
        names = tuple(c.library.bezant_column(self._pointer, table, column).get().decode() for column in columns)
        rows = [tuple(self._value(table, row, column) for column in columns) for row in range(measures.rows)]
        return Rows(names, rows, measures.changes, measures.last_insert_rowid)

    def _value(self, table: int, row: int, column: int) -> Value:
        value: c.Value = c.library.bezant_cell(self._pointer, table, row, column)
        if value.kind == c.INTEGER:
            return int(value.integer)
        if value.kind == c.REAL:
            return float(value.real)
        data: bytes = value.bytes.get()
        if value.kind == c.TEXT:
            return data.decode()
        return data if value.kind == c.BLOB else None


def _milliseconds(seconds: float) -> int:
    if not 0 <= seconds <= 24 * 60 * 60:
        raise InvalidArgument("a time-out has between 0 seconds and a day")
    return int(seconds * 1000)


def _path(given: Union[str, "os.PathLike[str]"]) -> bytes:
    path = os.fsencode(given)
    # The library would open what stands before it.
    if b"\0" in path:
        raise InvalidArgument(f"{os.fsdecode(path)!r} is no path: there is a zero byte in it")
    return path


def _copy(given: Buffer) -> bytes:
    if not isinstance(given, (str, bytes, bytearray, memoryview)):
        raise TypeError(f"text or bytes are wanted, not {type(given).__name__}")
    return given.encode() if isinstance(given, str) else bytes(given)


def _bytes(given: Buffer) -> c.Bytes:
    return c.Bytes.of(_copy(given))


def _value(given: Any, kept: List[bytes]) -> c.Value:
    """A value, and in `kept` what it points to."""
    if given is None:
        return c.Value(c.NULL)
    if isinstance(given, int):
        if not -(1 << 63) <= given < 1 << 63:
            raise InvalidArgument(f"{given} has more than 64 bits")
        return c.Value(c.INTEGER, given)
    if isinstance(given, float):
        return c.Value(c.REAL, 0, given)
    kept.append(_copy(given))
    return c.Value(c.TEXT if isinstance(given, str) else c.BLOB, 0, 0.0, c.Bytes.of(kept[-1]))


def _statement(text: str, parameters: Parameters, kept: List[Any]) -> c.Statement:
    """A statement, and in `kept` what it points to."""
    if isinstance(parameters, (str, bytes)):
        raise TypeError("parameters are a sequence of values, not one of them")
    values = [_value(parameter, kept) for parameter in parameters]
    array = (c.Value * len(values))(*values)
    sql = text.encode()
    kept += [array, sql]
    return c.Statement(c.Bytes.of(sql), array, len(values))


def _reply(value: Value) -> bytes:
    return value if isinstance(value, bytes) else b""
