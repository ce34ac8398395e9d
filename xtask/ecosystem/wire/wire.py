"""What libpq does beside statements: too many connections, and Ctrl-C. By psql on a terminal, and by psycopg.

Each line of the output is `pass NAME` or `fail NAME: why`.
"""

import os
import pty
import select
import subprocess
import sys
import threading
import time

import psycopg

PORT = sys.argv[1]
TO = f"host=127.0.0.1 port={PORT} user=postgres dbname=postgres"
# More rows than anybody waits for, of a query that costs little for each.
LONG = ("with recursive n(i) as (select 1 union all select i + 1 from n where i < 2000000000)"
        " select count(*) from n")
# As the gateway's documentation says.
CONNECTIONS_MAX = 256
# How long to wait before a statement is cancelled. Replicas end a long one by a bound of their own, and how soon that
# is the machine decides; so it is tried sooner, until cancelling comes first.
SOON = [0.5, 0.25, 0.12, 0.06, 0.03]
CANCELLED = "canceling statement due to user request"


def answers(connection, sql="select 1"):
    """The first value. A replica that is asked something long ends that by its own bounds, and is busy until then."""
    for _ in range(3):
        try:
            return connection.execute(sql).fetchone()[0]
        except psycopg.OperationalError as error:
            if error.sqlstate != "08006":
                raise
    raise AssertionError("the replicas stay busy")


def cancelled(connection, begin=()):
    """Begins a long statement and cancels it, behind these statements."""
    for delay in SOON:
        for sql in begin:
            connection.execute(sql)
        timer = threading.Timer(delay, connection.cancel)
        timer.start()
        start = time.monotonic()
        try:
            connection.execute(LONG)
            raise AssertionError("it came to its end")
        except psycopg.Error as error:
            assert time.monotonic() - start < 10, "it took too long"
            assert error.sqlstate == "57014", error
            if CANCELLED in str(error):
                return
        # What comes late would cancel something else.
        timer.join()
        time.sleep(0.2)
        connection.rollback()
    raise AssertionError("it always ended before")


def psycopg_cancels():
    with psycopg.connect(TO, autocommit=True) as connection:
        cancelled(connection)
        assert answers(connection) == 1


def cancelling_fails_the_transaction():
    with psycopg.connect(TO) as connection:
        cancelled(connection, ["select 1"])
        try:
            connection.execute("select 1")
            raise AssertionError("the transaction goes on")
        except psycopg.errors.InFailedSqlTransaction:
            connection.rollback()
        assert connection.execute("select 1").fetchone() == (1,)


def savepoints_survive_cancelling():
    with psycopg.connect(TO) as connection:
        cancelled(connection, ["select 1", "savepoint a"])
        connection.execute("rollback to a")
        assert connection.execute("select 2").fetchone() == (2,)


def cancelling_nothing_does_nothing():
    with psycopg.connect(TO, autocommit=True) as connection:
        connection.cancel()
        time.sleep(0.2)
        assert connection.execute("select 1").fetchone() == (1,)


def psql_ctrl_c():
    """Somebody at a terminal."""
    child, terminal = pty.fork()
    if child == 0:
        os.execvp("psql", ["psql", "-X", "-P", "pager=off", "-v", "VERBOSITY=verbose", TO])
    said = line = b""

    def wait_for(what, seconds=20):
        nonlocal said, line
        end = time.monotonic() + seconds
        while what not in said:
            left = end - time.monotonic()
            assert left > 0, f"no {what!r} in {said[-300:]!r}"
            if select.select([terminal], [], [], left)[0]:
                said += os.read(terminal, 65536)
        line, said = said[:said.index(what)], said[said.index(what) + len(what):]

    wait_for(b"=")
    for delay in SOON:
        os.write(terminal, (LONG + ";\n").encode())
        # The terminal repeats what is typed.
        wait_for(b"from n;\r\n")
        time.sleep(delay)
        os.write(terminal, b"\x03")
        wait_for(b"57014: ")
        wait_for(b"\n")
        if CANCELLED.encode() in line:
            break
        # Without a statement it gives a new line.
        wait_for(b"^C")
    os.write(terminal, b"select 6 * 7;\n")
    wait_for(b"42\r\n", 60)
    # Closing its terminal ends it.
    os.close(terminal)
    os.waitpid(child, 0)


def one_too_many_is_told():
    # A gateway that tells of a bound of its own; a server says what its is.
    bound = CONNECTIONS_MAX
    with psycopg.connect(TO) as connection:
        if "Bezant" not in connection.execute("select version()").fetchone()[0]:
            bound = int(connection.execute("show max_connections").fetchone()[0])
    time.sleep(0.5)
    connections = []
    try:
        for _ in range(bound + 1):
            connections.append(psycopg.connect(TO))
        raise AssertionError(f"{len(connections)} connections were let in")
    except psycopg.OperationalError as error:
        assert "too many clients already" in str(error), str(error)
        assert len(connections) >= bound - 3, len(connections)
        told = subprocess.run(["psql", "-X", TO, "-c", "select 1"], capture_output=True, text=True)
        assert "FATAL:  sorry, too many clients already" in told.stderr, told.stderr
    finally:
        for connection in connections:
            connection.close()
    time.sleep(0.5)
    psycopg.connect(TO).close()


CASES = [psycopg_cancels, cancelling_fails_the_transaction, savepoints_survive_cancelling,
         cancelling_nothing_does_nothing, psql_ctrl_c, one_too_many_is_told]

for case in CASES:
    try:
        case()
        print(f"pass {case.__name__}", flush=True)
    except Exception as error:
        print(f"fail {case.__name__}: {type(error).__name__} {error}".replace("\n", " "), flush=True)
