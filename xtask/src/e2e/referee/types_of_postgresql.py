"""PostgreSQL's types as the referee knows them: values at their edges, odd spellings, and what does not fit."""


class Type:
    """A type: its name, values, texts that are none, and which values another type's casts may meet."""

    def __init__(self, name, values, wrong=(), arithmetic="", column=None, sums=False, ordered=True):
        self.name = name
        self.values = list(values)
        self.wrong = list(wrong)
        self.arithmetic = arithmetic
        self.column = column or name
        self.sums = sums
        self.ordered = ordered

    def literal(self, text):
        return "null" if text is None else f"'{quoted(text)}'::{self.name}"


def quoted(text):
    return text.replace("'", "''")


TYPES = [
    Type("boolean", ["true", "false", "t", "no", "1"], ["maybe", "2", ""]),
    Type(
        "smallint", ["0", "1", "-1", "7", "32767", "-32768", " 12 "], ["32768", "1.5", "x", ""], "+-*/%", sums=True,
    ),
    Type(
        "integer", ["0", "1", "-1", "7", "46341", "2147483647", "-2147483648"], ["2147483648", "1e3", ""], "+-*/%",
        sums=True,
    ),
    Type(
        "bigint", ["0", "1", "-7", "3037000500", "9223372036854775807", "-9223372036854775808"],
        ["9223372036854775808", "abc"], "+-*/%", sums=True,
    ),
    Type("real", ["0", "1.5", "-0.1", "3.4e38", "1e-37", "16777217", "1e6"], ["1e39", "x"], "+-*/", sums=True),
    Type(
        "double precision", ["0", "0.1", "-2.5", "1e15", "123456789012345678", "1.7e308", "1e-300", "1e-5"],
        ["1e400", "1,5", ""], "+-*/", sums=True,
    ),
    Type(
        "numeric",
        ["0", "1", "-1", "0.10", "1.5", "2.50", "-0.000001", "12345678901234567890.123456789", "1e20", "99999.99"],
        ["1..2", "x", ""], "+-*/%", sums=True,
    ),
    Type(
        "numeric(8,2)", ["0", "1.005", "-1.995", "999999.99", "0.1", "7"], ["1000000", "x"], "+-*/%", sums=True,
    ),
    Type("text", ["", "a", "A", "B", "abc", "ab c", "10", "9", "\u00e4", "a%", "it's", "\\x41", " a", "true"]),
    Type("varchar(4)", ["", "a", "abcd", "\u00e4\u00f6\u00fc", "ab  ", "7"], ["abcde"]),
    Type("char(4)", ["", "a", "abcd", "ab", "\u00e4"], ["abcde"]),
    Type("bytea", ["", "\\x00", "\\xff00", "abc", "\\x616263", "a\\\\b"], ["\\x0", "\\xzz", "\\9"]),
    Type(
        "date", ["2024-02-29", "1970-01-01", "1999-12-31", "0001-01-01", "9999-12-31", "Jan 5 2024", "20240105"],
        ["2023-02-29", "2024-13-01", "x", ""],
    ),
    Type("time", ["00:00", "23:59:59.999999", "12:30", "1:02 PM", "24:00:00"], ["25:00", "12:60", "x"]),
    Type(
        "timestamp", ["2024-02-29 12:34:56.789", "1970-01-01 00:00:00", "1999-12-31T23:59:59.999999", "2024-01-05"],
        ["2023-02-29 00:00", "2024-01-01 25:00", "x"],
    ),
    Type(
        "timestamptz",
        ["2024-02-29 12:34:56.789+00", "1970-01-01 00:00:00+02", "1999-12-31T23:59:59.999999Z", "2024-01-05 1:00 -05"],
        ["2024-01-01 00:00+99", "x"],
    ),
    Type(
        "timestamp(3)", ["2024-02-29 12:34:56.7895", "1999-12-31 23:59:59.9995", "2000-01-01 00:00:00.0005"], ["x"],
    ),
    Type(
        "interval", ["1 day", "24:00:00", "1 mon", "30 days", "-1 day 02:03:04.5", "1 year 2 mons 3 days", "00:00",
                     "-00:00:00.000001", "P1Y2M3DT4H"], ["x", "1 parsec", ""], "+-", sums=True,
    ),
    Type(
        "uuid", ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "00000000-0000-0000-0000-000000000000",
                 "{A0EEBC999C0B4EF8BB6D6BB9BD380A12}", "11111111-1111-1111-1111-1111111111e5"], ["x", "a0ee"],
    ),
    Type("json", ['{"b": 1, "a": [true, null]}', "1", '"x"', "[]", '{"a":1,"a":2}'], ["{", "x", ""], ordered=False),
    Type("jsonb", ['{"b": 1, "a": [true, null]}', "1.50", '"x"', "[]", '{"a":1,"a":2}', "{}"], ["{", "x"]),
]

# How often a value of the first type of a pair is added to one of the second, and what it gives is compared.
MIXED = [
    ("smallint", "integer"), ("integer", "bigint"), ("integer", "numeric"), ("bigint", "numeric"), ("integer", "real"),
    ("bigint", "double precision"), ("real", "double precision"), ("numeric", "double precision"),
    ("smallint", "numeric"), ("smallint", "real"),
]
