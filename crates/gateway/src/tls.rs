//! Encryption of the way to a gateway: TLS 1.3, with a certificate of the operator's.

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection};
use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;

/// A certificate and its key.
#[derive(Clone, Debug)]
pub struct Tls(Arc<ServerConfig>);

impl Tls {
    /// Takes a chain of certificates, the gateway's own first, and the key of that, both in PEM.
    ///
    /// # Errors
    /// In words, what is wrong with them.
    pub fn new(certificates: &[u8], key: &[u8]) -> Result<Self, String> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificates).collect();
        let chain = chain.map_err(|error| format!("no certificate: {error}"))?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| format!("no private key: {error}"))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key));
        config.map(|config| Self(Arc::new(config))).map_err(|error| error.to_string())
    }
}

/// A stream, encrypted or not yet. It may be one that never blocks.
#[derive(Debug)]
pub struct Channel<T> {
    stream: T,
    tls: Option<Box<ServerConnection>>,
}

impl<T: Read + Write> Channel<T> {
    /// One that is as it is.
    pub const fn new(stream: T) -> Self {
        Self { stream, tls: None }
    }

    /// What is below.
    pub const fn stream(&self) -> &T {
        &self.stream
    }

    /// From here on everything is encrypted.
    ///
    /// # Errors
    /// The library's.
    pub fn encrypt(&mut self, tls: &Tls) -> io::Result<()> {
        let connection = ServerConnection::new(Arc::clone(&tls.0)).map_err(io::Error::other)?;
        self.tls = Some(Box::new(connection));
        Ok(())
    }

    /// Whether everything is encrypted.
    pub const fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    /// Whether bytes wait here that the stream has not taken.
    pub fn is_waiting(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    /// Says that nothing follows, if the stream takes it.
    pub fn close(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
            let _ = self.push();
        }
    }

    /// Writes what waits here.
    fn push(&mut self) -> io::Result<()> {
        let Some(tls) = &mut self.tls else { return Ok(()) };
        while tls.wants_write() {
            if tls.write_tls(&mut self.stream)? == 0 {
                return Err(ErrorKind::WriteZero.into());
            }
        }
        Ok(())
    }

    /// The same as far as is possible without waiting.
    fn push_some(&mut self) -> io::Result<()> {
        match self.push() {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            pushed => pushed,
        }
    }
}

impl<T: Read + Write> Read for Channel<T> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let Some(tls) = &mut self.tls else { return self.stream.read(into) };
            match tls.reader().read(into) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // Who leaves without a word has left as well: messages say themselves where they end.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(0),
                read => return read,
            }
            self.push_some()?;
            let Some(tls) = &mut self.tls else { return Ok(0) };
            tls.read_tls(&mut self.stream)?;
            if let Err(error) = tls.process_new_packets() {
                // The other side is told why, if it still listens.
                let _ = self.push();
                return Err(io::Error::new(ErrorKind::InvalidData, error));
            }
        }
    }
}

impl<T: Read + Write> Write for Channel<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.push()?;
        let Some(tls) = &mut self.tls else { return self.stream.write(bytes) };
        let count = tls.writer().write(bytes)?;
        self.push_some()?;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.push()?;
        self.stream.flush()
    }
}
