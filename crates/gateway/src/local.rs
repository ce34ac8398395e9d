//! A store in this process, without replicas: for tests.

use crate::store::{Store, StoreError};
use bezant_core::service::{Agreed, Service};
use bezant_core::services::kv::{Kv, KvOperation, KvResult};
use bezant_core::time::Instant;
use bezant_core::wire::Wire;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// The key-value service behind a lock. This machine's clock has the agreed time.
#[derive(Debug, Default)]
pub struct Local(Mutex<Kv>);

impl Store for Local {
    fn call(&self, operation: &KvOperation) -> Result<KvResult, StoreError> {
        let mut service = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let agreed = Agreed { time: Instant(now.as_micros() as u64), ..Agreed::default() };
        let result = service.execute(&operation.to_bytes(), &agreed);
        KvResult::from_bytes(result).map_err(|error| StoreError::Refused(format!("unreadable result: {error:?}")))
    }
}
