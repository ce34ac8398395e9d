//! `channel = "tls"`: TLS 1.3 without I/O of its own, on the same readiness loop.
//!
//! Certificates prove nothing here: each process makes itself one at its start, and nobody looks at the name in it. Who
//! is at the other end is what the [handshake](super::handshake) proves, with the keys that the cluster file pins, and
//! its MACs cover the TLS exporter of this very connection: someone in the middle would have two connections with two
//! exporters, and no key to make the proofs anew.

use bezant_core::wire::{Rope, Sink};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, Connection, DigitallySignedStruct, ServerConfig, ServerConnection};
use rustls::{Error, SignatureScheme, version::TLS13};
use std::io::{self, BufRead, IoSlice, Write};
use std::sync::Arc;

/// The label under which the exporter is taken.
const EXPORTER_LABEL: &[u8] = b"EXPORTER-bezant-link";
/// The name in every certificate.
const NAME: &str = "bezant";
/// The longest record: header, content, and what encryption adds.
const RECORD_BYTES_MAX: usize = 5 + (16 << 10) + 256;

/// What all TLS links of a process share.
#[derive(Clone, Debug)]
pub(super) struct TlsSettings {
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
}

impl TlsSettings {
    /// Makes a fresh key and certificate.
    ///
    /// # Errors
    /// If the cryptography library fails to.
    pub(super) fn generate() -> io::Result<Self> {
        let provider = Arc::new(ring::default_provider());
        let certified = rcgen::generate_simple_self_signed([NAME.to_owned()]).map_err(io::Error::other)?;
        let key = PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
        let mut server = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&TLS13])
            .map_err(io::Error::other)?
            .with_no_client_auth()
            .with_single_cert(vec![certified.cert.der().clone()], key.into())
            .map_err(io::Error::other)?;
        // Nothing is resumed: each connection proves itself anew.
        server.send_tls13_tickets = 0;
        let mut client = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&TLS13])
            .map_err(io::Error::other)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
            .with_no_client_auth();
        client.resumption = rustls::client::Resumption::disabled();
        Ok(Self { client: Arc::new(client), server: Arc::new(server) })
    }

    /// The side that connects.
    pub(super) fn dial(&self) -> io::Result<Tls> {
        let name = ServerName::try_from(NAME).map_err(io::Error::other)?;
        let session = ClientConnection::new(Arc::clone(&self.client), name).map_err(io::Error::other)?;
        Ok(Tls::new(session.into()))
    }

    /// The side that accepts.
    pub(super) fn accept(&self) -> io::Result<Tls> {
        let session = ServerConnection::new(Arc::clone(&self.server)).map_err(io::Error::other)?;
        Ok(Tls::new(session.into()))
    }
}

/// Accepts any certificate whose key signed the TLS handshake. See the [module](self) for why that is enough.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("only TLS 1.3 is spoken here".into()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// The TLS state of one link.
#[derive(Debug)]
pub(super) struct Tls {
    session: Connection,
    bound: bool,
    /// Bytes that came after the last plaintext: no fewer than the session holds back, but for one read of 4 KiB.
    held: usize,
    /// The other side says nothing more.
    closed: bool,
}

impl Tls {
    fn new(mut session: Connection) -> Self {
        // The link bounds its own queue; what is handed over here is sealed at once.
        session.set_buffer_limit(None);
        Self { session, bound: false, held: 0, closed: false }
    }

    /// Opens what came from the socket and appends the plaintext. What comes after the other side's end is dropped: the
    /// session would not take it.
    ///
    /// More than a record without any plaintext is refused. The session would put messages of TLS itself together that
    /// are much longer, and nobody whom we talk to has any of that length.
    pub(super) fn receive(&mut self, mut wire: &[u8], input: &mut Vec<u8>) -> Result<(), Error> {
        while !wire.is_empty() && !self.closed {
            self.held += self.session.read_tls(&mut wire).map_err(|error| Error::General(error.to_string()))?;
            self.closed = self.session.process_new_packets()?.peer_has_closed();
            let mut reader = self.session.reader();
            while let Ok(plain) = reader.fill_buf()
                && !plain.is_empty()
            {
                input.extend_from_slice(plain);
                let taken = plain.len();
                reader.consume(taken);
                self.held = 0;
            }
            if self.held > RECORD_BYTES_MAX {
                return Err(Error::General("much, and nothing in it".into()));
            }
        }
        Ok(())
    }

    /// Bytes of a record that has begun, as far as they are known.
    pub(super) const fn held(&self) -> usize {
        self.held
    }

    /// Whether the other side has said that it says nothing more.
    pub(super) const fn is_closed(&self) -> bool {
        self.closed
    }

    /// Seals all of `plain` and appends it, with whatever TLS itself has to say.
    pub(super) fn seal(&mut self, plain: &mut Rope, wire: &mut Rope) -> io::Result<()> {
        if !self.session.is_handshaking() {
            // In one call: each would begin a TLS record.
            let segments: Vec<IoSlice<'_>> = plain.segments().map(IoSlice::new).collect();
            if self.session.writer().write_vectored(&segments)? != plain.len() {
                return Err(io::ErrorKind::WriteZero.into());
            }
            plain.clear();
        }
        while self.session.wants_write() {
            self.session.write_tls(&mut Append(wire))?;
        }
        Ok(())
    }

    /// Whether TLS itself has something to say.
    pub(super) fn wants_write(&self) -> bool {
        self.session.wants_write()
    }

    /// Once, when the TLS handshake is done: what names this connection and no other.
    pub(super) fn binding(&mut self) -> Option<[u8; 32]> {
        if self.bound || self.session.is_handshaking() {
            return None;
        }
        self.bound = true;
        self.session.export_keying_material([0; 32], EXPORTER_LABEL, None).ok()
    }
}

/// Writes to the end of a rope.
struct Append<'a>(&'a mut Rope);

impl Write for Append<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The other side, by hand.
#[cfg(test)]
pub(super) mod testing {
    use super::TlsSettings;
    use rustls::Connection;
    use std::io::Write;
    use std::net::{SocketAddr, TcpStream};

    pub(in super::super) struct Raw {
        session: Connection,
        socket: TcpStream,
    }

    impl Raw {
        /// Connects and does TLS' handshake. `meanwhile` lets the other side go on.
        pub(in super::super) fn connect(address: SocketAddr, mut meanwhile: impl FnMut()) -> Self {
            let mut session = TlsSettings::generate().unwrap().dial().unwrap().session;
            let mut socket = TcpStream::connect(address).unwrap();
            socket.set_nonblocking(true).unwrap();
            while session.is_handshaking() || session.wants_write() {
                while session.wants_write() {
                    session.write_tls(&mut socket).unwrap();
                }
                meanwhile();
                if session.is_handshaking() && session.read_tls(&mut socket).is_ok() {
                    session.process_new_packets().unwrap();
                }
            }
            Self { session, socket }
        }

        /// Says that nothing more will be said, and says something more, at once.
        pub(in super::super) fn end_and_say(&mut self, bytes: &[u8]) {
            self.session.send_close_notify();
            let mut wire = Vec::new();
            while self.session.wants_write() {
                self.session.write_tls(&mut wire).unwrap();
            }
            wire.extend_from_slice(bytes);
            self.socket.write_all(&wire).unwrap();
        }
    }
}
