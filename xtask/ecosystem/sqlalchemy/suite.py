"""SQLAlchemy's own suite for dialects, as it comes with the package: `sqlalchemy.testing.suite`."""

import os
import re
import sys

import pytest

PORT = sys.argv[1]
HERE = os.path.dirname(os.path.abspath(__file__))


class Report:
    """A line for each test. What a dialect says that it cannot do is skipped, and not reported."""

    def pytest_runtest_logreport(self, report):
        # The server's version is part of the names.
        name = re.sub(r"_postgresql\+psycopg_[0-9_]+", "", report.nodeid.split("::", 1)[1]).replace(": ", ":")
        if report.failed:
            # The first line of an error says what; the last ones, where to read more.
            lines = [line for line in str(report.longrepr).splitlines() if line.startswith("E  ")] or ["E ?"]
            print(f"fail {name}: {lines[0][1:].strip()}", flush=True)
        elif report.when == "call" and report.passed:
            print(f"pass {name}", flush=True)


os.chdir(HERE)
sys.path.insert(0, HERE)
arguments = ["--dburi", f"postgresql+psycopg://postgres@127.0.0.1:{PORT}/postgres",
             "-p", "no:cacheprovider", "-p", "no:warnings", "-p", "no:terminal", "--maxfail", "100000"]
pytest.main(arguments, plugins=[Report()])
