"""What PostgreSQL says about thousands of arguments of the functions that replicas have for its types.

    functions.py PORT COUNT SEED [EACH] > FILE

asks the PostgreSQL at PORT and prints a line for each call: the call as `bezant sql` takes it, a tab, and the answer,
`NULL`, `=TEXT`, or `!SQLSTATE MESSAGE`. The test program `functions` of crates/sql compares them with the replicas'
own. COUNT calls are drawn of each family; the edges come on top of that. With EACH, only so many short lines are
printed of each function and outcome: `40 1 4` makes crates/sql/tests/functions.tsv.
"""

import collections
import random
import re
import sys

import psycopg

PORT, COUNT, SEED, EACH = (int(argument) for argument in (sys.argv[1:] + ["0"])[:4])
LINE_MAX = 110
chance = random.Random(SEED)
calls = []


def text(value):
    return "null" if value is None else "'" + value.replace("'", "''") + "'"


def call(ours, theirs):
    """Both sides give a text, an integer or NULL."""
    calls.append((ours, theirs))


def some(values, count=None):
    """All of a short list, or some of a long one."""
    values = list(values)
    count = COUNT if count is None else count
    return values if len(values) <= count else chance.sample(values, count)


# ---- Integers and truth values ----

WHOLE = {2: 2**15, 4: 2**31, 8: 2**63}
NAMES = {2: "smallint", 4: "integer", 8: "bigint"}


def edges(width):
    top = WHOLE[width]
    return [0, 1, -1, 2, -2, 3, 7, 10, -10, 181, 182, 46340, 46341, top - 1, -top, top - 2, 1 - top, top // 2]


def spellings():
    bases = ["0", "1", "-1", "+7", "007", "32767", "32768", "-32768", "-32769", "2147483647", "2147483648"]
    bases += ["-2147483648", "-2147483649", "9223372036854775807", "9223372036854775808", "-9223372036854775808"]
    bases += [
        "-9223372036854775809", "99999999999999999999999999x", "", " ", "-", "+", "--1", "1 2", "1.0", "1e3", "0x10",
    ]
    bases += [" 12 ", "\t12\n", "12\v", "1_000", "\u0661", "abc", "12a", "+-1", "  -  5", "5-", "\u00a05"]
    return bases


def integers():
    for spelling in spellings():
        for width in WHOLE:
            call(f"pg_in_int{width}({text(spelling)})", f"({text(spelling)}::int{width})::text")
    words = [
        "t", "tr", "tru", "true", "truex", "TRUE", " true ", "f", "fal", "false", "y", "ye", "yes", "n", "no", "on",
    ]
    words += ["o", "of", "off", "offf", "1", "0", "2", "", " ", "ja", "On", "oN", "\ty", "00", "nope"]
    for word in words:
        call(f"pg_in_bool({text(word)})", f"({text(word)}::boolean)::int")
        call(f"pg_out_bool(pg_in_bool({text(word)}))", f"({text(word)}::boolean)::text")
    operators = {"add": "+", "sub": "-", "mul": "*", "div": "/", "mod": "%"}
    pairs = []
    for width in WHOLE:
        numbers = [n for n in edges(width) if -WHOLE[width] <= n < WHOLE[width]]
        pairs += [(width, a, b, name) for a in numbers for b in numbers for name in operators]
    for width, a, b, name in some(pairs, 4 * COUNT):
        kind = NAMES[width]
        theirs = f"(({text(str(a))}::{kind}) {operators[name]} ({text(str(b))}::{kind}))::text"
        call(
            f"pg_int_{name}({a}, {b}, {8 * width})".replace("-9223372036854775808", "(-9223372036854775807 - 1)"),
            theirs,
        )
    for width in WHOLE:
        for number in edges(width):
            if -WHOLE[width] <= number < WHOLE[width]:
                shown = str(number) if number > -(2**63) else "(-9223372036854775807 - 1)"
                call(f"pg_int_neg({shown}, {8 * width})", f"(-({text(str(number))}::{NAMES[width]}))::text")
                call(f"pg_int_abs({shown}, {8 * width})", f"abs({text(str(number))}::{NAMES[width]})::text")
                for to in WHOLE:
                    theirs = f"(({text(str(number))}::{NAMES[width]})::{NAMES[to]})::text"
                    call(f"pg_to_int{to}({shown})", theirs)


# ---- Floating-point numbers ----

FLOATS = [
    "0", "-0", "1", "-1", "0.1", "1.5", "2.5", "-2.5", "3.5", "1e15", "1e14", "123456789012345", "1234567890123456",
]
FLOATS += ["1e-4", "1e-5", "0.00012345", "1e22", "1e23", "9007199254740993", "5e-324", "1.7976931348623157e308"]
FLOATS += ["2.2250738585072014e-308", "1e300", "1e-300", "Infinity", "-Infinity", "1e6", "1e5", "999999", "1234567"]
FLOATS += ["16777217", "3.4028235e38", "1e-45", "1.1754944e-38", "0.3", "2147483647.5", "-2147483648.5", "32767.5"]
FLOATS += ["9.5367431640625e-07", "8.5e22", "7e22", "144115188075855870", "4.35", "0.5", "-0.5", "9223372036854775807"]
FLOAT_WORDS = ["", " ", "abc", "1e400", "-1e400", "1e-400", "1e39", "1e-50", "inf", "+inf", "-INF", "infinityx", "nan"]
FLOAT_WORDS += [" 1 ", "1 2", ".5", "5.", ".", "e5", "1e", "1e+", "1e5.5", "+.5e-3", "--1", "1_0", "1d", "0x1p3"]


def some_float():
    kind = chance.randrange(4)
    if kind == 0:
        return chance.choice(FLOATS)
    if kind == 1:
        return repr(chance.uniform(-1000, 1000))
    if kind == 2:
        return f"{chance.randrange(10**17)}e{chance.randrange(-300, 280)}"
    return repr(float(chance.randrange(2**53, 2**70)))


def floats():
    for word in FLOATS + FLOAT_WORDS + [some_float() for _ in range(COUNT)]:
        for width in (4, 8):
            call(
                f"pg_out_float{width}(pg_in_float{width}({text(word)}))",
                f"({text(word)}::float{width} + 0::float{width})::text",
            )
            call(
                f"pg_float{width}_to_numeric(pg_in_float{width}({text(word)}))",
                f"({text(word)}::float{width})::numeric::text",
            )
            for to in WHOLE:
                call(f"pg_to_int{to}(pg_in_float{width}({text(word)}))", f"({text(word)}::float{width})::int{to}::text")
        call(
            f"pg_out_float4(pg_to_float4(pg_in_float8({text(word)})))",
            f"({text(word)}::float8::float4 + 0::float4)::text",
        )
    operators = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
    for _ in range(2 * COUNT):
        a, b, name = some_float(), some_float(), chance.choice(list(operators))
        for width, ours in ((4, f"pg_float4_{name}"), (8, f"pg_float_{name}")):
            arguments = f"pg_in_float{width}({text(a)}), pg_in_float{width}({text(b)})"
            theirs = f"({text(a)}::float{width} {operators[name]} {text(b)}::float{width} + 0::float{width})::text"
            call(f"pg_out_float{width}({ours}({arguments}))", theirs)
    for name in ("round", "trunc", "ceil", "floor", "abs", "sqrt"):
        for word in FLOATS:
            call(
                f"pg_out_float8(pg_float_{name}(pg_in_float8({text(word)})))",
                f"({name}({text(word)}::float8) + 0)::text",
            )


# ---- Exact decimals ----

NUMERIC_WORDS = [
    "", " ", ".", "e5", "1e", "1e+", "--1", "1 2", "abc", "1.2.3", "+", "-", "0x10", "1_0", " 1.50 ", "1e5 ",
]
NUMERIC_WORDS += [
    "1e400000", "1e-400000", "1e99999999999", "NaN", "inf", "-Infinity", "1e 5", "00.10", "-0", "-0.00", ".5",
]
NUMERIC_WORDS += ["5.", "-.5e3", "1e-3", "1.25e1", "+7", "0e10", "0.0e-5", "1E5", "1e+05"]
NUMERICS = [
    "0", "0.00", "1", "-1", "0.5", "-0.5", "1.5", "2.5", "0.05", "10", "100", "9999", "10000", "99999999", "0.0001",
]
NUMERICS += [
    "0.00001", "123456789.123456789", "99999999999999999999.999", "-0.1", "3", "7", "1.10", "12345678901234567890",
]
NUMERICS += ["32767.4", "32767.5", "2147483647.49", "-2147483648.5", "9223372036854775807.4", "9223372036854775807.5"]
NUMERICS += ["0." + "0" * 60 + "1", "1" + "0" * 60, "9" * 40 + "." + "9" * 40, "1e-300", "1.5e-1200", "3e200"]


def some_numeric():
    kind = chance.randrange(5)
    if kind == 0:
        return chance.choice(NUMERICS)
    sign = chance.choice(["", "", "-"])
    digits = lambda most: str(chance.randrange(10 ** chance.randint(1, most)))
    if kind == 1:
        return sign + digits(9)
    if kind == 2:
        return f"{sign}{digits(6)}.{digits(6)}"
    if kind == 3:
        return f"{sign}{digits(60)}.{digits(60)}"
    return f"{sign}0.{'0' * chance.randrange(30)}{digits(20)}"


def numeric(word):
    return f"pg_in_numeric({text(word)})"


def numerics():
    words = NUMERIC_WORDS + NUMERICS + [some_numeric() for _ in range(COUNT)]
    for word in words:
        theirs = f"{text(word)}::numeric"
        call(numeric(word), f"({theirs})::text")
        for name in ("ceil", "floor", "abs", "sign", "round", "trunc"):
            call(f"pg_numeric_{name}({numeric(word)})", f"{name}({theirs})::text")
        call(f"pg_numeric_neg({numeric(word)})", f"(-({theirs}))::text")
        for to in WHOLE:
            call(f"pg_numeric_to_int{to}({numeric(word)})", f"({theirs})::int{to}::text")
        for to in (4, 8):
            call(f"pg_out_float{to}(pg_numeric_to_float{to}({numeric(word)}))", f"({theirs})::float{to}::text")
        for places in (0, 1, 2, 5, -1, -3):
            call(f"pg_numeric_round({numeric(word)}, {places})", f"round({theirs}, {places})::text")
            call(f"pg_numeric_trunc({numeric(word)}, {places})", f"trunc({theirs}, {places})::text")
        for precision, scale in ((5, 2), (3, 0), (10, 10), (2, -2), (1000, 500), (3, 5)):
            call(
                f"pg_in_numeric({text(word)}, {precision}, {scale})",
                f"({text(word)}::numeric({precision},{scale}))::text",
            )
            call(
                f"pg_numeric_fit({numeric(word)}, {precision}, {scale})",
                f"(({theirs})::numeric({precision},{scale}))::text",
            )
    operators = {"add": "+", "sub": "-", "mul": "*", "div": "/", "mod": "%"}
    pairs = [(a, b) for a in NUMERICS for b in NUMERICS] + [(some_numeric(), some_numeric()) for _ in range(2 * COUNT)]
    for a, b in some(pairs, 3 * COUNT):
        for name, operator in operators.items():
            ours = f"pg_numeric_{name}({numeric(a)}, {numeric(b)})"
            call(ours, f"({text(a)}::numeric {operator} {text(b)}::numeric)::text")
        call(f"pg_numeric_cmp({numeric(a)}, {numeric(b)})", f"sign({text(a)}::numeric - {text(b)}::numeric)::int")
        ours = f"{numeric(a)} collate pg_numeric < {numeric(b)}"
        call(ours, f"({text(a)}::numeric < {text(b)}::numeric)::int")
    for _ in range(COUNT // 2):
        rows = [some_numeric() for _ in range(chance.randint(1, 6))]
        ours = ", ".join(f"({numeric(row)})" for row in rows)
        theirs = ", ".join(f"({text(row)}::numeric)" for row in rows)
        for name in ("sum", "avg"):
            call(
                f"(select pg_numeric_{name}(column1) from (values {ours}))",
                f"(select {name}(x)::text from (values {theirs}) v(x))",
            )
        whole = [chance.choice(edges(8)[:16]) for _ in range(chance.randint(1, 5))]
        rows = ", ".join(f"({number})" for number in whole)
        theirs = ", ".join(f"('{number}'::bigint)" for number in whole)
        call(
            f"(select pg_bigint_sum(column1) from (values {rows}))",
            f"(select sum(x)::text from (values {theirs}) v(x))",
        )
        call(f"(select pg_int_avg(column1) from (values {rows}))", f"(select avg(x)::text from (values {theirs}) v(x))")
        small = [chance.choice(FLOATS[:25]) for _ in range(chance.randint(1, 5))]
        for width, suffix in ((8, ""), (4, "4")):
            rows = ", ".join(f"(pg_in_float{width}({text(number)}))" for number in small)
            theirs = ", ".join(f"({text(number)}::float{width})" for number in small)
            out = {"sum": width, "avg": 8}
            for name in ("sum", "avg"):
                ours = f"(select pg_out_float{out[name]}(pg_float{suffix}_{name}(column1)) from (values {rows}))"
                call(ours, f"(select ({name}(x) + 0::float{out[name]})::text from (values {theirs}) v(x))")


# ---- Texts and bytes ----

TEXTS = [
    "", "a", "abc", "aXbXc", "  ", "abc   ", "\u00e4\u00f6\u00fc\u00df", "\U0001f600x", "a%b", "a_b", "a\\b", "%",
    "_", "\\", "ab\nc", "\u00c4B",
]
PATTERNS = [
    "", "%", "%%", "_", "__", "a%", "%c", "%b%", "a_c", "\\%", "a\\%b", "a\\_b", "%\\", "\\", "a\\", "_%_", "%a%b%c%",
]
PATTERNS += ["\u00e4%", "%\u00df", "___", "____", "%_\u00fc%", "x%y", "A%", "#%", "a#_b", "##", "%X%X%"]


def texts():
    pairs = [
        (value, pattern, escape) for value in TEXTS for pattern in PATTERNS for escape in (None, "", "#", "##", "\\")
    ]
    letters = "ab%_\\\u00e4"
    word = lambda most: "".join(chance.choice(letters) for _ in range(chance.randrange(most)))
    pairs += [(word(8), word(8), None) for _ in range(4 * COUNT)]
    for value, pattern, escape in some(pairs, 8 * COUNT):
        more, clause = ("", "") if escape is None else (f", {text(escape)}", f" escape {text(escape)}")
        for name in ("like", "ilike"):
            ours = f"pg_{name}({text(value)}, {text(pattern)}{more})"
            call(ours, f"({text(value)} {name} {text(pattern)}{clause})::int")
    for value in TEXTS:
        for length in (1, 2, 3, 5):
            call(f"pg_varchar_cut({text(value)}, {length})", f"({text(value)}::varchar({length}))::text")
            call(f"pg_char_cut({text(value)}, {length})", f"({text(value)}::char({length}))::text")
        for name in ("lower", "upper", "octet_length"):
            call(f"pg_{name}({text(value)})", f"{name}({text(value)})::text")
        for count in (0, 1, 2, 5, -1, -2, -9, 2147483647, -2147483647):
            call(f"pg_left({text(value)}, {count})", f"left({text(value)}, {count})")
            call(f"pg_right({text(value)}, {count})", f"right({text(value)}, {count})")
            call(f"pg_substr({text(value)}, {count})", f"substr({text(value)}, {count})")
            for length in (0, 1, 3, -1, 2147483647):
                call(f"pg_substr({text(value)}, {count}, {length})", f"substr({text(value)}, {count}, {length})")
        for count in (0, 1, 2, 5, 9, -1):
            for name in ("lpad", "rpad"):
                call(f"pg_{name}({text(value)}, {count})", f"{name}({text(value)}, {count})")
                for fill in ("", "x", "\u00e4y", "xyz"):
                    call(
                        f"pg_{name}({text(value)}, {count}, {text(fill)})",
                        f"{name}({text(value)}, {count}, {text(fill)})",
                    )
        for part in TEXTS[:8]:
            call(f"pg_strpos({text(value)}, {text(part)})", f"strpos({text(value)}, {text(part)})")
    binary = [
        "", "\\x", "\\x0", "\\x00ff", "\\xABcd", "\\x 01 02", "\\x0 1", "\\xzz", "abc", "a\\\\b", "\\101", "\\400",
        "\\", "\\1", "a\\x41", "\u00e4",
    ]
    for value in binary:
        call(f"pg_out_bytea(pg_in_bytea({text(value)}))", f"({text(value)}::bytea)::text")
        call(f"pg_octet_length(pg_in_bytea({text(value)}))", f"octet_length({text(value)}::bytea)")
    uuid = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"
    spelled = [
        uuid, uuid.upper(), "{" + uuid + "}", uuid.replace("-", ""), "a0ee-bc99-9c0b-4ef8-bb6d-6bb9-bd38-0a11",
        "{" + uuid, uuid + "}",
    ]
    spelled += [
        uuid[:-1], uuid + "0", uuid + "-", "", " " + uuid, uuid.replace("a", "g"), "-" + uuid,
        "a0eebc999c0b4ef8bb6d6bb9bd380a1-1",
    ]
    spelled += ["00000000-0000-0000-0000-000000000000", "{}", "a0eebc99--9c0b4ef8bb6d6bb9bd380a11"]
    for value in spelled:
        call(f"pg_in_uuid({text(value)})", f"({text(value)}::uuid)::text")


SEPARATED = [
    "", ",", "a,b,c", ",a,,b,", "abc", "aXbXc", "\u00e4,\u00f6", "aaaaa", "a%b_a\\b", "HELLO wORLD1x-y z", "\u00c4b cd",
]


def pieces():
    """Parts, copies and changes of texts."""
    for value in SEPARATED:
        for separator in ("", ",", ",,", "a", "aa", "\u00e4", "X", "abc"):
            for number in (0, 1, 2, 3, 9, -1, -2, -3, -9, 2147483647, -2147483647):
                arguments = f"({text(value)}, {text(separator)}, {number})"
                call("pg_split_part" + arguments, "split_part" + arguments)
        for count in (0, 1, 3, -1, -2147483647):
            call(f"pg_repeat({text(value)}, {count})", f"repeat({text(value)}, {count})")
        for name in ("reverse", "initcap", "md5"):
            call(f"pg_{name}({text(value)})", f"{name}({text(value)})")
        for start, end in (("", ""), ("abc", "xyz"), ("abc", "x"), ("aab", "xyz"), ("", "x"), ("\u00e4,", "a\u00f6z")):
            arguments = f"({text(value)}, {text(start)}, {text(end)})"
            call("pg_translate" + arguments, "translate" + arguments)
    call("pg_repeat('x', 2000000000)", "repeat('x', 2000000000)")
    call("pg_repeat('', 2000000000)", "repeat('', 2000000000)")
    for length in (*range(5), 55, 56, 57, 58, 63, 64, 65, 114, 115, 128, 200):
        digits = "".join(f"{chance.randrange(256):02x}" for _ in range(length))
        ours, theirs = f"pg_in_bytea('\\x{digits}')", f"'\\x{digits}'::bytea"
        call(f"pg_md5({ours})", f"md5({theirs})")
        call(f"pg_out_bytea(pg_sha256({ours}))", f"sha256({theirs})::text")
        for name in ("hex", "base64", "escape", "BASE64", "no", ""):
            call(f"pg_encode({ours}, '{name}')", f"encode({theirs}, '{name}')")
            again = f"decode(encode({theirs}, '{name}'), '{name}')::text"
            call(f"pg_out_bytea(pg_decode(pg_encode({ours}, '{name}'), '{name}'))", again)
    coded = [
        "", "YQ==", "YWI=", "YWJj", " Y W\nJ\tj ", "YQ", "YQ=", "Y===", "=", "YQ==YWJj", "YQ==YQ==",
        "YWI=YQ==", "Y*==", "Y\u00e4==",
    ]
    coded += ["YQ===", "00ff", "0", "0g", "a\\000", "\\", "\\\\", "\\400", "\u00e4", "AB cd", "A B", "YWI=YWI="]
    coded += ["".join(chance.choice("YWJjZ= \n+/") for _ in range(chance.randrange(9))) for _ in range(COUNT)]
    for value in coded:
        for name in ("hex", "base64", "escape", "none"):
            call(f"pg_out_bytea(pg_decode({text(value)}, '{name}'))", f"decode({text(value)}, '{name}')::text")


def assignments():
    """What a column does with a value: in a table of PostgreSQL's."""
    for value in TEXTS + ["ab   ", "a b  ", "abcd  x"]:
        for length in (1, 2, 3, 5):
            call(f"pg_varchar({text(value)}, {length})", ("varchar", length, value))
            call(f"pg_char({text(value)}, {length})", ("char", length, value))


# ---- JSON ----

JSON = [
    "1", "-0", "1.50", "1e5", "-1.5E-3", "1e", "01", "-", ".5", "5.", "+1", "true", "false", "null", "truex", "nul",
    "1x",
]
JSON += [
    '"a"', '"', '"a\nb"', '"\\n\\t\\"\\\\\\/\\b\\f\\r"', '"\\u00e4\\u0041"', '"\\u0000"', '"\\ud83d\\ude00"',
    '"\\ud83d"',
]
JSON += [
    '"\\ude00"', '"\\uzzzz"', '"\\u12"', '"\\x"', '"\u00e4\U0001f600"', '"\\u001f\\u007f"', "[]", "{}", "[ ]", "{ }",
    "[1,2 , 3]",
]
JSON += [
    "[1,]", "[,1]", "[1 2]", "[", "]", "[[[]]]", '{"a":1}', '{"b":1,"a":2}', '{"aa":1,"b":2,"a":3,"b":4}',
    '{"a" : {"b":[1,{}]}}',
]
JSON += [
    '{"a"}', '{"a":}', "{1:2}", '{"a":1,}', '{,}', '{"a":1 "b":2}', "", " ", "1 2", " [1] ", "\t1\n", "'a'", "nan",
    "1e400", "1e-400", "{}x",
]
JSON += ['{"\\u0061":1,"a":2}', "[true,false,null]", '"\\u2028"', "1E+2", "0.0", "-0.0", "100000000000000000000000.10"]


def some_json(depth=3):
    kind = chance.randrange(7 if depth else 5)
    if kind == 0:
        return chance.choice(["true", "false", "null"])
    if kind in (1, 2):
        if chance.randrange(4):
            return some_numeric()
        return f"{chance.randrange(100)}e{chance.randrange(-9, 9)}"
    if kind in (3, 4):
        letters = ["a", "b", "\u00e4", "\\n", "\\u0041", " ", "\\\\"]
        return '"' + "".join(chance.choice(letters) for _ in range(chance.randrange(4))) + '"'
    blank = lambda: chance.choice(["", " ", "\n"])
    if kind == 5:
        return "[" + ",".join(blank() + some_json(depth - 1) + blank() for _ in range(chance.randrange(4))) + "]"
    key = lambda: '"' + chance.choice(["a", "b", "aa", "ab", "z", "\u00e4", "", "B"]) + '"'
    return "{" + ",".join(f"{blank()}{key()}{blank()}:{some_json(depth - 1)}" for _ in range(chance.randrange(5))) + "}"


def documents():
    for value in JSON + [some_json() for _ in range(COUNT)]:
        call(f"pg_in_json({text(value)})", f"({text(value)}::json)::text")
        call(f"pg_in_jsonb({text(value)})", f"({text(value)}::jsonb)::text")


PARTS = [
    '{"a":1,"b":{"a":[1,2,"x"]},"a":null}', '[1, [2, {"k":"v"}], "s", null, true]', '"s"', "17.50", "null", "{}", "[]",
    '{"é":"\\u00e9\\n","":{"":0}}', '[1.0, 1, "1"]', '{"a":{"b":[]},"c":[{"a":1,"b":2}]}',
]
KEYS = ["a", "b", "", "é", "0", "-1", " 1", "x", "s"]


def parts():
    for document in PARTS:
        for kind in ("json", "jsonb"):
            value = f"pg_in_{kind}({text(document)})"
            for key in KEYS:
                call(f"pg_json_field({value}, {text(key)})", f"({text(document)}::{kind} -> {text(key)})::text")
                call(f"pg_json_shown(pg_json_field({value}, {text(key)}))", f"{text(document)}::{kind} ->> {text(key)}")
                call(f"pg_json_step({value}, {text(key)})", f"({text(document)}::{kind} #> array[{text(key)}])::text")
            for place in (0, 1, -1, -2, 5, -7):
                call(f"pg_{kind}_item({value}, {place})", f"({text(document)}::{kind} -> {place})::text")
            call(f"pg_json_typeof({value})", f"{kind}_typeof({text(document)})")
            call(f"pg_json_array_length({value})", f"{kind}_array_length({text(document)})")
        for key in KEYS:
            call(f"pg_json_has({value}, {text(key)})", f"({text(document)}::jsonb ? {text(key)})::int")
        for other in PARTS:
            both = f"pg_in_jsonb({text(document)}), pg_in_jsonb({text(other)})"
            call(f"pg_json_contains({both})", f"({text(document)}::jsonb @> {text(other)}::jsonb)::int")
            call(f"pg_jsonb_concat({both})", f"({text(document)}::jsonb || {text(other)}::jsonb)::text")
    for value in some(TEXTS):
        call(f"pg_json_string({text(value)})", f"to_json({text(value)}::text)::text")


EXPRESSIONS = [
    "a", "^a", "a$", "^$", "", "b+", "[0-9]+", "[^a-c]", "[]a]", "[a-]", "[a\\]]", "[[:alpha:]_]+", "[[:space:]]",
    "\\d{2}", "\\w+", "\\s", "\\S+", "\\.", "a.c", "a|b", "(ab|cd)+", "(?:x)y", "x{2,3}", "x{,3}", "x{3,2}",
    "x{256}", "x{", "a{b", "(", ")", "[", "a)", "*a", "a**", "a+?", "^*", "a\\", "\\1", "(?=a)", "(?i)a", "\\ya",
    "a\\Y", "\\Aa", "c\\Z", "[[:nope:]]", "[b-a]", "[[.a.]]", "\\n", "\u00e4", "[\u00e0-\u00ff]", "()", "a||b",
    "\\mab", "}", "]", "[^\\n]+$", "***=a", "[[:<:]]a", "([a-z]+)@([a-z]+)", "-?[0-9]+(\\.[0-9]+)?", "a?(ab)?",
    "[\\w-]+", "\\W", "[\\D]", "x*?y", "{1}", "a{1}{2}",
]
SUBJECTS = [
    "", "a", "ab", "abc", "abcd", "A", "aXc", "12", "x1y22", "xx", "xxx", "xxxx", "a\nb", " a ", "\u00e4b", "a.c",
    "a]", "a-b", "me@home you@work", "3.14 -2", "cdab", "_", "a{b", "\t", "bbb",
]


def patterns():
    subjects = SUBJECTS + ["".join(chance.choice("abcx1 .\n\u00e4A") for _ in range(6)) for _ in range(COUNT // 4)]
    atoms = ["a", "b", "[ab]", "[^a]", ".", "\\d", "(a|b)", "(ab)", "x", "\\s"]
    some_atoms = lambda: "".join(
        chance.choice(atoms) + chance.choice(["", "", "*", "+", "?", "{1,2}"]) for _ in range(chance.randint(1, 4))
    )
    made = [some_atoms() for _ in range(COUNT)]
    either = lambda: chance.choice(["", "^"]) + some_atoms() + "|" + some_atoms() + chance.choice(["", "$"])
    made += [either() for _ in range(COUNT)]
    for pattern in EXPRESSIONS + made:
        for subject in some(subjects, 6) + ["ab", "x1y22"]:
            both = f"{text(subject)}, {text(pattern)}"
            call(f"pg_regex({both})", f"({text(subject)} ~ {text(pattern)})::int")
            call(f"pg_iregex({both})", f"({text(subject)} ~* {text(pattern)})::int")
            call(f"pg_regex_substring({both})", f"substring({both})")
            flags = chance.choice(["", "g", "i", "gi"])
            by = chance.choice(["-", "<\\1>", "\\&\\&", "\\\\", "\\x"])
            call(
                f"pg_regex_replace({both}, {text(by)}, {text(flags)})",
                f"regexp_replace({both}, {text(by)}, {text(flags)})",
            )


PICTURES = [
    "9", "99", "999", "0", "000", "990", "9990.00", "9.99", "999.99", "0.99", "9,999", "9,999.99", "FM9,999.99",
    "FM999", "FM9.99", "FM9.00", "FM0.09", "FM990.099", "FM999,999,990.00", "09,999", "$9,999.99", "99 %", "9.9.9",
    "", "FM", "999D99", "9G999D90", "FM9.9", "FM.99", ".99", ".00", "0,000.0", "9,9,9", "S999", "999MI", "PR99",
    "RN", "FM000", "9.", "x9", "FM00.90",
]


def pictures():
    numbers = ["0", "1", "-1", "12", "-12", "123.456", "-0.5", "0.5", "0.05", "-0.004", "999.995", "1234567.891"]
    numbers += ["10.10", "100"]
    numbers += [some_numeric() for _ in range(COUNT)]
    some_picture = lambda: chance.choice(["", "FM"]) + "".join(
        chance.choice("9990,") for _ in range(chance.randint(1, 8))
    ) + chance.choice(["", ".9", ".99", ".00", ".09", ".90", ".990"])
    for picture in PICTURES + [some_picture() for _ in range(COUNT)]:
        for number in some(numbers, 8):
            call(
                f"pg_numeric_to_char(pg_in_numeric({text(number)}), {text(picture)})",
                f"to_char({text(number)}::numeric, {text(picture)})",
            )
            if number.lstrip("-").isdigit() and len(number) < 18:
                call(
                    f"pg_numeric_to_char({number}, {text(picture)})",
                    f"to_char(({number})::bigint, {text(picture)})",
                )


# ---- Dates and times ----

DATES = [
    "2024-02-29", "2023-02-29", "2024-02-30", "0001-01-01", "9999-12-31", "0000-01-01", "10000-01-01", "2024-1-5",
    "2024-13-01",
]
DATES += [
    "1/2/2024", "1/2/24", "31/1/2024", "1-2-2024", "Jan 5 2024", "5 Jan 2024", "January 5, 2024", "2024-Jan-05",
    "05-Jan-2024",
]
DATES += [
    "5-Jan-24", "Jan-5-2024", "20240105", "240105", "2024.01.05", "2024.005", "2024 5", "2024 005", "2024/1/5",
    "1.2.2024", "jan 5", "2024",
]
DATES += [
    "Mon Jan 5 2024", "Friday, January 5, 2024", "2024-01-05 BC", "2024-01-05 AD", "epoch", "today", "now",
    "infinity", "-infinity",
]
DATES += [
    "", " ", "abc", "2024-01-05x", "2024--01-05", "2024-01", "2024-01-", "99-1-1", "70-1-1", "69-1-1", "1-1-70",
    "1-1-69", "1900-02-29", "2000-02-29",
]
DATES += [
    " 2024-01-05 ", "2024-01-05-", "2024-01-05 junk", "Sept 5 2024", "5 sept 2024", "may5 2024", "may5-2024", "1 2 3",
    "1 2 2003", "2003 1 2", "13 1 2003", "123456-01-01",
]
DATES += [
    "2024-06-31", "2024-00-10", "2024-10-00", "0-1-1", "1-1-0", "2024-01-05T", "J2451187", "julian 5",
    "4713-01-01 BC", "5874898-01-01", "2024-366", "2023-366",
]
TIMES = [
    "00:00", "24:00", "24:00:01", "23:59:60", "23:59:60.5", "25:00", "12:60", "12:30:61", "1:2", "1:2:3",
    "01:02:03.4", "01:02:03.1234567", "01:02:03.9999999",
]
TIMES += [
    "12:00 AM", "12:00 PM", "1 PM", "1:30pm", "13:00 PM", "0:30 am", "0102", "010203", "010203.5", "01:02:03.",
    "01:02.5", "12:", ":30", "1", "", "allballs", "T01:02", "t 010203",
]
TIMES += [
    "01:02:03+02", "01:02:03-0230", "01:02:03 UTC", "01:02:03Z", "01:02:03 +05:30", "01:02:03+16",
    "01:02:03+15:59:59", "01:02:03 EST", "01:02:03 Europe/Berlin", "01:02:03+1:60", "1:2:3:4", "01:02:03+2:3:4:5",
    "040506-08", "04:05 foo", "12:30:45.5 pm", "1.5", "12345", "256199", "12:30:60.5",
]


def moments():
    pairs = [f"{date}{between}{time}" for date in DATES for time in TIMES for between in (" ", "T", "")]
    days = lambda: f"{chance.randrange(1, 10000):04}-{chance.randrange(1, 13):02}-{chance.randrange(1, 29):02}"
    part = lambda below: f"{chance.randrange(below):02}"
    fraction = lambda: chance.choice(["", f".{chance.randrange(10**6):06}"])
    clock = lambda: f"{part(24)}:{part(60)}:{part(60)}{fraction()}"
    pieces = [
        "2024", "5", "12", "31", "jan", "Mar", "10:20", "1:2:3.5", "+02", "-05:30", "UTC", "z", "pm", "am", "ad",
        "fri", "20240105", "1020", "102030", "2024-01-05", "1/2/03", "T", ",", "05", "101", "at",
    ]
    some_pieces = lambda: [chance.choice(pieces) for _ in range(chance.randint(1, 4))]
    mixed = [chance.choice([" ", "", "-"]).join(some_pieces()) for _ in range(4 * COUNT)]
    whole = some(pairs, 4 * COUNT) + mixed + [f"{days()} {clock()}" for _ in range(COUNT)] + DATES
    for value in whole:
        call(f"pg_in_timestamp({text(value)})", f"({text(value)}::timestamp)::text")
        call(
            f"pg_out_timestamptz(pg_in_timestamptz({text(value)}, 'UTC'), '+00:00')",
            f"({text(value)}::timestamptz)::text",
        )
    for value in DATES + some(pairs, COUNT) + mixed[:COUNT]:
        call(f"pg_in_date({text(value)})", f"({text(value)}::date)::text")
    for value in TIMES + some(pairs, COUNT) + mixed + [clock() for _ in range(COUNT)]:
        call(f"pg_in_time({text(value)})", f"({text(value)}::time)::text")
    stamps = [
        "2024-02-29 23:59:59.999999", "0001-01-01 00:00:00", "9999-12-31 23:59:59", "2000-01-01 00:00:00",
        "1969-12-31 23:59:59.5", "2001-01-01 12:00:00",
    ]
    stamps += [
        "2023-12-31 01:02:03", "2024-12-30 00:00:00",
        "1900-03-31 00:00:00"] + [f"{days()} {clock()}" for _ in range(COUNT)
    ]
    units = [
        "microsecond", "milliseconds", "second", "minute", "hour", "day", "week", "month", "quarter", "year",
        "decade", "century", "millennium",
    ]
    parts = units + [
        "epoch", "isoyear", "dow", "isodow", "doy", "timezone", "timezone_hour", "julianx", "us", "MON", "nonsense",
    ]
    for value in some(stamps, 30):
        for unit in units + ["dow", "nonsense", "Y"]:
            call(
                f"pg_date_trunc({text(unit)}, pg_in_timestamp({text(value)}))",
                f"date_trunc({text(unit)}, {text(value)}::timestamp)::text",
            )
        for part in parts:
            for kind in ("date", "time", "timestamp"):
                source = f"pg_in_{kind}({text(value)})"
                call(f"pg_extract({text(part)}, {source})", f"extract({part} from {text(value)}::{kind})::text")
            source = f"pg_in_timestamptz({text(value)}, 'UTC')"
            call(f"pg_extract({text(part)}, {source})", f"extract({part} from {text(value)}::timestamptz)::text")
    for value in stamps:
        digits = chance.randrange(7)
        for kind in ("time", "timestamp"):
            call(
                f"pg_moment_fit(pg_in_{kind}({text(value)}), {digits})",
                f"({text(value)}::{kind})::{kind}({digits})::text",
            )
    intervals = spans()
    for value in stamps:
        span, other, count = chance.choice(
            intervals), chance.choice(stamps), chance.choice([0, 1, -1, 28, 366, -100000, 2147483647],
        )
        span_of_ours = f"pg_in_interval({text(span)})"
        call(
            f"pg_timestamp_add_interval(pg_in_timestamp({text(value)}), {span_of_ours})",
            f"({text(value)}::timestamp + {text(span)}::interval)::text",
        )
        call(
            f"pg_timestamp_add_interval(pg_in_date({text(value)}), {span_of_ours})",
            f"({text(value)}::date + {text(span)}::interval)::text",
        )
        call(
            f"pg_time_add_interval(pg_in_time({text(value)}), {span_of_ours})",
            f"({text(value)}::time + {text(span)}::interval)::text",
        )
        call(
            f"pg_out_interval(pg_timestamp_sub(pg_in_timestamp({text(value)}), pg_in_timestamp({text(other)})))",
            f"({text(value)}::timestamp - {text(other)}::timestamp)::text",
        )
        call(
            f"pg_out_interval(pg_time_sub(pg_in_time({text(value)}), pg_in_time({text(other)})))",
            f"({text(value)}::time - {text(other)}::time)::text",
        )
        call(
            f"pg_date_sub(pg_in_date({text(value)}), pg_in_date({text(other)}))",
            f"({text(value)}::date - {text(other)}::date)",
        )
        call(f"pg_date_add_days(pg_in_date({text(value)}), {count})", f"({text(value)}::date + {count})::text")
        call(f"pg_timestamp_to_date(pg_in_timestamp({text(value)}))", f"({text(value)}::timestamp)::date::text")
        call(f"pg_timestamp_to_time(pg_in_timestamp({text(value)}))", f"({text(value)}::timestamp)::time::text")
        call(f"pg_date_to_timestamp(pg_in_date({text(value)}))", f"({text(value)}::date)::timestamp::text")


SHOWN = [
    "YYYY-MM-DD HH24:MI:SS.MS", "DD.MM.YYYY", "FMMonth FMDDth, YYYY", "Mon DD, YYYY HH12:MI AM", "HH:MI:SS.US p.m.",
    "", '"at" HH24"h"', '"a\\"b" \\"', "IYYY-IW-ID", "IYY IY I IDDD", "DAY|Day|day|DY|Dy|dy", "D DDD J Q W WW CC",
    "AD a.d.", "MONTH|Month|month|MON|Mon|mon", "RM|rm|FMRM", "Y,YYY YYY YY Y", "FMY,YYYth FMYYYY FMMM FMDD",
    "SSSS SSSSS", "TH th", "FF1 FF2 FF3 FF4 FF5 FF6", "DDTH MIth SSTH", "Yyyy dD mM", "TMMonth TMDay",
    "FMHH24:FMMI:FMSS", "TZH:TZM", "tzh tzm", "quarter Q", "FXYYYY", "FM", '"', '"open', "DDSP", "MSth USTH",
    "\u00e4YYYY\u00f6", "yyyymmddhh24miss", "HH12HH24HH", "x", "D2", "bc B.C.", "FMDDD FMIDDD FMIW FMWW", "MONTHMON",
    "DAYDY", "\\\\", "am PM A.M. pm",
]


def made():
    """Moments made of numbers, the age between two, and patterns that show them."""
    numbers = [-2147483647, -1, 0, 1, 2, 4, 12, 13, 28, 29, 30, 31, 32, 1900, 2000, 2023, 2024, 9999, 10000]
    days = [(chance.choice(numbers), chance.choice(numbers[1:11]), chance.choice(numbers[3:13])) for _ in range(COUNT)]
    for year, month, day in [*days, (2024, 2, 29), (2023, 2, 29), (1900, 2, 29), (1, 1, 1), (9999, 12, 31)]:
        call(f"pg_make_date({year}, {month}, {day})", f"make_date({year}, {month}, {day})::text")
        hour, minute = chance.choice([0, 1, 12, 23, 24, 25, -1]), chance.choice([0, 1, 59, 60, -1])
        for second in ("0", "1", "59", "60", "61", "-1", "12.5", "59.9999995", "1.0000005", "1.0000015"):
            ours = f"pg_make_timestamp({year}, {month}, {day}, {hour}, {minute}, pg_in_float8('{second}'))"
            theirs = f"make_timestamp({year}, {month}, {day}, {hour}, {minute}, '{second}'::float8)::text"
            # Of a fraction the message has six digits.
            if "." not in second or 0 <= hour < 24 and 0 <= minute < 60:
                call(ours, theirs)
    seconds = ["0", "-0.5", "1.5", "1e9", "1700000000.123456", "1700000000.1234567", "-62135596800", "253402300799"]
    for second in seconds + [repr(chance.uniform(-1e9, 4e9)) for _ in range(COUNT)]:
        ours = f"pg_out_timestamptz(pg_to_timestamp(pg_in_float8('{second}')), 'UTC')"
        call(ours, f"to_timestamp('{second}'::float8)::text")
    stamps = ["2024-02-29 12:34:56.789012", "2023-12-31 23:59:59.999999", "2024-01-01 00:00:00", "0001-01-01 00:00:00"]
    stamps += ["2021-01-03 01:02:03.4", "2020-12-31 11:00:00.05", "2011-11-11 11:11:11", "1999-07-22 13:23:33"]
    stamps += ["2024-03-31 00:00:01", "2024-03-30 00:00:02", "2023-02-28 10:00:00", "9999-12-31 00:00:00"]
    for _ in range(COUNT):
        year, month, day = chance.randrange(1900, 2100), chance.randrange(1, 13), chance.randrange(1, 29)
        stamps.append(f"{year}-{month:02}-{day:02} {chance.randrange(24):02}:{chance.randrange(60):02}:07.25")
    for value in stamps:
        for other in some(stamps, 12):
            ours = f"pg_out_interval(pg_age(pg_in_timestamp({text(value)}), pg_in_timestamp({text(other)})))"
            call(ours, f"age({text(value)}::timestamp, {text(other)}::timestamp)::text")
        for pattern in SHOWN:
            ours = f"pg_to_char(pg_in_timestamp({text(value)}), {text(pattern)})"
            call(ours, f"to_char({text(value)}::timestamp, {text(pattern)})")
            ours = f"pg_to_char(pg_in_timestamp({text(value)}), {text(pattern)}, 'UTC')"
            call(ours, f"to_char({text(value)}::timestamptz, {text(pattern)})")


def spans():
    words = [
        "1 day", "-1 day", "1 month", "-1 month", "1 year 2 mons 3 days 04:05:06.789", "1.5 years", "1.5 months",
        "1.5 days", "0.5 weeks", "1 week", "2 hours ago",
    ]
    words += [
        "P1Y2M3DT4H5M6.7S", "P1W", "PT", "P", "P1.5Y", "1-2", "-1-2", "1 2:3", "1 2:3:4", "1:2:3", "-1:2:3", "+1:2:3",
        "100:00", "1 12:59:10", "12", "1.5", "-1.5", "@ 1 minute", "1 day 1 day",
    ]
    words += [
        "1 decade", "1 century", "1 millennium", "1 microsecond", "1500 milliseconds", "1h 30m", "1h30m", "1y 2mon",
        "", " ", "abc", "1 abc", "day", "1 day -2 hours", "-1 day +2 hours", "1 quarter", "1 2 3",
        "99999999999 years", "2147483648 days",
    ]
    words += [
        "178000000 years", "1 mon ago", "1.123456789 s", "0.0000005 s", "1 day 25:00", "-1 mons 1 day",
        "1 year -1 month", "00:00:00", "infinity", "1 day 02:03 ago", "1:60:00", "1:00:61", "1 us",
        "3 months 4 days 5 hours ago", "1e3 s", "P1-2", "P0001-02-03T04:05:06", "12:34:56.789012", "1 year 1 year",
        "5 min 5 sec", "1,5 day",
    ]
    number = lambda: chance.choice(
        [str(chance.randrange(-40, 400)), f"{chance.uniform(-30, 30):.3f}", str(chance.randrange(100))],
    )
    units = ["year", "mons", "days", "hours", "min", "secs", "weeks", "ms", "us", "decades"]
    some_units = lambda: chance.sample(units, chance.randint(1, 4))
    words += [" ".join(f"{number()} {unit}" for unit in some_units()) for _ in range(COUNT)]
    return words


def intervals():
    words = spans()
    for word in words:
        call(f"pg_out_interval(pg_in_interval({text(word)}))", f"({text(word)}::interval)::text")
        call(f"pg_out_interval(pg_interval_neg(pg_in_interval({text(word)})))", f"(-({text(word)}::interval))::text")
        other, factor = chance.choice(words), chance.choice(["2", "0.5", "-1.5", "0", "3", "1e10", "0.1", "7"])
        for name, operator in (("add", "+"), ("sub", "-")):
            ours = f"pg_out_interval(pg_interval_{name}(pg_in_interval({text(word)}), pg_in_interval({text(other)})))"
            call(ours, f"({text(word)}::interval {operator} {text(other)}::interval)::text")
        for name, operator in (("mul", "*"), ("div", "/")):
            ours = f"pg_out_interval(pg_interval_{name}(pg_in_interval({text(word)}), pg_in_float8('{factor}')))"
            call(ours, f"({text(word)}::interval {operator} '{factor}'::float8)::text")
        both = f"{text(word)}::interval, {text(other)}::interval"
        of_both = f"(values (pg_in_interval({text(word)})), (pg_in_interval({text(other)})))"
        for operator in ("<", "="):
            ours = f"pg_in_interval({text(word)}) {operator} pg_in_interval({text(other)}) collate pg_interval"
            call(ours, f"({both.replace(', ', f' {operator} ')})::int")
        for name in ("sum", "avg"):
            ours = f"(select pg_out_interval(pg_interval_{name}(column1)) from {of_both})"
            call(ours, f"(select {name}(i)::text from unnest(array[{both}]) i)")
        for unit in ("second", "day", "week", "quarter", "year", "century", "epoch", "nonsense"):
            ours = f"pg_out_interval(pg_interval_trunc({text(unit)}, pg_in_interval({text(word)})))"
            call(ours, f"date_trunc({text(unit)}, {text(word)}::interval)::text")
        for part in ("epoch", "second", "day", "month", "year", "hour", "quarter", "decade", "milliseconds", "dow"):
            call(
                f"pg_extract('{part}', pg_in_interval({text(word)}))",
                f"extract({part} from {text(word)}::interval)::text",
            )


def escaped(value):
    value = value.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")
    return value[:-1] + "\\s" if value.endswith(" ") else value


kept = collections.Counter()


def is_kept(line, ours, answer):
    """Whether a line is one of the few of its kind, if only those are wanted."""
    kind = (re.search(r"pg_(?!in_|out_)\w+|pg_\w+", ours)[0], answer[:6] if answer[0] == "!" else answer[0])
    kept[kind] += 1
    return not EACH or len(line) <= LINE_MAX and kept[kind] <= EACH


def main():
    families = (integers, floats, numerics, texts, pieces, assignments, documents, parts, patterns, pictures)
    for family in (*families, moments, made, intervals):
        family()
    connection = psycopg.connect(host="127.0.0.1", port=PORT, user="postgres", dbname="postgres", autocommit=True)
    cursor = connection.cursor()
    cursor.execute("set timezone = 'UTC'; set datestyle = 'ISO, MDY'; set intervalstyle = 'postgres'")
    if EACH:
        print("# What PostgreSQL 15 answers: functions.py PORT 40 1 4 in xtask/src/e2e/referee.")
        chance.shuffle(calls)
    seen = set()
    for ours, theirs in calls:
        if ours in seen:
            continue
        seen.add(ours)
        try:
            if isinstance(theirs, tuple):
                kind, length, value = theirs
                cursor.execute(f"create temp table t(c {kind}({length})); insert into t values ({text(value)})")
                cursor.execute("select c::text from t")
            else:
                cursor.execute("select " + theirs)
            (answer,) = cursor.fetchone()
            answer = "NULL" if answer is None else "=" + str(answer)
        except psycopg.Error as error:
            answer = f"!{error.sqlstate} {error.diag.message_primary}"
        if isinstance(theirs, tuple):
            cursor.execute("drop table if exists t")
        line = escaped(ours) + "\t" + escaped(answer)
        if is_kept(line, ours, answer):
            print(line)


main()
