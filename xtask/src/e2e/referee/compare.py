"""Compares what two servers did with the same statements.

    compare.py STATEMENTS OUTCOMES_OF_POSTGRESQL OUTCOMES_OF_THE_GATEWAY REFUSALS SHOWN

prints `EQUAL REFUSED DIFFERENT` and, before that, the first SHOWN differences in full. An outcome is equal if rows,
types and count are, or the SQLSTATE is. It is refused as documented if the gateway's SQLSTATE is one of the file
REFUSALS; what a script does behind a refused write is not compared, since the tables are no longer the same.
"""

import json
import re
import sys
from decimal import Context, Decimal

STATEMENTS, THEIRS, OURS, REFUSALS, SHOWN = sys.argv[1:6]


def lines(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def refusals():
    """What each SQLSTATE that may be refused stands for: `SQLSTATE [PART OF THE STATEMENT] | why`."""
    with open(REFUSALS, encoding="utf-8") as file:
        rules = [line.split("|")[0].strip() for line in file if line.strip() and not line.startswith("#")]
    return [tuple((rule + " ").split(" ", 1)) for rule in rules]


def is_refused(outcome, statement, rules):
    sql = statement["sql"].lower()
    return any(outcome.get("error") == state and part.strip().lower() in sql for state, part in rules)


# What keeps one of several equal values. 1.0 and 1.00 are equal, and nobody says which is kept.
KEEPS_ONE = re.compile(r"\b(union(?! all)|except|intersect|distinct|group by)\b", re.IGNORECASE)

# More digits than any number has.
EXACT = Context(prec=150_000)


def by_value(cell, type):
    """A number without the zeros at its end, if it is one."""
    if cell is None or type not in (1700, "numeric"):
        return cell
    return str(Decimal(cell.split()[-1]).normalize(EXACT) or 0)


def settled(outcome, statement):
    """What is compared of an outcome. Without ORDER BY rows may come as they like."""
    if "error" in outcome:
        return outcome["error"]
    rows = outcome["rows"]
    if KEEPS_ONE.search(statement["sql"]):
        rows = [list(map(by_value, row, outcome["types"])) for row in rows]
    if not statement["ordered"]:
        rows = sorted(rows, key=json.dumps)
    return (rows, outcome["types"], outcome["count"])


def show(statement, theirs, ours):
    cut = lambda outcome: json.dumps(outcome, ensure_ascii=False)[:700]
    print(f"{statement['sql']}")
    if statement.get("parameters"):
        print(f"    with        {statement['parameters']}")
    print(f"    PostgreSQL  {cut(theirs)}")
    print(f"    the gateway {cut(ours)}")


def main():
    rules = refusals()
    equal = refused = different = 0
    skipped, shown = None, set()
    outcomes = zip(lines(STATEMENTS), lines(THEIRS), lines(OURS), strict=True)
    for statement, theirs, ours in outcomes:
        if statement["script"] == skipped:
            refused += 1
        elif settled(theirs, statement) == settled(ours, statement):
            equal += 1
        elif is_refused(ours, statement, rules):
            refused += 1
        else:
            different += 1
            # One of each kind, so that what is shown tells most.
            kind = (statement["kind"], theirs.get("error", "rows"), ours.get("error", "rows"))
            if kind not in shown and len(shown) < int(SHOWN):
                shown.add(kind)
                show(statement, theirs, ours)
        # What changed here and not there makes all that follows another story.
        if statement["changes"] and ("error" in theirs) != ("error" in ours):
            skipped = statement["script"]
    print(f"{equal} {refused} {different}")


main()
