"""A part of Django's own tests: those that are about models and the database.

Each line of the output is `pass NAME` or `fail NAME: why`; what Django skips is not told.
"""

import os
import subprocess
import sys

os.environ["SERVER_PORT"] = sys.argv[1]
os.environ["SERVER_SUITE"] = "1"
TESTS = os.path.join(sys.argv[2], "tests")
MODULES = ["basic", "lookup", "aggregation", "transactions", "get_or_create", "bulk_create", "delete", "update",
           "many_to_many", "many_to_one", "one_to_one", "or_lookups", "ordering", "expressions_case", "null_queries",
           "m2m_through", "force_insert_update", "custom_pk"]
# Each module by itself: one whose tables cannot be made stops no other.
if len(sys.argv) == 3:
    for module in MODULES:
        subprocess.run([sys.executable, __file__, *sys.argv[1:], module])
    sys.exit()
sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)), TESTS]
os.chdir(TESTS)

import unittest  # noqa: E402

from django.test import runner  # noqa: E402


class Result(unittest.TextTestResult):
    """A line for each test."""

    def tell(self, test, word, why=""):
        self.bad = getattr(self, "bad", set())
        name = test.id() if word == "pass" else getattr(test, "test_case", test).id()
        if name not in self.bad:
            print(f"{word} {name}{why}", file=sys.__stdout__, flush=True)
        if word == "fail":
            self.bad.add(name)

    def addSuccess(self, test):
        super().addSuccess(test)
        self.tell(test, "pass")

    def failed(self, test, error):
        why = f": {error[0].__name__} {error[1]}".replace("\n", " ")[:300]
        self.tell(test, "fail", why)

    def addError(self, test, error):
        super().addError(test, error)
        self.failed(test, error)

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.failed(test, error)

    def addSubTest(self, test, subtest, error):
        super().addSubTest(test, subtest, error)
        if error is not None:
            self.failed(test, error)


runner.DiscoverRunner.get_resultclass = lambda self: Result
sys.argv = ["runtests.py", "--settings=settings", "--parallel=1", "--keepdb", "--noinput", "--verbosity=0", sys.argv[3]]
with open("runtests.py") as file:
    exec(compile(file.read(), "runtests.py", "exec"), {"__name__": "__main__", "__file__": f"{TESTS}/runtests.py"})
