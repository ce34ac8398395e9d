//! A store in this process, without replicas: for tests.

use crate::store::{Store, StoreError};
use bezant_core::service::{Agreed, Service};
use bezant_core::services::kv::{Kv, KvOperation, KvResult};
use bezant_core::wire::Wire;
use std::sync::{Mutex, PoisonError};

/// The key-value service behind a lock.
#[derive(Debug, Default)]
pub struct Local(Mutex<Kv>);

impl Store for Local {
    fn call(&self, operation: &KvOperation) -> Result<KvResult, StoreError> {
        let mut service = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let result = service.execute(&operation.to_bytes(), &Agreed::default());
        KvResult::from_bytes(result).map_err(|error| StoreError::Refused(format!("unreadable result: {error:?}")))
    }
}
