//! What statements become.

use super::*;

/// How much stack a statement takes that is nested as deep as it may be.
#[test]
fn deep_statements_end_well_before_the_stack() {
    let deep = |count: usize| {
        let nested = |open: &str, inner: &str, close: &str| {
            format!("select {}{inner}{}", open.repeat(count), close.repeat(count))
        };
        [
            nested("(", "1", ")"),
            nested("- ", "1", ""),
            nested("not ", "true", ""),
            nested("1 + ", "1", ""),
            nested("", "1", "::int"),
            nested("case when true then ", "1", " end"),
            nested("(select ", "1", ")"),
            nested("abs(", "1", ")"),
            nested("true in (select ", "true", ")"),
            nested("1 union select ", "1", ""),
            nested("* from (select ", "1 as a", ") as t"),
            nested("1 from (values (1)) a(x) join ", "(values (1)) b(x) using (x)", ""),
        ]
    };
    let try_all = move || {
        for count in [5, 20, 50, 100, 200, 400, 800, 1_200, 3_000] {
            for sql in deep(count) {
                if let Err(error) = translate(&sql, &Schema::default(), "UTC", &[]) {
                    assert!(["54001", "42601", "0A000"].contains(&error.sqlstate), "{}: {error:?}", &sql[..40]);
                }
            }
        }
    };
    std::thread::Builder::new().stack_size(crate::server::STACK_BYTES / 2).spawn(try_all).unwrap().join().unwrap();
}
