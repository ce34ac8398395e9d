"""psycopg 3: every type in both formats, batches, savepoints, conflicts, pipelines."""

import datetime
import decimal
import sys
import uuid

import psycopg

ADDRESS = f"host=127.0.0.1 port={sys.argv[1]} user=anybody dbname=bezant"
ROW = (
    1 << 40,
    0.1,
    "naïve ☃",
    b"\0\xff",
    datetime.date(2024, 2, 29),
    datetime.datetime(2024, 2, 29, 12, 30, 0, 5),
    decimal.Decimal("1.25"),
    uuid.UUID(int=5),
    True,
)

with psycopg.connect(ADDRESS) as first, psycopg.connect(ADDRESS, autocommit=True) as second:
    first.execute(
        "create table kinds(id integer primary key, i bigint, f double precision, t text, b bytea, d date,"
        " ts timestamp, n numeric, u uuid, ok bool)"
    )
    for binary, mark in (False, "%t"), (True, "%b"):
        cursor = first.cursor(binary=binary)
        marks = ", ".join([mark] * len(ROW))
        cursor.execute(f"insert into kinds(i, f, t, b, d, ts, n, u, ok) values ({marks}) returning id", ROW)
        (number,) = cursor.fetchone()
        cursor.execute(f"select i, f, t, b, d, ts, n, u, ok from kinds where id = {mark}", (number,))
        row = cursor.fetchone()
        assert row == ROW, (binary, row)
    first.commit()

    cursor = first.cursor()
    cursor.executemany("insert into kinds(i) values (%s)", [(n,) for n in range(50)])
    assert cursor.rowcount == 50, cursor.rowcount
    first.commit()
    assert second.execute("select count(*), sum(i) from kinds where i < 100").fetchone() == (50, 1225)

    for n in range(8):
        found = first.execute("select i from kinds where id = %s", (n + 3,), prepare=True).fetchall()
        assert found == [(n,)], found
    try:
        with first.transaction():
            first.execute("insert into kinds(id) values (1)")
        raise AssertionError("a second row with the same key")
    except psycopg.errors.UniqueViolation:
        pass
    first.rollback()

    # Lists are arrays, in both formats.
    for binary, mark in (False, "%t"), (True, "%b"):
        cursor = first.cursor(binary=binary)
        for column, values in (
            ("i", [3, 4, 7_000]),
            ("f", [0.1]),
            ("t", ["naïve ☃", 'a,"b"', None]),
            ("d", [ROW[4]]),
            ("ts", [ROW[5]]),
            ("n", [decimal.Decimal("1.250")]),
            ("u", [uuid.UUID(int=5)]),
            ("ok", [True]),
        ):
            found = cursor.execute(f"select count(*) from kinds where {column} = any({mark})", (values,)).fetchone()
            assert found == (2,), (column, binary, found)
        assert cursor.execute(f"select count(*) from kinds where i <> all({mark})", ([3, 4],)).fetchone() == (50,)
    first.rollback()

    # Long results come piece by piece, also outside of a transaction.
    for connection in first, second:
        with connection.cursor("piecemeal", withhold=connection.autocommit, scrollable=True) as cursor:
            cursor.itersize = 7
            cursor.execute("select i from kinds where i between %s and 49 order by i", (10,))
            assert [n for (n,) in cursor] == list(range(10, 50))
            cursor.scroll(-2)
            assert cursor.fetchone() == (49,)
    first.rollback()

    # Both read, both write: the second one to commit is told to try again.
    (before,) = first.execute("select i from kinds where id = 3").fetchone()
    first.execute("update kinds set i = %s where id = 3", (before + 10,))
    second.execute("update kinds set i = i + 1 where id = 3")
    try:
        first.commit()
        raise AssertionError("a lost update")
    except psycopg.errors.SerializationFailure:
        pass
    assert second.execute("select i from kinds where id = 3").fetchone() == (before + 1,)

    # A transaction has one time, as long as it takes.
    (start,) = first.execute("select now()").fetchone()
    assert isinstance(start, datetime.datetime), start
    first.execute("create table stamps(id integer primary key, at timestamptz default current_timestamp)")
    assert first.execute("insert into stamps(id) values (1) returning at").fetchone() == (start,)
    first.commit()
    assert second.execute("select at from stamps").fetchone() == (start,)

    with first.pipeline():
        one, two = first.execute("select 1"), first.execute("select 2 as x")
    assert (one.fetchone(), two.fetchone()) == ((1,), (2,))

    second.execute("set bezant.provenance = on")
    notices = []
    second.add_notice_handler(lambda notice: notices.append(notice.message_primary))
    second.execute("select 1")
    assert "vouched for by replicas" in notices[0], notices
    sequence, replicas = (second.execute(f"show bezant.{name}").fetchone()[0] for name in ("sequence", "replicas"))
    assert int(sequence) > 0 and len(replicas.split(",")) >= 2, (sequence, replicas)
print("ok")
