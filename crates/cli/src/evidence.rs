//! Where two states differ, in the words of the services that this program has.

use bezant_core::checkpoint::Tree;
use bezant_sql::{Comparison, Difference, Place, compare};
use serde_json::{Value, json};

/// Pages that are named.
const PAGES_MAX: usize = 128;

/// For the record of a replica whose state was wrong.
pub(crate) fn describe_states(mine: &Tree, agreed: &Tree, fields: &mut Value) {
    describe(&compare(mine, agreed), fields);
}

/// Adds where two states differ.
fn describe(comparison: &Comparison, fields: &mut Value) {
    let place = |number: u32, what: &str| json!({ "number": number, "holds": what });
    fields["places"] =
        comparison.pages.iter().take(PAGES_MAX).map(|(number, what)| place(*number, what)).collect::<Vec<_>>().into();
    fields["pages_different"] = comparison.pages.len().into();
    fields["differences"] = comparison.differences.iter().map(difference).collect::<Vec<_>>().into();
    fields["more"] = comparison.more.into();
}

fn difference(difference: &Difference) -> Value {
    let Difference { place, mine, agreed } = difference;
    let mut fields = match place {
        Place::Value { table, row, column } => json!({ "table": table, "row": row, "column": column }),
        Place::Row { table, row } => json!({ "table": table, "row": row }),
        Place::Key(key) => json!({ "key": key }),
        Place::Unreadable => json!({}),
    };
    fields["mine"] = json!(mine);
    fields["agreed"] = json!(agreed);
    fields
}
