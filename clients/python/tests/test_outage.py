"""The client against a cluster of which so many are down that nobody can be believed: `BEZANT_CLUSTER` is its file."""

import os
import unittest

import bezant

TIMEOUT = 1.0


class Outage(unittest.TestCase):
    def test_a_read_is_unanswered_and_a_write_unknown(self) -> None:
        with bezant.Client(os.environ["BEZANT_CLUSTER"], timeout=TIMEOUT) as client:
            with self.assertRaises(bezant.Unanswered):
                client.get("key")
            with self.assertRaises(bezant.Unanswered):
                client.sql("select 1")
            with self.assertRaises(bezant.DeadlinePassed) as raised:
                client.set("key", "value")
            self.assertIsInstance(raised.exception, bezant.OutcomeUnknown)
            self.assertIsInstance(raised.exception, TimeoutError)
            self.assertIn("replica", str(raised.exception))


if __name__ == "__main__":
    unittest.main()
