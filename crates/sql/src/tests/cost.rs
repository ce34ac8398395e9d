//! What a statement may cost: a statement never costs more than itself.

use super::*;
use crate::Limits;

/// A table of long texts `z`, as many as asked for.
fn texts(count: u32) -> String {
    format!(
        "with n(x) as (select 1 union all select x + 1 from n where x < {count}),
            s as materialized (select hex(zeroblob(500000)) as z)"
    )
}

/// Each of these took minutes with some hundreds of steps, and every replica with it.
#[test]
fn bytes_count_as_steps() {
    let mut node = Node::new();
    for expression in [
        "sum(instr(z, substr(z, 1, 400000) || x))",
        "sum(length(replace(z, substr(z, 1, 400000) || x, '')))",
        "sum(length(trim(x || z, z || x)))",
        "sum(z like '%' || substr(z, 1, 900) || x || '%')",
        "sum(z glob '*' || substr(z, 1, 900) || x || '*')",
        "sum(length(hex(zeroblob(500000 - x))))",
        "sum(length(randomblob(1000000 - x)))",
        "sum(z || x = z || 'a')",
        "sum(length(z))",
        "sum(upper(z) = lower(z))",
        "sum(z = z collate nocase)",
        "sum(json_valid('[\"' || z || '\"]'))",
        "sum(length(json_array(z, x)))",
        "sum(length(printf('%s%d', z, x)))",
        "sum(length(printf('%900000d', x)))",
        "count(distinct z || x)",
        "max(substr(z, x))",
        "length(group_concat(substr(z, 1, 10), z))",
    ] {
        let (kind, text) = node.error(&format!("{} select {expression} from n, s", texts(1_000_000)));
        assert!(matches!(kind, ErrorKind::TooSlow | ErrorKind::TooLarge), "{expression}: {kind:?} {text}");
    }
    let sorted = "select count(*) from (select substr(z, x) as y from n, s order by y)";
    assert_eq!(node.error(&format!("{} {sorted}", texts(1_000_000))).0, ErrorKind::TooSlow);
    // And what is no attack is none.
    assert_eq!(node.text(&format!("{} select sum(instr(z, 'a' || x)) from n, s", texts(20))), "0");
}

/// So are those of PostgreSQL's types: each of these would go on for minutes.
#[test]
fn functions_of_types_are_paid_for() {
    let mut node = Node::new();
    // A thirtieth of what a request may take, for a test that is not optimised.
    node.sql = std::mem::take(&mut node.sql).with_limits(Limits { steps: 300_000, ..Limits::default() });
    let number = format!("'{}.{}'", "7".repeat(900), "3".repeat(900));
    let (open, close) = ("[".repeat(900), "]".repeat(900));
    for expression in [
        "sum(pg_like(z, '%' || substr(z, 1, 9000) || x || '%'))".to_owned(),
        "sum(pg_ilike(z || 'a', '%0%0%0%0%0%0%' || x))".into(),
        "sum(pg_strpos(z, substr(z, 1, 400000) || x))".into(),
        "sum(length(pg_lpad(x, 1000000, 'ab')))".into(),
        "sum(length(pg_upper(z || x)))".into(),
        "sum(length(pg_substr(z, 400000, x)))".into(),
        "sum(pg_octet_length(pg_in_bytea('\\x' || z || substr('0' || x, -2))))".into(),
        "sum(length(pg_in_jsonb('[' || replace(z, '0', '1e99,') || x || ']')))".into(),
        "sum(length(pg_in_jsonb('{' || replace(substr(z, 1, 90000), '0', '\"a\":1,') || '\"b\":' || x || '}')))".into(),
        format!("sum(length(pg_in_jsonb('{open}' || x || '{close}')))"),
        "sum(length(pg_in_numeric(z || x)))".into(),
        "count(distinct z || x collate pg_numeric)".into(),
        format!("sum(length(pg_numeric_mul({number} || x, '0.5')))"),
        format!("sum(length(pg_numeric_div({number} || x, {number})))"),
        format!("sum(length(pg_numeric_mod({number} || x, '-0.7' || x)))"),
        format!("sum(length(pg_numeric_round({number} || x, 7)))"),
        "sum(length(pg_numeric_round(x, 1900)))".into(),
        format!("length(pg_numeric_sum({number} || x))"),
        format!("sum(pg_numeric_cmp({number} || x, {number}))"),
        "sum(pg_numeric_to_float8('0.1' || substr(z, 1, 1900) || x))".into(),
        "sum(length(pg_in_timestamptz('Mon Jan 5 2024 01:02:03.' || (100000 + x % 100000) || ' pm', '+02')))".into(),
        "sum(length(pg_in_interval(x % 1000 || ' days 5 hours 3 min 2.5 sec')))".into(),
        "sum(length(pg_out_float8(1e300 / x)))".into(),
        "sum(pg_int_add(x, 1, 32))".into(),
    ] {
        let (kind, text) = node.error(&format!("{} select {expression} from n, s", texts(100_000_000)));
        assert!(matches!(kind, ErrorKind::TooSlow | ErrorKind::TooLarge), "{expression}: {kind:?} {text}");
    }
}

/// A statement of 100 KB took gigabytes.
#[test]
fn memory_is_bounded() {
    let mut node = Node::new();
    let wide = (0..12)
        .fold("1".to_string(), |inner, _| format!("max({}, {inner})", vec!["hex(zeroblob(500000))"; 40].join(", ")));
    let (kind, text) = node.error(&format!("select length({wide})"));
    assert_eq!(kind, ErrorKind::TooLarge, "{text}");
    // So did preparing one.
    let doubled: String = (1..40).map(|n| format!(", a{n} as (select p.x from a{} p, a{} q)", n - 1, n - 1)).collect();
    let (kind, text) = node.error(&format!("with a0 as (select 1 x){doubled} select count(*) from a39"));
    assert!(matches!(kind, ErrorKind::TooLarge | ErrorKind::TooSlow | ErrorKind::Other), "{kind:?} {text}");
    assert_eq!(node.text("select 1"), "1");
}

/// Whether a replica with these limits executes a statement.
fn executes(node: &mut Node, limits: Limits, sql: &str) -> bool {
    node.sql = std::mem::take(&mut node.sql).with_limits(limits);
    matches!(node.batch(&[sql]), Response::Done(_))
}

/// Finds the least limit with which a replica executes a statement that has just started, and asks one for which it is
/// nothing new.
fn the_past_decides_nothing(old: &mut Node, sql: &str, limits: impl Fn(u64) -> Limits) {
    let (mut too_little, mut enough) = (0, 1 << 20);
    while too_little + 1 < enough {
        let middle = u64::midpoint(too_little, enough);
        match executes(&mut old.restarted(), limits(middle), sql) {
            true => enough = middle,
            false => too_little = middle,
        }
    }
    for _ in 0..3 {
        assert!(executes(old, Limits::default(), sql));
        _ = old.query(sql);
    }
    assert!(executes(old, limits(enough), sql), "{enough} is enough for a replica that has just started");
    assert!(!executes(old, limits(too_little), sql), "{too_little} is too little for a replica that has just started");
}

/// One replica has kept a statement, because it is old or answered a read; another prepares it anew.
#[test]
fn what_a_replica_has_kept_decides_nothing() {
    let mut node = Node::new();
    node.rows("create table t(a, b, c)");
    node.batch(&["create index i on t(a)", "create index j on t(b, a)", "create index k on t(a, b, c)"]);
    let terms: String = (0..300).map(|n| format!(" and x.a + y.b > {}", -n)).collect();
    let sql = format!("select count(*) from t x, t y, t z where x.a = y.b and y.c = z.a{terms}");
    the_past_decides_nothing(&mut node, &sql, |steps| Limits { steps, ..Limits::default() });
}

/// SQLite keeps what it finds out about a table. Who has it needs less memory, and must refuse what others refuse.
#[test]
fn what_a_replica_has_in_memory_decides_nothing() {
    let mut node = Node::new();
    let columns: Vec<String> = (0..1_500).map(|n| format!("c{n} text")).collect();
    node.rows(&format!("create table wide({})", columns.join(", ")));
    let sql = "insert into wide(c7) select c8 from wide limit 1";
    the_past_decides_nothing(&mut node, sql, |memory| Limits { memory, ..Limits::default() });
}

/// What rows are gathered into is memory, although SQLite does not allocate it.
#[test]
fn what_functions_hold_is_bounded() {
    let mut node = Node::new();
    let gathered = |bytes: u32| format!("length(pg_json_agg(hex(zeroblob({bytes}))))");
    let of = |list: String| {
        format!("with recursive n(x) as (select 1 union all select x + 1 from n where x < 200) select {list} from n")
    };
    let one = of(gathered(500));
    let four = of([500, 501, 502, 503].map(gathered).join(", "));
    let limits = |memory| Limits { memory, ..Limits::default() };
    assert!(executes(&mut node, limits(600_000), &one));
    assert!(executes(&mut node, limits(1_200_000), &four));
    assert!(!executes(&mut node, limits(600_000), &four));
    // It was given back.
    assert!((0..20).all(|_| executes(&mut node, limits(600_000), &one)));
    the_past_decides_nothing(&mut node, &one, limits);
}
