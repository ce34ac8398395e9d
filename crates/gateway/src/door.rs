//! Who may come in, and how.

use crate::password::Password;
use crate::tls::Tls;
use std::sync::Arc;

/// What a gateway asks of its clients. By default nothing.
#[derive(Clone, Debug, Default)]
pub struct Door {
    /// What they must know.
    pub password: Option<Arc<Password>>,
    /// They must encrypt.
    pub tls: Option<Tls>,
}
