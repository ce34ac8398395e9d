//! What a cluster replicates unless it is told otherwise: SQL tables, and keys with values beside them.
//!
//! Two services under one root: what comes from a SQL client goes to [`Sql`], everything else to [`Kv`]. So one
//! cluster serves the PostgreSQL and the Redis gateway at once.

use crate::pages::KV;
use crate::request::Request;
use crate::roles::Role;
use crate::service::Sql;
use bezant_core::digest::Digest;
use bezant_core::service::{Agreed, Asker, BadState, NotReadOnly, Operation, PageNumber, Service, in_turn};
use bezant_core::services::kv::{Kv, KvOperation, KvResult};
use bezant_core::wire::Wire;
use bytes::Bytes;

/// See the [module](self).
#[derive(Debug, Default)]
pub struct Database {
    sql: Sql,
    kv: Kv,
}

impl Database {
    /// Without tables and keys.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Service for Database {
    fn execute(&mut self, operation: &[u8], agreed: &Agreed) -> Bytes {
        if Request::is_request(operation) {
            return self.sql.execute(operation, agreed);
        }
        // Who reads may be the one for whom keys are removed whose time is over.
        let writes = || {
            let operation = KvOperation::from_bytes(Bytes::copy_from_slice(operation));
            operation.is_ok_and(|operation| !operation.is_read_only())
        };
        match self.sql.role(&agreed.asker) {
            Role::Writer | Role::Admin => self.kv.execute(operation, agreed),
            Role::Reader if !writes() => self.kv.execute(operation, agreed),
            Role::Reader | Role::None => KvResult::Denied.to_bytes().into(),
        }
    }

    /// What follows one another for the tables is executed together, whatever comes before and after it for the keys.
    fn execute_many(&mut self, operations: &[Operation]) -> Vec<Bytes> {
        let is_sql = |operation: &Operation| Request::is_request(&operation.bytes);
        let mut results = Vec::with_capacity(operations.len());
        let mut end = 0;
        for stretch in operations.chunk_by(|one, next| is_sql(one) == is_sql(next)) {
            end += stretch.len();
            if is_sql(&stretch[0]) {
                self.sql.execute_together(&operations[..end], &mut results);
            } else {
                in_turn(&operations[..end], &mut results, |Operation { bytes, agreed }| {
                    Some(self.execute(bytes, agreed))
                });
            }
            if results.len() < end {
                break;
            }
        }
        results
    }

    fn run_max(&self) -> usize {
        self.sql.run_max()
    }

    fn take_written(&mut self) -> Digest {
        let (tables, keys) = (self.sql.take_written(), self.kv.take_written());
        if keys == Digest::ZERO { tables } else { tables.chain(keys) }
    }

    fn authorize(&mut self, identification: &[u8], agreed: &Agreed) -> bool {
        self.sql.authorize(identification, agreed)
    }

    fn may_close(&self, asker: &Asker) -> bool {
        self.sql.may_close(asker)
    }

    fn query(&self, operation: &[u8], asker: &Asker) -> Result<Bytes, NotReadOnly> {
        match Request::is_request(operation) {
            true => self.sql.query(operation, asker),
            false if self.sql.role(asker) == Role::None => Ok(KvResult::Denied.to_bytes().into()),
            false => self.kv.query(operation, asker),
        }
    }

    fn ordered_query(&mut self, operation: &[u8], agreed: &Agreed) -> Result<Bytes, NotReadOnly> {
        match Request::is_request(operation) {
            true => self.sql.ordered_query(operation, agreed),
            false => self.query(operation, &agreed.asker),
        }
    }

    fn save(&mut self, write: &mut dyn FnMut(PageNumber, Option<Bytes>)) {
        self.sql.save(write);
        self.kv.save(&mut |number, page| write(KV + number, page));
    }

    fn load(&mut self, pages: &mut dyn Iterator<Item = (PageNumber, Option<Bytes>)>) -> Result<(), BadState> {
        let (of_kv, of_sql): (Vec<_>, Vec<_>) = pages.partition(|(number, _)| *number >= KV);
        if !of_sql.is_empty() {
            self.sql.load(&mut of_sql.into_iter())?;
        }
        self.kv.load(&mut of_kv.into_iter().map(|(number, page)| (number - KV, page)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Response, Statement};
    use bezant_core::ids::PublicKey;
    use bezant_core::service::one_by_one;
    use bezant_core::services::kv::{Condition, Until};
    use bezant_core::time::Instant;
    use std::collections::BTreeMap;

    #[test]
    fn both_services_share_one_state() {
        let (mut database, agreed) = (Database::new(), Agreed::default());
        let set = KvOperation::Set { key: "k".into(), value: "v".into(), condition: Condition::Always };
        assert_eq!(database.execute(&set.to_bytes(), &agreed), KvResult::Done.to_bytes());
        let create = Request::one(Statement::new("create table t(a)"));
        let response = Response::from_bytes(database.execute(&create.to_bytes(), &agreed)).unwrap();
        assert!(matches!(response, Response::Done(_)));

        let mut pages = BTreeMap::new();
        database.save(&mut |number, page| _ = pages.insert(number, page));
        let mut other = Database::new();
        other.save(&mut |_, _| ());
        other.load(&mut pages.into_iter()).unwrap();
        let get = KvOperation::Get { key: "k".into() };
        assert_eq!(
            other.query(&get.to_bytes(), &Asker::default()),
            Ok(KvResult::Value(Some("v".into())).to_bytes().into())
        );
        let read = Request::one(Statement::new("select * from t"));
        assert_eq!(other.query(&read.to_bytes(), &agreed.asker), database.query(&read.to_bytes(), &agreed.asker));
    }

    /// Each operation gets what it gets by itself, and those for the tables in between share their transactions.
    #[test]
    fn operations_for_keys_part_those_for_tables_and_nothing_else() {
        let [mut together, mut apart] = [(); 2].map(|()| Database::new());
        let agreed = Agreed { time: Instant(1_000_000), ..Agreed::default() };
        let sql = |text: &str| Bytes::from(Request::one(Statement::new(text)).to_bytes());
        let set = KvOperation::Set { key: "k".into(), value: "v".into(), condition: Condition::Always };
        let create = sql("create table t(a)");
        let mut operations = vec![sql("insert into t values (random())"); 9];
        operations.insert(3, set.to_bytes().into());
        operations.insert(6, Bytes::from_static(b"nonsense"));
        let operations = Operation::of_bundle(&operations, &agreed);
        together.execute(&create, &agreed);
        apart.execute(&create, &agreed);
        let transactions = |database: &mut Database| {
            let mut count = 0;
            database.save(&mut |number, page| {
                let page = page.filter(|_| number == 0);
                count = page.map_or(count, |page| u32::from_be_bytes([page[24], page[25], page[26], page[27]]));
            });
            count
        };
        let before = [&mut together, &mut apart].map(transactions);
        let results = together.execute_many(&operations);
        let alone = one_by_one(&mut apart, &operations);
        let after = [&mut together, &mut apart].map(transactions);
        assert_eq!(results, alone);
        assert_eq!([after[0] - before[0], after[1] - before[1]], [3, 9]);
    }

    #[test]
    fn only_an_administrator_closes() {
        let mut database = Database::new();
        let asker = |who: u8| Asker { public_key: PublicKey([who; 32]), ..Asker::default() };
        assert!(database.may_close(&asker(1)), "whom the cluster file names is one unless it is said otherwise");
        for (who, role) in [(1, "reader"), (2, "writer"), (3, "admin")] {
            let key = format!("{who:02}").repeat(32);
            let sql = format!("insert into bezant_members values ('{key}', '{role}', null)");
            let agreed = Agreed { time: Instant(1_000_000), asker: asker(9), ..Agreed::default() };
            database.execute(&Request::one(Statement::new(sql)).to_bytes(), &agreed);
        }
        assert_eq!([1, 2, 3].map(|who| database.may_close(&asker(who))), [false, false, true]);
        assert!(!database.may_close(&Asker { joined: true, ..asker(7) }), "a stranger has no row");
    }

    #[test]
    fn a_reader_writes_nothing_and_sees_keys_go_all_the_same() {
        let mut database = Database::new();
        let mut ask = |who: u8, second: u64, operation: &KvOperation| {
            let asker = Asker { public_key: PublicKey([who; 32]), ..Asker::default() };
            let agreed = Agreed { time: Instant(second * 1_000_000), asker, ..Agreed::default() };
            let members = format!("insert into bezant_members values ('{}', 'reader', null)", "01".repeat(32));
            if second == 0 {
                database.execute(&Request::one(Statement::new(members)).to_bytes(), &agreed);
            }
            KvResult::from_bytes(database.execute(&operation.to_bytes(), &agreed)).unwrap()
        };
        let (key, value, condition) = (Bytes::from("k"), Bytes::from("v"), Condition::Always);
        let until = Some(Until::In(2_000));
        let set = KvOperation::SetUntil { key: key.clone(), value: value.clone(), condition, until };
        assert_eq!(ask(9, 0, &set), KvResult::Done);
        assert_eq!(ask(1, 1, &set), KvResult::Denied);
        assert_eq!(ask(1, 1, &KvOperation::Get { key: key.clone() }), KvResult::Value(Some(value)));
        let left = KvResult::Deadline { now_ms: 1_000, deadline_ms: Some(2_000) };
        assert_eq!(ask(1, 1, &KvOperation::Deadline { key: key.clone() }), left);
        assert_eq!(ask(1, 2, &KvOperation::Get { key }), KvResult::Value(None));
    }
}
