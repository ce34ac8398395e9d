"""Queries at random over three small tables of mixed types: mostly sensible, sometimes wrong."""

COLUMNS = {
    "i": "integer", "b": "bigint", "n": "numeric(10,2)", "f": "double precision", "t": "text", "v": "varchar(8)",
    "d": "date", "s": "timestamp", "y": "boolean",
}
VALUES = {
    "integer": ["0", "1", "-3", "7", "42"],
    "bigint": ["0", "5000000000", "-1", "7"],
    "numeric(10,2)": ["0.00", "1.50", "-2.25", "10", "99.99"],
    "double precision": ["0.5", "-1.25", "3e5", "7"],
    "text": ["'a'", "'B'", "''", "'abc'", "'7'"],
    "varchar(8)": ["'x'", "'yy'", "'Abc'"],
    "date": ["date '2024-02-29'", "date '2023-01-01'", "date '2024-12-31'"],
    "timestamp": ["timestamp '2024-02-29 10:00:00'", "timestamp '2023-01-01 00:00:00.5'"],
    "boolean": ["true", "false"],
}
NUMBERS = ["integer", "bigint", "numeric(10,2)", "double precision"]
TEXTS = ["text", "varchar(8)"]
PATTERN = "'a%'"
DEPTH = 3


class Query:
    """Makes expressions of a type over the columns in scope: pairs of a name and its type."""

    def __init__(self, chance):
        self.chance = chance

    def scope(self, *aliases):
        return [(f"{alias}.{name}", kind) for alias in aliases for name, kind in COLUMNS.items()]

    def one(self, *choices):
        return self.chance.choice(choices)

    def leaf(self, kind, scope):
        columns = [name for name, of in scope if of == kind]
        if columns and self.chance.random() < 0.7:
            return self.chance.choice(columns)
        return "null" if self.chance.random() < 0.08 else self.chance.choice(VALUES[kind])

    def some(self, kind, scope, depth=DEPTH):
        """An expression of a type, or one that PostgreSQL converts."""
        if depth == 0 or self.chance.random() < 0.25:
            return self.leaf(kind, scope)
        below = lambda of=kind: self.some(of, scope, depth - 1)
        if self.chance.random() < 0.25:
            return self.one(
                f"coalesce({below()}, {below()})",
                f"case when {below('boolean')} then {below()} else {below()} end",
                f"nullif({below()}, {below()})",
                f"greatest({below()}, {below()})",
                f"cast({below()} as {kind})",
            )
        if kind == "boolean":
            return self.condition(scope, depth)
        if kind in NUMBERS:
            other = self.chance.choice(NUMBERS[: NUMBERS.index(kind) + 1])
            text = below(self.chance.choice(TEXTS))
            return self.one(
                f"({below()} {self.one('+', '-', '*')} {below(other)})",
                f"({below()} / {self.one('2', '7', '0.5', '-3')})",
                f"abs({below()})",
                f"(- {below()})",
                f"round({below()})" if kind != "bigint" else f"length({text})",
                f"length({text})" if kind in ("integer", "bigint") else below(other),
            )
        if kind in TEXTS:
            return self.one(
                f"({below()} || {below()})", f"upper({below()})", f"lower({below()})", f"substr({below()}, 1, 2)",
                f"replace({below()}, 'a', 'b')", f"trim({below()})", f"{below('integer')}::text",
                f"left({below()}, 1)", f"cast({below('date')} as text)",
            )
        if kind == "date":
            return self.one(f"({below()} + {below('integer')})", f"{below('timestamp')}::date", below())
        return self.one(
            f"({below()} + interval '1 month')", f"date_trunc('day', {below()})", f"{below('date')}::timestamp",
        )

    def condition(self, scope, depth):
        below = lambda of: self.some(of, scope, depth - 1)
        kind = self.chance.choice([*COLUMNS.values()])
        other = self.chance.choice(NUMBERS) if kind in NUMBERS else kind
        return self.one(
            f"({below(kind)} {self.one('=', '<>', '<', '<=', '>', '>=')} {below(other)})",
            f"({below(kind)} in ({below(kind)}, {below(other)}))",
            f"({below(kind)} between {below(kind)} and {below(other)})",
            f"({below(kind)} is {self.one('', 'not ')}null)",
            f"({below('boolean')} {self.one('and', 'or')} {below('boolean')})",
            f"(not {below('boolean')})",
            f"({below('text')} {self.one('like', 'ilike', 'not like')} {self.one(PATTERN, below('text'))})",
            f"({below(kind)} is distinct from {below(kind)})",
        )

    def kind(self):
        return self.chance.choice([*COLUMNS.values()])

    def table(self):
        return self.one("p", "q", "r")

    def where(self, scope):
        return f" where {self.some('boolean', scope)}" if self.chance.random() < 0.6 else ""

    def select(self):
        shape = self.chance.randrange(8)
        table = self.table()
        scope = self.scope("x")
        if shape == 0:
            kind = self.kind()
            key = self.some(kind, scope, 1)
            number = self.some(self.chance.choice(NUMBERS), scope, 1)
            having = " having count(*) > 1" if self.chance.random() < 0.3 else ""
            total = self.one("sum", "avg", "min", "max", "count")
            rest = f"{self.where(scope)} group by 1{having}"
            return f"select {key} as k, count(*), {total}({number}) from {table} x{rest}"
        if shape in (1, 2):
            join = self.one("join", "left join", "full join")
            both = self.scope("x", "y")
            column = self.one(*COLUMNS)
            values = [self.some(self.kind(), both, 2) for _ in range(2)]
            return (
                f"select {', '.join(values)} from {table} x {join} {self.table()} y on x.{column} = y.{column}"
                f"{self.where(both)}"
            )
        if shape == 3:
            kind = self.kind()
            word = self.one("union", "union all", "except", "intersect")
            other = self.some(kind, self.scope("y"), 1)
            return f"select {self.some(kind, scope, 1)} from {table} x {word} select {other} from {self.table()} y"
        if shape == 4:
            column = self.one(*COLUMNS)
            inner = self.scope("x", "y")
            how = self.one("exists", "not exists")
            condition = self.some("boolean", inner, 2)
            return f"select x.* from {table} x where {how} (select 1 from {self.table()} y where {condition})"
        if shape == 5:
            key = self.one(*COLUMNS)
            window = self.one("row_number()", "rank()", f"sum({self.one('x.i', 'x.n', 'x.b')})", "count(*)", "lag(x.i)")
            return f"select x.id, {window} over (partition by x.{key} order by x.id) from {table} x"
        if shape == 6:
            first, second = self.some(self.kind(), scope), self.some(self.kind(), scope)
            return f"with w as (select {first} as a, {second} as c from {table} x) select distinct * from w"
        values = [self.some(self.kind(), scope) for _ in range(self.chance.randint(1, 3))]
        return f"select {', '.join(values)} from {table} x{self.where(scope)}"

    def write(self):
        table, number = self.table(), self.chance.randrange(12)
        scope = [*COLUMNS.items()]
        column = self.one(*(name for name in COLUMNS if name != "s"))
        some = lambda scope, depth: self.some(COLUMNS[column], scope, depth)
        shape = self.chance.randrange(5)
        if shape == 0:
            return f"update {table} set {column} = {some(scope, 2)} where id < {number} returning id, {column}"
        if shape == 1:
            return f"delete from {table} where id = {number} returning *"
        if shape == 2:
            return f"update {table} set i = i + 1 where {self.some('boolean', scope, 2)}"
        if shape == 3:
            other = self.table()
            return f"insert into {table}(id, {column}) select id + 20, {some(scope, 1)} from {other} where id < 2"
        return (
            f"insert into {table}(id, {column}, s) values ({number}, {some([], 2)}, null)"
            f" on conflict (id) do update set {column} = excluded.{column} returning id, {column}"
        )


def script(chance, out):
    """One script: three tables, and what is asked about them."""
    query = Query(chance)
    columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    for table in "pqr":
        out.do(f"drop table if exists {table}")
        out.do(f"create table {table}(id integer primary key, {columns})")
        for number in range(chance.randint(1, 6)):
            values = ["null" if chance.random() < 0.15 else chance.choice(VALUES[kind]) for kind in COLUMNS.values()]
            out.do(f"insert into {table} values ({number}, {', '.join(values)})")
    for _ in range(12):
        if chance.random() < 0.2:
            out.do(query.write())
        else:
            out.ask(query.select())
