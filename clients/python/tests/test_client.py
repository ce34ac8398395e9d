"""The client against a cluster that runs: `BEZANT_CLUSTER` is its file. Tests leave no keys and no tables behind, so
that they can be run again while a replica lies or is down."""

import math
import os
import threading
import unittest
from typing import List

import bezant
from bezant import Client

CLUSTER = os.environ["BEZANT_CLUSTER"]


class WithClient(unittest.TestCase):
    def setUp(self) -> None:
        self.client = Client(CLUSTER, timeout=20)
        self.addCleanup(self.client.close)


class Keys(WithClient):
    def test_a_value_is_set_read_and_deleted(self) -> None:
        self.assertIsNone(self.client.get("key"))
        self.client.set("key", b"\0\xff")
        self.assertEqual(self.client.get(b"key"), b"\0\xff")
        self.client.set(bytearray(b"key"), "")
        self.assertEqual(self.client.get("key"), b"")
        self.assertTrue(self.client.delete("key"))
        self.assertFalse(self.client.delete("key"))
        self.assertIsNone(self.client.get("key"))

    def test_compare_and_set_looks_first(self) -> None:
        self.assertTrue(self.client.compare_and_set("cas", None, "1"))
        self.assertFalse(self.client.compare_and_set("cas", None, "2"))
        self.assertFalse(self.client.compare_and_set("cas", "0", "2"))
        self.assertTrue(self.client.compare_and_set("cas", "1", "2"))
        self.assertEqual(self.client.get("cas"), b"2")
        self.assertTrue(self.client.compare_and_set("cas", "2", None))
        self.assertIsNone(self.client.get("cas"))

    def test_the_longest_value_comes_back_and_a_longer_one_is_not_sent(self) -> None:
        longest = os.urandom(512 << 10)
        self.client.set("long", longest)
        self.assertEqual(self.client.get("long"), longest)
        self.assertTrue(self.client.delete("long"))
        with self.assertRaises(bezant.InvalidArgument):
            self.client.set("long", longest + b"1")
        with self.assertRaises(ValueError):
            self.client.get(b"k" * 5000)

    def test_threads_share_a_client(self) -> None:
        wrong: List[str] = []

        def work(number: int) -> None:
            for step in range(5):
                key = f"thread {number}"
                self.client.set(key, str(step))
                if self.client.get(key) != str(step).encode():
                    wrong.append(key)
            self.client.delete(key)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])


class Sql(WithClient):
    def setUp(self) -> None:
        super().setUp()
        self.client.sql("drop table if exists python")
        self.client.sql("create table python(n integer primary key, v)")
        self.addCleanup(self.client.sql, "drop table python")

    def test_values_come_back_with_their_types(self) -> None:
        values = [None, 0, -(1 << 63), (1 << 63) - 1, 0.1, -math.inf, "naïve ☃ \0 zero", "", b"\0\xff", b"", True]
        made = self.client.sql_batch([("insert into python(v) values (?1)", [value]) for value in values])
        self.assertEqual([rows.last_insert_rowid for rows in made], list(range(1, len(values) + 1)))
        rows = self.client.sql("select v from python order by n")
        self.assertEqual([value for value, in rows], values)
        self.assertEqual([type(value) for value, in rows][:-1], [type(value) for value in values][:-1])
        self.assertEqual(rows.columns, ("v",))
        self.assertEqual(len(rows), len(values))
        self.assertEqual(rows[1], (0,))
        self.assertIs(self.client.sql("select ?1", [math.nan])[0][0], None)

    def test_a_batch_is_all_or_nothing(self) -> None:
        with self.assertRaises(bezant.SqlError) as raised:
            self.client.sql_batch(
                [("insert into python values (1, 'a')", ()), ("insert into python values (1, 'b')", ())]
            )
        self.assertEqual((raised.exception.sqlstate, raised.exception.statement), ("23505", 1))
        self.assertEqual(list(self.client.sql("select * from python")), [])
        self.assertEqual(self.client.sql("insert into python values (1, 'c')").changes, 1)

    def test_what_looks_like_a_read_and_writes_is_ordered(self) -> None:
        rows = self.client.sql("with new(n) as (values (7)) insert into python select n, 'x' from new returning n")
        self.assertEqual(list(rows), [(7,)])
        self.assertEqual(len(self.client.sql("with all_(n) as (select n from python) select * from all_")), 1)

    def test_errors_say_what_is_wrong(self) -> None:
        with self.assertRaises(bezant.SqlError) as raised:
            self.client.sql("selekt 1")
        self.assertEqual(raised.exception.sqlstate, "42601")
        self.assertIn("selekt", str(raised.exception))
        for parameters in ([1 << 63], ["\udcff"]):
            with self.assertRaises(ValueError):
                self.client.sql("select ?1", parameters)
        with self.assertRaises(TypeError):
            self.client.sql("select ?1", [object()])  # type: ignore[list-item]
        with self.assertRaises(TypeError):
            self.client.sql("select ?1", "one")


class OwnService(WithClient):
    """The key-value service stands for one of somebody's own: its operation 4 counts the keys."""

    COUNT = b"\4"

    def test_a_query_answers_like_the_ordered_operation(self) -> None:
        self.client.set("counted", "")
        self.assertEqual(self.client.query(self.COUNT), self.client.execute(self.COUNT))
        self.client.delete("counted")

    def test_a_query_that_writes_is_refused(self) -> None:
        self.client.set("kept", "")
        # Operation 7 deletes a list of keys, here one of four bytes.
        delete = b"\7" + (1).to_bytes(4, "little") + (4).to_bytes(4, "little") + b"kept"
        with self.assertRaises(bezant.NotReadOnly):
            self.client.query(delete)
        self.assertEqual(self.client.get("kept"), b"")
        self.assertNotEqual(self.client.execute(delete), b"")
        self.assertIsNone(self.client.get("kept"))


class Ends(unittest.TestCase):
    def test_a_closed_client_says_so(self) -> None:
        with Client(CLUSTER) as client:
            client.get("key")
        for _ in range(2):
            client.close()
            with self.assertRaises(bezant.ClientClosed):
                client.get("key")

    def test_a_file_that_is_not_there_is_named(self) -> None:
        with self.assertRaisesRegex(bezant.OpenError, "no/cluster.toml"):
            Client("no/cluster.toml")
        with self.assertRaisesRegex(bezant.OpenError, "other.key"):
            Client(CLUSTER, key="other.key")

    def test_a_zero_byte_does_not_end_a_path(self) -> None:
        with self.assertRaisesRegex(bezant.InvalidArgument, "zero byte"):
            Client(CLUSTER + "\0other")
        with self.assertRaisesRegex(bezant.InvalidArgument, "zero byte"):
            Client(CLUSTER, key="client.key\0other")

    def test_a_forked_process_is_told_to_open_its_own(self) -> None:
        with Client(CLUSTER) as client:
            client.get("key")
            child = os.fork()
            if not child:
                try:
                    client.get("key")
                except bezant.InvalidArgument:
                    client.close()
                    os._exit(7)
                os._exit(1)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 7)
            client.get("key")

    def test_timeouts_have_bounds(self) -> None:
        for timeout in (-1, 1e9, math.nan):
            with self.assertRaises(bezant.InvalidArgument):
                Client(CLUSTER, timeout=timeout)


if __name__ == "__main__":
    unittest.main()
