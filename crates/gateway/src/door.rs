//! Who may come in, and how.

use crate::password::Password;
use crate::stream::Stream;
use crate::tls::Tls;
use std::sync::Arc;

/// What a gateway asks of its clients. By default nothing.
#[derive(Clone, Debug, Default)]
pub struct Door {
    /// What they must know.
    pub password: Option<Arc<Password>>,
    /// They must encrypt, but for those on a Unix socket: see [`Self::tls_for`].
    pub tls: Option<Tls>,
}

impl Door {
    /// What this client has to encrypt with. Nobody can listen on a Unix socket, and PostgreSQL's clients do not even
    /// ask for TLS there, so nobody has to.
    pub fn tls_for(&self, stream: &Stream) -> Option<&Tls> {
        self.tls.as_ref().filter(|_| !stream.is_local())
    }
}
