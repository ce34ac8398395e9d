"""Transactions side by side: whatever commits must be what some order of them, one after the other, gives.

    isolation.py PORT_OF_THE_GATEWAY PORT_OF_POSTGRESQL SEED SECONDS

runs the known anomalies and then transactions at random, interleaved, on the gateway, at the serializable level. Then
PostgreSQL executes those that committed one after the other, in every order: one of these must have given each of them
what it was shown, and the tables what is in them. Prints `SERIALIZABLE REFUSED DIFFERENT`: outcomes that are, single
transactions that were refused, and outcomes that no order gives, of which the first are shown in full.
"""

import itertools
import queue
import random
import sys
import threading
import time

import psycopg

OURS, THEIRS, SEED, SECONDS = (int(argument) for argument in sys.argv[1:5])
# How long a statement may wait for another transaction before the next one goes on, in seconds.
BLOCKED = 1.0
ANSWER_MAX = 20
SHOWN = 3

FRESH = [
    "drop table if exists k", "drop table if exists u",
    "create table k(id integer primary key, v integer)", "create table u(id integer primary key, name text unique)",
    "insert into k values (1, 10), (2, 20), (3, 30)", "insert into u values (1, 'a')",
]
FINAL = ["select id, v from k", "select id, name from u"]

# Each transaction is a letter; each step is a letter and a statement. What is not committed in the end is committed.
ANOMALIES = {
    "lost update": """
        a select v from k where id = 1
        b select v from k where id = 1
        a update k set v = 11 where id = 1
        b update k set v = 12 where id = 1
        a commit
        b commit""",
    "lost update, relative": """
        a update k set v = v + 1 where id = 1
        b update k set v = v + 2 where id = 1
        a commit
        b commit""",
    "dirty read": """
        a update k set v = 99 where id = 1
        b select v from k where id = 1
        a rollback
        b insert into k select 9, v from k where id = 1
        b commit""",
    "read skew": """
        a select v from k where id = 1
        b update k set v = v - 5 where id = 1
        b update k set v = v + 5 where id = 2
        b commit
        a select v from k where id = 2
        a insert into k select 9, 1
        a commit""",
    "write skew": """
        a select sum(v) from k where id in (1, 2)
        b select sum(v) from k where id in (1, 2)
        a update k set v = -20 where id = 1
        b update k set v = -20 where id = 2
        a commit
        b commit""",
    "phantom": """
        a select count(*) from k where v > 15
        b select count(*) from k where v > 15
        a insert into k values (4, 40)
        b insert into k values (5, 50)
        a commit
        b commit""",
    "predicate of nothing": """
        a select id from k where v = 77
        b select id from k where v = 88
        a insert into k values (4, 88)
        b insert into k values (5, 77)
        a commit
        b commit""",
    "read only": """
        a select v from k where id = 1
        b update k set v = v + 20 where id = 2
        b commit
        c select id, v from k where id in (1, 2)
        c commit
        a update k set v = v - 11 where id = 1 and (select v from k where id = 2) < 100
        a commit""",
    "unique": """
        a insert into u values (2, 'b')
        b insert into u values (3, 'b')
        a commit
        b commit""",
    "unique that is swallowed": """
        a savepoint s
        a insert into u values (2, 'a')
        a rollback to s
        b delete from u where name = 'a'
        b commit
        a insert into k values (7, (select count(*) from u))
        a commit""",
    "write skew through a swallowed error": """
        a savepoint s
        a insert into u values (1, 'x')
        a rollback to s
        b select v from k where id = 1
        b delete from u where id = 1
        a update k set v = 111 where id = 1
        b commit
        a commit""",
    "on conflict": """
        a insert into u values (5, 'c') on conflict do nothing
        b insert into u values (6, 'c') on conflict do nothing
        a commit
        b commit
        a select id from u where name = 'c'""",
    "delete and read": """
        a select count(*) from k
        b delete from k where id = 3
        b commit
        a select count(*) from k
        a update k set v = 0 where id = 1
        a commit""",
    "update what another deletes": """
        a delete from k where id = 2
        b update k set v = 21 where id = 2
        a commit
        b commit""",
    "upsert of both": """
        a insert into k values (8, 1) on conflict (id) do update set v = k.v + 1
        b insert into k values (8, 1) on conflict (id) do update set v = k.v + 1
        a commit
        b commit""",
}


def connect(port):
    where = {"host": "127.0.0.1", "port": port, "user": "postgres", "dbname": "postgres"}
    return psycopg.connect(autocommit=True, prepare_threshold=None, **where)


def ask(connection, sql):
    """What a statement gave: its rows in some order, how many it changed, or its SQLSTATE."""
    try:
        cursor = connection.execute(sql)
        if sql == "commit":
            # That of a transaction that has failed succeeds, and says ROLLBACK.
            return ("ended", cursor.statusmessage)
        if cursor.description is None:
            return ("changed", max(cursor.rowcount, 0))
        return ("rows", tuple(sorted(cursor.fetchall(), key=repr)))
    except psycopg.Error as error:
        return ("error", error.sqlstate or "lost")


class Client(threading.Thread):
    """A connection that executes what it is told, in order, while others go on."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.connection, self.steps, self.results = connect(port), queue.Queue(), queue.Queue()
        self.waiting = 0
        self.start()

    def run(self):
        while (sql := self.steps.get()) is not None:
            self.results.put((sql, ask(self.connection, sql)))
        self.connection.close()

    def tell(self, sql):
        self.steps.put(sql)
        self.waiting += 1

    def hear(self, limit):
        """The results that come within so many seconds, until none is owed."""
        heard = []
        try:
            while self.waiting:
                heard.append(self.results.get(timeout=limit))
                self.waiting -= 1
        except queue.Empty:
            pass
        return heard


def interleaved(port, steps):
    """What each transaction was shown, whether it committed, and what the tables hold then."""
    names = sorted({name for name, _ in steps})
    clients = {name: Client(port) for name in names}
    shown, over = {name: [] for name in names}, {}

    def note(name, heard):
        for sql, result in heard:
            if name not in over:
                shown[name].append((sql, result))
                if sql in ("commit", "rollback"):
                    over[name] = result == ("ended", "COMMIT")

    for name in names:
        clients[name].tell("begin isolation level serializable")
        clients[name].hear(ANSWER_MAX)
    for name, sql in [*steps, *((name, "commit") for name in names)]:
        clients[name].tell(sql)
        note(name, clients[name].hear(BLOCKED))
    for name in names:
        note(name, clients[name].hear(ANSWER_MAX))
        clients[name].steps.put(None)
    final = state(port)
    return {name: shown[name] for name in names if over.get(name)}, names, final


def is_refusal(result):
    """An error that says nothing about the tables, so that there is nothing to explain."""
    return result[0] == "error" and result[1] in ("40001", "40P01", "25P02", "0A000", "lost")


def state(port):
    with connect(port) as connection:
        return [ask(connection, sql) for sql in FINAL]


def fresh(port):
    with connect(port) as connection:
        for sql in FRESH:
            connection.execute(sql)


def explained(committed, final):
    """Whether an order of the transactions gives all that was shown."""
    for order in itertools.permutations(committed):
        fresh(THEIRS)
        if all(alone(committed[name]) for name in order) and state(THEIRS) == final:
            return True
    return False


def alone(shown):
    """Whether a transaction is shown the same when nobody else is there."""
    with connect(THEIRS) as connection:
        connection.execute("begin isolation level serializable")
        for sql, result in shown:
            if not is_refusal(result) and ask(connection, sql) != result:
                connection.execute("rollback")
                return False
    return True


def parsed(text):
    return [tuple(line.strip().split(" ", 1)) for line in text.strip().splitlines()]


def at_random(chance):
    """Two or three transactions of a few statements each, in any order."""
    statements = [
        "select v from k where id = {a}", "select sum(v) from k", "select id from k where v > {b}0",
        "update k set v = v + {b} where id = {a}", "update k set v = {b} where id = {a}",
        "delete from k where id = {a}", "insert into k values ({c}, {b})",
        "insert into k values ({c}, {b}) on conflict (id) do update set v = k.v + 1",
        "update k set v = (select max(v) from k) + 1 where id = {a}", "insert into u values ({c}, '{b}')",
        "select count(*) from u", "update u set name = '{b}' where id = 1",
        "insert into k select {c}, count(*) from u",
    ]
    number = lambda first, last: chance.randint(first, last)
    some = lambda: chance.choice(statements).format(a=number(1, 4), b=number(1, 4), c=number(4, 6))
    steps = {name: [] for name in "abc"[: chance.randint(2, 3)]}
    for own in steps.values():
        for _ in range(chance.randint(1, 4)):
            if chance.random() < 0.3:
                own += ["savepoint s", some(), "rollback to s" if chance.random() < 0.6 else "release s"]
            else:
                own.append(some())
        own.append("commit" if chance.random() < 0.9 else "rollback")
    mixed = []
    while any(steps.values()):
        name = chance.choice([name for name, own in steps.items() if own])
        mixed.append((name, steps[name].pop(0)))
    return mixed


def main():
    chance, end = random.Random(SEED), time.monotonic() + SECONDS
    known = ((name, parsed(text)) for name, text in ANOMALIES.items())
    stories = itertools.chain(known, (("at random", at_random(chance)) for _ in itertools.count()))
    serializable = refused = different = 0
    for number, (kind, steps) in enumerate(stories):
        if number >= len(ANOMALIES) and time.monotonic() > end:
            break
        fresh(OURS)
        committed, names, final = interleaved(OURS, steps)
        refused += len(names) - len(committed)
        if explained(committed, final):
            serializable += 1
            continue
        different += 1
        if different <= SHOWN:
            print(f"{kind}: no order of what committed gives this")
            print("\n".join(f"    {name} {sql}" for name, sql in steps))
            for name, told in committed.items():
                print("\n".join(f"    {name} was shown {sql}: {result}" for sql, result in told))
            print(f"    in the end {final}")
    print(f"{serializable} {refused} {different}")


main()
