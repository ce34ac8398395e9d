"""Makes the statements that the referee asks both servers.

    statements.py matrix|fuzz SEED COUNT > STATEMENTS
    statements.py plain < STATEMENTS > PLAIN

The second form leaves of each line the statement alone, as a line of its own with the values instead of parameters.

A line of JSON each: `sql`; `parameters`, pairs of a type and a text; `script`, those that share tables and follow each
other; `kind`, what is tried; `ordered`, whether the order of rows says something; `changes`, whether later statements
of the script depend on it. `matrix` goes through types and operators, and takes COUNT scripts of what there is to try,
all of them if COUNT is 0; `fuzz` makes COUNT scripts of queries over three tables of mixed types.
"""

import json
import random
import sys

import grammar
from types_of_postgresql import MIXED, TYPES, quoted

WHAT, SEED, COUNT = sys.argv[1], *(int(argument) for argument in (sys.argv[2:] + ["0", "0"])[:2])
chance = random.Random(SEED)
scripts = []


class Script:
    """Statements that follow each other."""

    def __init__(self, kind):
        self.kind, self.lines = kind, []
        scripts.append(self)

    def ask(self, sql, *parameters, ordered=False, changes=False):
        self.lines.append({
            "kind": self.kind, "sql": sql, "parameters": list(parameters), "ordered": ordered, "changes": changes,
        })

    def do(self, sql, *parameters):
        self.ask(sql, *parameters, changes=True)


# ---- Types and operators ----


def columns(type):
    """Edge values through a column, and what is said about them there."""
    script = Script(f"column {type.name}")
    script.do("drop table if exists r")
    script.do(f"create table r(id integer primary key, v {type.column})")
    for number, text in enumerate([*type.values, None]):
        script.do(f"insert into r values ({number}, {'null' if text is None else chr(39) + quoted(text) + chr(39)})")
    for number, text in enumerate(type.values, 100):
        if type.name not in ("boolean",) or text in ("true", "false"):
            script.do(f"insert into r values ($1, ${2}::{type.name})", ["integer", str(number)], ["text", text])
    for text in type.wrong:
        script.ask(f"insert into r values (999, '{quoted(text)}')", changes=True)
    script.ask("select id, v from r order by id", ordered=True)
    script.ask("select v::text, v is null from r order by id", ordered=True)
    script.ask("select count(*), count(v), count(distinct v) from r")
    if type.ordered:
        script.ask("select v from r order by v, id", ordered=True)
        script.ask("select v from r order by v desc nulls last, id", ordered=True)
        script.ask("select v, count(*) from r group by v order by v", ordered=True)
        script.ask("select distinct v from r")
        script.ask("select a.id, b.id from r a join r b on a.v = b.v order by 1, 2", ordered=True)
        script.ask("select a.id, b.id from r a join r b on a.v < b.v order by 1, 2", ordered=True)
        for text in type.values[:3]:
            script.ask(f"select id from r where v = '{quoted(text)}' order by id", ordered=True)
            script.ask(f"select id from r where v in ('{quoted(text)}', null) order by id", ordered=True)
            script.ask(f"select id from r where v between '{quoted(text)}' and '{quoted(text)}'")
        script.ask("select v, lag(v) over (order by v, id) from r order by v, id", ordered=True)
    if type.name not in ("boolean", "uuid", "json", "jsonb", "bytea"):
        script.ask("select min(v), max(v) from r")
    if type.sums:
        script.ask("select sum(v) from r where id < 3")
        script.ask("select avg(v) from r where id < 3")
        script.ask("select sum(v) from r")
        script.ask("select avg(v) from r")
        script.ask("select -v, abs(v) from r where id = 1")
    script.ask("select coalesce(v, null) from r order by id", ordered=True)
    script.ask("select case when id > 2 then v end from r order by id", ordered=True)
    script.ask("select nullif(v, v) from r order by id", ordered=True)
    script.do("update r set v = null where id = 0 returning id, v")
    script.do("update r set v = (select v from r where id = 1) where id = 0 returning v")
    script.do(
        "insert into r select id, v from r where id = 1 on conflict (id) do update set v = excluded.v returning v",
    )
    script.do("delete from r where v is null returning id")
    script.ask("select v from r union select v from r" if type.ordered else "select v from r union all select v from r")
    script.do(f"create table s(v {type.column} unique)" if type.ordered else f"create table s(v {type.column})")
    script.do("insert into s select v from r where id = 1")
    script.ask("insert into s select v from r where id = 1", changes=True)
    script.do("drop table s")


def comparisons(type):
    if not type.ordered:
        return
    script = Script(f"comparison {type.name}")
    values = [type.literal(text) for text in [*type.values, None]]
    for left in values:
        for right in values:
            script.ask(f"select {left} = {right}, {left} <> {right}, {left} < {right}, {left} >= {right}")
        script.ask(f"select {left} is distinct from {values[0]}, {left} in ({values[0]}, {values[1]})")
        script.ask(f"select greatest({left}, {values[0]}), least({left}, {values[1]})")


def arithmetic(type):
    script = Script(f"arithmetic {type.name}")
    values = [type.literal(text) for text in type.values]
    for operator in type.arithmetic:
        for left in values:
            for right in values:
                script.ask(f"select {left} {operator} {right}")
        script.ask(f"select {values[0]} {operator} null, null {operator} {values[1]}")
        script.ask(f"select {values[1]} {operator} 2, 2 {operator} {values[1]}, {values[1]} {operator} 1.5")


def mixtures():
    names = {type.name: type for type in TYPES}
    for first, second in MIXED:
        script = Script(f"mixed {first} {second}")
        for left in names[first].values[:4]:
            for right in names[second].values[:4]:
                pair = names[first].literal(left), names[second].literal(right)
                for a, b in (pair, pair[::-1]):
                    script.ask(f"select {a} + {b}, {a} - {b}, {a} * {b}, {a} < {b}, {a} = {b}")
                    script.ask(f"select {a} / {b}")
                    script.ask(f"select coalesce({a}, {b}), case when true then {a} else {b} end")


def casts():
    for source in TYPES:
        script = Script(f"cast from {source.name}")
        for target in TYPES:
            for text in [*source.values, None]:
                script.ask(f"select {source.literal(text)}::{target.name}")
        for text in source.wrong:
            script.ask(f"select {source.literal(text)}")
            script.ask("select $1::" + source.name, ["text", text])


def parameters():
    for type in TYPES:
        script = Script(f"parameter {type.name}")
        simple = [text for text in type.values if text == text.strip()]
        plain = {"boolean": ["true", "false"], "bytea": ["\\x00", "\\xff00"], "time": ["12:30:00"]}
        plain["date"] = ["2024-02-29", "0001-01-01"]
        plain["timestamp"] = ["2024-02-29T12:34:56.789000"]
        plain["timestamptz"] = ["2024-02-29T12:34:56.789000+00:00"]
        plain["uuid"] = simple[:2]
        name = type.name.split("(")[0]
        for text in plain.get(name, simple):
            script.ask(f"select $1::{type.name}", [name, text])
            script.ask(f"select $1::{type.name} is null, $1::{type.name}", [name, text])
        script.ask(f"select $1::{type.name}", [name, None])


CALLS_OF_TEXTS = """
    length({0});upper({0});lower({0});char_length({0});octet_length({0});trim({0});ltrim({0});rtrim({0})
    substring({0} from 2);substring({0} from 1 for 2);substr({0}, -1, 3);position('b' in {0});strpos({0}, 'c')
    left({0}, 2);right({0}, -1);lpad({0}, 5, '*');rpad({0}, 5);replace({0}, 'b', 'xx');{0} || 'z';{0} || 1
    {0} like '%b%';{0} ilike 'A%';{0} not like 'a_c';{0} like 'a\\%%';concat({0}, 1, null, true)
    reverse({0});repeat({0}, 2);md5({0});ascii({0});split_part({0}, 'b', 1);initcap({0});{0} similar to 'a%'
    starts_with({0}, 'a');coalesce({0}, 'none');nullif({0}, 'abc');concat_ws('-', {0}, 'x');quote_literal({0})
    split_part({0}, 'b', -1);split_part({0}, '', 1);split_part({0}, 'b', 0);repeat({0}, -1);repeat({0}, 2000000000)
    translate({0}, 'ab', 'x');sha256({0}::bytea);encode({0}::bytea, 'base64');encode({0}::bytea, 'escape')
    encode({0}::bytea, 'nothing');decode({0}, 'hex');decode({0}, 'base64');decode('YWJj', 'base64');md5({0}::bytea)"""
CALLS_OF_NUMBERS = """
    abs({0});ceil({0});floor({0});round({0});trunc({0});sign({0});- {0};{0} % 3;mod({0}, 3);sqrt({0});power({0}, 2)
    round({0}, 1);trunc({0}, 1);{0} ^ 2;{0} & 5;{0} << 2;div({0}, 2);to_char({0}, '999')"""
CALLS_OF_TIMES = """
    {0} + interval '1 month';{0} - interval '36 hours';date_trunc('month', {0});extract(year from {0})
    extract(epoch from {0});extract(dow from {0});{0}::date;{0}::time;{0} + 1;{0} - {0};{0} - date '2024-01-01'
    date_part('month', {0});to_char({0}, 'YYYY-MM-DD');age({0}, {0});{0} at time zone 'UTC';{0}::timestamp
    age({0}, timestamp '2020-02-29 13:00');age({0}, timestamptz '2031-05-31 01:00+02');to_char({0}, 'HH24:MI:SS.US TZH')
    to_char({0}, 'Day, FMDDth Month IYYY-IW');to_char({0}, '');to_timestamp(1700000000.5);make_date(2024, 2, 30)
    make_date(2024, 2, 29);make_timestamp(2024, 2, 29, 12, 30, 1.5);date_part('hour', {0});date_part('epoch', {0})"""
CALLS_OF_INTERVALS = "{0};{0} * 2;- {0};{0} / 3;{0} + {0};extract(epoch from {0});{0}::text"
CALLS_OF_INTERVALS += ";date_part('day', {0});extract(month from {0})"


def functions():
    numbers = "7|-7|7.5|-2.55|2.5::float8|1e10::real|3::smallint|9223372036854775807|null"
    times = "date '2024-01-31'|timestamp '2024-02-29 12:34:56.5'|timestamptz '2024-02-29 23:00+00'|time '12:30'"
    spans = "interval '1 day'|interval '1 mon 2 days 03:04:05.6'|interval '-1 hour'|interval 'P1Y2M'|interval 'x'"
    for what, calls, values in (
        ("texts", CALLS_OF_TEXTS, "''|'abc'|'\u00c4b c'|null::text|'a%b_c'"), ("numbers", CALLS_OF_NUMBERS, numbers),
        ("times", CALLS_OF_TIMES, times), ("intervals", CALLS_OF_INTERVALS, spans),
    ):
        script = Script(f"functions of {what}")
        for call in ";".join(calls.strip().splitlines()).split(";"):
            for value in values.split("|"):
                script.ask(f"select {call.strip().format(value)}")


CONSTRAINTS = """
    drop table if exists child
    drop table if exists parent
    create table parent(id integer primary key, name text not null unique, n numeric(6,2) default 1.5 check (n > 0))
    create table child(id integer primary key, p integer references parent(id) on delete cascade, at date not null)
    insert into parent(id, name) values (1, 'one'), (2, 'two') returning *
    insert into parent(id, name) values (1, 'again')
    insert into parent(id, name) values (3, 'one')
    insert into parent(id) values (4)
    insert into parent values (5, 'five', -1)
    insert into parent values (5, 'five', 0.001)
    insert into parent values (5, 'five', 10000)
    insert into parent values (5, 'five', default) returning n
    insert into parent values (6)
    insert into parent values (6, 'six', 6, 6)
    insert into child values (1, 1, '2024-01-01') returning id
    insert into child values (2, 9, '2024-01-01')
    insert into child values (2, 2, null)
    insert into child values (2, 2, 'x')
    insert into child values (2, null, date '2024-01-01' + 1) returning p, at
    insert into parent values (1, 'new') on conflict on constraint parent_pkey do nothing returning id
    insert into parent values (7, 'two') on conflict on constraint parent_name_key do update set n = 3 returning *
    insert into parent values (7, 'two') on conflict on constraint nothing do nothing
    update parent set id = 1 where id = 2
    update parent set name = null where id = 2
    update parent set n = n - 5 where id = 2
    update parent set n = n * 2, name = name || '!' where id = 2 returning *
    update child set at = at + 7, p = 2 where p is null returning *
    insert into parent values (1, 'new') on conflict do nothing returning id
    insert into parent values (1, 'new') on conflict (id) do update set name = excluded.name, n = 7 returning *
    insert into parent values (7, 'two!') on conflict (name) do update set n = 99 where parent.id > 100 returning *
    update parent set n = c.id from child c where c.p = parent.id returning parent.id, parent.n
    delete from child using parent where parent.id = child.p and parent.name = 'new' returning child.at
    delete from parent where id = 2 returning id
    select id, name, n from parent order by id
    select id, p, at from child order by id
    select * from nowhere
    select nothing from parent
    select parent.nothing from parent
    select x.id from parent
    select id from parent, child
    select no_such_function(1)
    selec 1
    select 'x
    select 1 +
    create table parent(id integer)
    create table if not exists parent(id integer)
    drop table nowhere
    drop table if exists nowhere
    insert into nowhere values (1)
    insert into parent(nothing) values (1)
    update parent set nothing = 1
    alter table parent add column extra integer default 7
    select id, extra from parent order by id
    create index parent_by_n on parent(n)
    create unique index parent_by_extra on parent(extra) where id > 1
    drop index parent_by_n
    create view v as select id, n from parent where n > 1
    select * from v order by id
    create or replace view v as select id, n, name from parent
    create or replace view v as select id, name, n from parent
    create or replace view parent as select 1
    select * from v order by id
    drop view v, w
    drop view if exists v, w
    alter table parent add column a integer default 1, add column b text, drop column extra
    alter table parent drop column a, drop column nothing
    alter table parent drop column if exists nothing, drop column b
    select * from parent order by id
    with x as (insert into child values (90, null, '2024-01-01') returning *) select at as day, id from x
    with x as (update child set at = at + 1 where id = 90 returning id, at) select x.* from x
    with x as (delete from child where id = 90 returning id, p) select y.p, y.id from x y
    with x as (delete from child where id = 90 returning id) select nothing from x
    update parent set (name, n) = (select 'sub', 4.50) where id = 1 returning *
    update parent set (name, n) = (select name, n from parent) where id = 1
    update parent set (name, n) = row('row', 5) where id = 1 returning *
    truncate parent, nowhere
    truncate parent
    truncate child restart identity
    truncate parent continue identity cascade
    create index on child(p)
    create index on child(p, (p + 1))
    drop index child_p_idx, child_p_expr_idx
    drop index child_p_idx
    comment on column child.p is 'whose'
    comment on table nowhere is 'x'
    drop table parent
    drop table child, parent
    drop table if exists nowhere, child
    drop table child
    drop table parent"""
QUERIES = """
    select k, count(*) filter (where v > 1), string_agg(t, ',' order by t), bool_and(v > 0) from m group by k order by k
    select k, sum(v), avg(v), min(t), max(d) from m group by k having count(*) > 1 order by k
    select k, v, rank() over (partition by k order by v desc), sum(v) over (order by id) from m order by id
    select id, lead(v, 1, 0) over w, first_value(t) over w from m window w as (partition by k order by id) order by id
    select * from m order by v desc nulls last, id limit 2 offset 1
    select distinct k from m order by k
    select distinct on (k) k, v from m order by k, v
    select m.id, n.id from m left join m n on n.v = m.v + 1 order by 1, 2
    select id from m where v = any(array[1, 2]) order by id
    select id from m where v = any('{1, 2, null}') order by id
    select id from m where k <> all('{a}'::text[]) order by id
    select id from m where k <> all('{"b", null}') order by id
    select id from m where d = any('{2024-01-01,2024-02-29}') or v = any('{}') order by id
    select id from m where v = any('{1,x}')
    select id from m where v = any('1,2')
    select id from m where v = any('{1,}')
    select id from m where (k, v) in (select k, max(v) from m group by k) order by id
    select id from m where v > (select avg(v) from m) order by id
    select id, (select count(*) from m o where o.k = m.k) from m order by id
    select id from m where exists (select 1 from m o where o.v > m.v and o.k = m.k) order by id
    select k from m union select t from m order by 1
    select k, v from m except select k, v from m where v > 1 order by 1, 2
    with recursive r(i) as (select 1 union all select i + 1 from r where i < 5) select i, i * 1.5 from r order by i
    with a as (select k, sum(v) as s from m group by k) select m.id, a.s from m join a using (k) order by m.id
    select * from (values (1, 'a'), (2, 'b')) as x(i, t) order by i
    select case k when 'a' then 1 when 'b' then 2.5 else null end from m order by id
    select coalesce(v, 0) + 1, v || '!', k || v from m order by id
    select t like 'x%', t ilike 'X%', t not like '%y', t ~ 'x' from m order by id
    select d + 1, d - date '2024-01-01', extract(month from d), date_trunc('month', d) from m order by id
    select sum(v), sum(v * 1.5), sum(v::real), avg(v::bigint), sum(v::bigint), count(distinct k) from m
    select sum(v), max(t), avg(v), count(*), bool_or(true) from m where false
    select v, count(*) from m group by v order by 2 desc, 1
    select v / 2, v % 2, v / 2.0, -v, v ^ 2 from m order by id
    select k as a, v as a from m order by id limit 1
    select id from m order by nothing
    select k, v from m group by k
    select sum(v) from m where sum(v) > 1
    select id from m where v = 'x'
    select id from m where t = 1
    select id from m where d = '2024-01-02' or d = 'x'
    select id from m where k
    select 1 where null
    select id from m limit -1
    select id from m where v in (1, '2', 3.5) order by id
    select id from m where d in ('2024-01-01', date '2024-01-02') order by id
    select 1 as one, 'x' as two, null as three, 1.50 as four, true as five
    select 1 = 1.0, 'a' < 'B', 'a' = 'a ', 1::real = 1::numeric, '1' = 1
    select 2147483647 + 1
    select 2147483648 + 1, 9223372036854775807 + 0, 9223372036854775808
    select 1 / 0
    select 1.0 / 3, 1 / 3.0, 2::real / 3, 1e0 / 3, 7 / 2, -7 / 2, -7 % 3
    select not true and false or true, true = (1 = 1), null and false, null or true
    select interval '1 day' * 3, date '2024-01-31' + interval '1 month', timestamp '2024-01-01' - timestamp '2023-01-01'
    select current_date = now()::date, current_timestamp is not null, localtimestamp is not null
    select * from generate_series(1, 10, 4)
    select g.n, m.id from generate_series(3, 1, -1) as g(n) left join m on m.id = g.n order by 1
    select * from generate_series(1.1, 4, 0.75)
    select * from generate_series(date '2024-01-31', '2024-06-30', '1 month') as d
    select * from generate_series(timestamp '2024-01-02', timestamp '2024-01-01', '-7 hours')
    select * from generate_series(1, 3, 0)
    select * from generate_series('a', 'b')
    select id, (select sum(g) from generate_series(1, m.id) g) from m order by id
    select * from lower('ABC') as l
    select x.y from abs(-3) as x(y)
    select * from count(1)
    select count(*) from current_schema() s where s = 'public'
    select distinct on (k) k, id from m order by k desc, v desc nulls last, id
    select distinct on (v, k) id from m order by k, v, id
    select distinct on (q) upper(k) as q, id from m order by q, 2 desc limit 2
    select distinct on (k) k, sum(v) from m group by k, t order by k, sum(v)
    select distinct on (k) id from m order by id
    select id from m where id > all(select v from m where v < 3) order by id
    select id, id < any(select v from m), id <> any(select v from m), id >= all(select v from m) from m order by id
    select row(1, 2) < row(1, 3), row(k, v) = ('a', 1), (k, v) in (row('a', 1), ('b', 2)) from m order by id
    values (2, 'a'), (1, 'b') order by 1 limit 1
    select row_to_json(m) from m order by id
    select json_agg(m order by id desc), jsonb_agg(m order by id) from m
    select k, json_agg(t order by id), jsonb_agg(d order by id) filter (where v > 0) from m group by k order by k
    select json_object_agg(id, t order by id), jsonb_object_agg(t, v) filter (where t is not null) from m
    select json_build_object('id', id, 'd', d, 'n', v * 1.50), jsonb_build_object('v', v, 'k', k) from m order by id
    select json_build_array(id, t, null, v = 1), to_jsonb(d), to_json(v::real) from m order by id
    select json_agg(v) over (order by id rows 1 preceding) from m order by id
    select jsonb_agg(m order by id)->1->>'t', jsonb_agg(m order by id) #>> '{2,k}', jsonb_agg(m) @> '[{"v":2}]' from m
    select '{"a":{"b":[1,"x"]}}'::json->'a'->'b'->-1, '{"a":1}'::jsonb ? 'a', '{"a":1}'::jsonb || '{"b":2}'
    select id from m where t ~ '^x' or t ~* 'Z{2}' or k !~ '[ab]' order by id
    select regexp_replace(t, '[a-z]', '<\\&>', 'g'), substring(t from '(x)y?') from m order by id
    select 'a' ~ 'a**'
    select string_agg(distinct k, ','), string_agg(distinct t, '-' order by t desc) filter (where id < 5) from m
    select k, string_agg(distinct t, '') from m group by k order by k
    select to_char(v, 'S99') from m
    select to_char(v * 1234.5, 'FM999,990.00'), to_char(v, '000.9') from m order by id
    select json_build_object('a')
    select json_agg('a')
    select id from m order by id offset 1 row fetch next row only
    select m.id, x.c from m, lateral (select count(*) as c from m) x order by id"""

ALTERATIONS = """
    drop view if exists v
    drop table if exists k
    drop table if exists p
    drop table if exists s
    drop table if exists g
    drop table if exists i
    create table p(a int, b text, c numeric(10,2), d varchar(5) default 'x', e date)
    create table k(id serial primary key, p int, q text)
    insert into p values (1, 'x', 1.50, 'abc', '2024-01-01'), (2, 'y', 2, null, null)
    insert into k(p, q) values (1, '1'), (2, '22'), (null, 'x')
    alter table k add foreign key (p) references p(a)
    alter table k add foreign key (p) references p
    alter table p add primary key (a)
    alter table p add primary key (b)
    alter table k add foreign key (p, q) references p(a)
    alter table k add foreign key (nosuch) references p(a)
    alter table k add foreign key (p) references p(nosuch)
    alter table k add foreign key (p) references nosuch(a)
    alter table k add foreign key (p) references p(a) on delete cascade on update set null
    insert into k(p) values (3)
    alter table k add constraint k_p_fkey unique (p)
    alter table p drop constraint p_pkey
    alter table p drop column a
    alter table p add constraint u unique (b, c), add constraint ok check (a < 10)
    insert into p values (3, 'x', 1.5)
    insert into p values (33, 'z', 1)
    alter table p add check (c > 1.7)
    alter table p add check (c > 0)
    alter table p add check (c > 0)
    alter table p add check (c > a or b is not null)
    alter table p add check (c + 1)
    alter table p add check (nosuch > 1)
    alter table p add unique (nosuch)
    alter table p add constraint u check (a > 0)
    alter table p drop constraint nosuch
    alter table p drop constraint if exists nosuch
    alter table p rename constraint u to w
    alter table p rename constraint u to w
    alter table p rename constraint w to ok
    alter table p alter b set not null
    alter table p alter e set not null
    alter table p alter a drop not null
    alter table p alter nosuch drop not null
    alter table p alter b drop not null, alter b set default 'dflt'
    insert into p(a, c) values (5, 7)
    select * from p order by a
    alter table p alter c set default 'x'
    alter table p alter c set default now()
    alter table p alter c set default 1 + 0.5
    alter table p alter b type int
    alter table p alter b type int using 1
    alter table p alter b type varchar(2)
    alter table p alter d type varchar(2)
    alter table p alter d type varchar(2) using left(d, 2)
    select * from p order by a
    alter table p drop constraint w
    alter table p drop constraint p_c_check, drop constraint p_c_check1, drop constraint p_check
    alter table p alter c type int
    insert into p(a, b) values (6, 'q')
    select * from p order by a
    alter table p alter c type bigint, alter e type timestamp, alter a type bigint
    select * from p order by a
    alter table k alter q type int using length(q)
    select q + 1 from k order by id
    alter table k alter q type boolean
    alter table k alter q type boolean using q > 1
    select q from k order by id
    alter table k alter q type text
    select q || '!' from k order by id
    alter table k add column r int not null
    alter table k add column r int not null default 5
    alter table k add column r int
    alter table k add column if not exists r int
    alter table k add column s text unique default 'x'
    alter table k add column s text unique, add column t int check (t > 0) default 3
    insert into k(s, t) values ('a', 0)
    insert into k(s) values ('a')
    insert into k(s) values ('a')
    alter table k drop column s, drop column t
    alter table k drop column p
    select q, r from k order by q
    delete from p where a = 1
    alter table p drop constraint p_pkey
    alter table p drop constraint p_pkey
    insert into p(a, b) values (2, 'q')
    insert into p(a, b) values (null, 'q')
    alter table p add primary key (a)
    delete from p where b = 'q'
    alter table p add constraint pk primary key (a, c)
    alter table p add primary key (a, c)
    create view v as select a, b from p
    alter table p drop column b
    alter table v alter a type int
    alter table v add unique (a)
    drop view v
    create table s(id int primary key, up int)
    insert into s values (1, null), (2, 1)
    alter table s add foreign key (up) references s
    insert into s values (3, 4)
    delete from s where id = 1
    alter table s add unique (up), add constraint self foreign key (id) references s(up)
    delete from s
    alter table s add unique (up), add constraint self foreign key (id) references s(up)
    alter table s drop constraint s_up_key
    alter table s drop constraint self, drop constraint s_up_key
    alter table s drop column up
    alter table s alter id add generated always as identity
    insert into s default values returning id
    alter table s alter id add generated by default as identity
    alter table nosuch add unique (a)
    alter table if exists nosuch add unique (a)
    create table g(a int, b int generated always as (a * 2) stored)
    insert into g(a) values (1), (2)
    alter table g alter a set not null
    select * from g order by a
    alter table g alter b set default 1
    alter table g alter a type bigint
    alter table g drop column a
    alter table g add column c int generated always as (a + 1) stored
    select * from g order by a
    create index gi on g(a)
    create unique index gu on g((a + 1))
    alter table g alter a set default 5
    insert into g(a) values (1)
    insert into g default values returning a
    create table i(a int, b numeric)
    create index on i(b)
    create unique index iu on i(a) where a > 0
    insert into i values (1, 1.0), (2, 1.00)
    alter table i add unique (b)
    alter table i add unique (b)
    select * from i order by a"""

CURSORS = """
    fetch c
    fetch 0 from c
    fetch 2 from c
    fetch prior from c
    fetch backward from c
    fetch prior from c
    fetch relative 0 from c
    fetch relative 3 from c
    fetch absolute -2 from c
    fetch -1 in c
    fetch forward 2 from c
    fetch all in c
    fetch next from c
    fetch last from c
    fetch backward 2 from c
    fetch backward all from c
    fetch first from c
    fetch absolute 77 from c
    fetch forward 77 from nowhere
    fetch sideways from c"""


def sessions():
    for kind, story in (("constraints", CONSTRAINTS), ("alterations", ALTERATIONS)):
        script = Script(kind)
        for line in story.strip().splitlines():
            sql = line.strip()
            if sql.split(" ")[0] in ("select", "selec"):
                script.ask(sql, ordered="order by" in sql)
            else:
                # Only what succeeds in PostgreSQL changes something.
                script.do(sql)
    script = Script("queries")
    script.do("drop table if exists m")
    script.do("create table m(id integer primary key, k text, v integer, t varchar(10), d date)")
    rows = "(1, 'a', 1, 'xy', '2024-01-01'), (2, 'a', 2, 'x', '2024-01-02'), (3, 'b', 2, null, null)"
    script.do(f"insert into m values {rows}, (4, 'b', null, 'Zz', '2023-12-31'), (5, null, -7, '', '2024-02-29')")
    for line in QUERIES.strip().splitlines():
        script.ask(line.strip(), ordered="order by" in line.split(")")[-1])
    script.do("close all")
    script.do("declare c scroll cursor with hold for select id, k, v, d from m order by id")
    script.do("delete from m")
    for line in CURSORS.strip().splitlines():
        script.ask(line.strip(), ordered=True)
    for line in ("declare c cursor with hold for select 1", "declare d cursor for select 1", "close c", "close c"):
        script.do(line)


def matrix():
    sessions()
    for type in TYPES:
        columns(type)
        comparisons(type)
        if type.arithmetic:
            arithmetic(type)
    mixtures()
    casts()
    parameters()
    functions()


def plain():
    """Statements without parameters, for drivers that write values into them anyway."""
    for line in sys.stdin:
        statement = json.loads(line)
        sql = statement["sql"]
        for number, (kind, text) in reversed([*enumerate(statement["parameters"], 1)]):
            sql = sql.replace(f"${number}", "null" if text is None else f"'{quoted(text)}'")
        print(sql.replace("\\", "\\\\").replace("\n", "\\n"))


def main():
    if WHAT == "plain":
        plain()
        return
    if WHAT == "matrix":
        matrix()
    else:
        for _ in range(COUNT):
            grammar.script(chance, Script("fuzz"))
    chosen = scripts if not COUNT or len(scripts) <= COUNT else chance.sample(scripts, COUNT)
    for number, script in enumerate(chosen):
        for line in script.lines:
            print(json.dumps({"script": number, **line}))


main()
