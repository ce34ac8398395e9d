"""Runs statements through one of Python's drivers and says what came of each.

    drive.py DRIVER PORT < STATEMENTS > OUTCOMES

DRIVER is psycopg-text, psycopg-binary, psycopg2 or asyncpg. Both files have a line of JSON for each statement: see
`statements.py` for what comes in. What goes out is `{"rows", "types", "count"}` or `{"error", "message"}`; values are
what the driver makes of them, so that two servers are equal if a program cannot tell them apart.
"""

import asyncio
import datetime
import decimal
import json
import socket
import sys
import threading
import time
import uuid

DRIVER, PORT = sys.argv[1], int(sys.argv[2])
WHERE = {"host": "127.0.0.1", "port": PORT, "user": "postgres"}
# How long a statement may take, in seconds.
ANSWER_MAX = 10


def shown(value):
    """A value and its class, as JSON."""
    if value is None:
        return None
    if isinstance(value, (bytes, memoryview, bytearray)):
        return "bytes " + bytes(value).hex()
    if isinstance(value, (list, tuple)):
        return [shown(part) for part in value]
    if isinstance(value, dict):
        return "dict " + json.dumps(value, sort_keys=True)
    if isinstance(value, float):
        # Zero has no sign in a replicated database.
        value += 0.0
    return f"{type(value).__name__} {value}"


def native(parameter):
    """The value of a parameter that a program would give."""
    kind, text = parameter
    if text is None:
        return None
    convert = {
        "boolean": lambda: text == "true",
        "smallint": lambda: int(text),
        "integer": lambda: int(text),
        "bigint": lambda: int(text),
        "real": lambda: float(text),
        "double precision": lambda: float(text),
        "numeric": lambda: decimal.Decimal(text),
        "bytea": lambda: bytes.fromhex(text[2:]),
        "date": lambda: datetime.date.fromisoformat(text),
        "time": lambda: datetime.time.fromisoformat(text),
        "timestamp": lambda: datetime.datetime.fromisoformat(text),
        "timestamptz": lambda: datetime.datetime.fromisoformat(text),
        "uuid": lambda: uuid.UUID(text),
    }
    return convert.get(kind, lambda: text)()


def failure(sqlstate, message):
    return {"error": sqlstate or "client", "message": message}


def outcome(cursor):
    """What a cursor of Python's database interface has."""
    if cursor.description is None:
        return {"rows": [], "types": [], "count": max(cursor.rowcount, 0)}
    types = [column.type_code for column in cursor.description]
    rows = [shown(row) for row in cursor.fetchall()]
    return {"rows": rows, "types": types, "count": len(rows)}


class Psycopg:
    """psycopg 3, with results as texts or in binary."""

    def __init__(self, binary):
        import psycopg

        self.errors, self.binary = psycopg.Error, binary
        self.connection = psycopg.connect(dbname="postgres", autocommit=True, prepare_threshold=None, **WHERE)
        self.cursor = psycopg.RawCursor(self.connection)

    def run(self, sql, parameters):
        try:
            values = [native(parameter) for parameter in parameters]
            self.cursor.execute(sql, values or None, binary=self.binary)
            return outcome(self.cursor)
        except self.errors as error:
            return failure(error.sqlstate, str(error))


class Psycopg2:
    """psycopg2, which writes parameters into the statement."""

    def __init__(self):
        import psycopg2
        import psycopg2.extras

        psycopg2.extras.register_uuid()
        self.errors = psycopg2.Error
        self.connection = psycopg2.connect(dbname="postgres", **WHERE)
        self.connection.autocommit = True
        self.cursor = self.connection.cursor()

    def run(self, sql, parameters):
        try:
            if parameters:
                sql = sql.replace("%", "%%")
                for number in range(len(parameters), 0, -1):
                    sql = sql.replace(f"${number}", f"%(p{number})s")
                values = {f"p{number}": native(parameter) for number, parameter in enumerate(parameters, 1)}
                self.cursor.execute(sql, values)
            else:
                self.cursor.execute(sql)
            return outcome(self.cursor)
        except self.errors as error:
            return failure(error.pgcode, str(error))


class Asyncpg:
    """asyncpg, which prepares every statement and knows binary only."""

    def __init__(self):
        import asyncpg

        self.errors = (asyncpg.PostgresError, asyncpg.InterfaceError, ValueError, OverflowError)
        self.loop = asyncio.new_event_loop()
        connect = asyncpg.connect(database="postgres", statement_cache_size=0, **WHERE)
        self.connection = self.loop.run_until_complete(connect)

    async def ask(self, sql, parameters):
        prepared = await self.connection.prepare(sql, timeout=ANSWER_MAX)
        types = [attribute.type.oid for attribute in prepared.get_attributes()]
        rows = await prepared.fetch(*[native(parameter) for parameter in parameters], timeout=ANSWER_MAX)
        # "INSERT 0 1", or nothing where there was no command.
        last = (prepared.get_statusmsg() or "").split(" ")[-1]
        count = int(last) if last.isdigit() else 0
        return {"rows": [shown(tuple(row)) for row in rows], "types": types, "count": count}

    def run(self, sql, parameters):
        try:
            return self.loop.run_until_complete(self.ask(sql, parameters))
        except self.errors as error:
            return failure(getattr(error, "sqlstate", None), str(error))


class Watch(threading.Thread):
    """Cuts a connection off whose server does not answer: most drivers would wait for ever."""

    def __init__(self):
        super().__init__(daemon=True)
        self.began, self.connection = None, None
        self.start()

    def run(self):
        while True:
            time.sleep(0.5)
            began, connection = self.began, self.connection
            if began and time.monotonic() - began > ANSWER_MAX and hasattr(connection, "fileno"):
                self.began = None
                socket.socket(fileno=connection.fileno()).shutdown(socket.SHUT_RDWR)


def connect():
    driver = {
        "psycopg-text": lambda: Psycopg(False),
        "psycopg-binary": lambda: Psycopg(True),
        "psycopg2": Psycopg2,
        "asyncpg": Asyncpg,
    }[DRIVER]()
    driver.run("set timezone = 'UTC'", [])
    return driver


def main():
    driver, watch = connect(), Watch()
    for line in sys.stdin:
        statement = json.loads(line)
        watch.connection, watch.began = driver.connection, time.monotonic()
        outcome = driver.run(statement["sql"], statement.get("parameters", []))
        watch.began = None
        if outcome.get("error") == "client" and "error" in driver.run("select 1", []):
            # The connection is gone, which no statement should bring about.
            outcome["error"], driver = "lost", connect()
        print(json.dumps(outcome), flush=True)


main()
