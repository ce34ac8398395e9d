//! Who is at the other end: mutual authentication with the keys that the cluster file pins.
//!
//! Upon connecting, four frames cross:
//!
//! 1. initiator → acceptor: HELLO(magic, version, cluster digest, who, nonce);
//! 2. acceptor → initiator: ANSWER(its own HELLO, MAC over both HELLOs);
//! 3. initiator → acceptor: PROOF(MAC over both HELLOs);
//! 4. acceptor → initiator: READY: from now on replies find their way.
//!
//! Either side may say REFUSE(reason) instead, so that the other can tell its operator why. The MACs are those of the
//! pairwise keys. The MAC'd statement names the direction and the channel binding (the TLS exporter of this very
//! connection, empty on a plain channel), so that a proof is good for one connection, one direction and one pair of
//! nonces. Where clients may join, an initiator may name a key that nobody has pinned: it proves that it holds it. A
//! REFUSE is not authenticated: whoever can forge one can cut the connection as well.
//!
//! Replicas also say which build of the service they run. Two that run different ones would come to different states,
//! each in good faith: they refuse each other, and both name both.

use bezant_core::auth::{Keyring, Tag};
use bezant_core::digest::Digest;
use bezant_core::ids::{ClientId, IdentityId, Principal, PublicKey, ReplicaId};
use bezant_core::wire::{Reader, Sink, Wire, WireError};
use bytes::Bytes;
use std::fmt;

/// The longest frame before authentication.
pub const HANDSHAKE_BYTES_MAX: usize = 256;

/// Sessions that one client connection may carry.
pub const SESSIONS_PER_CONNECTION_MAX: u32 = 8192;

const MAGIC: [u8; 4] = *b"BZNT";
/// The version of the wire: sides with different ones refuse each other.
pub const VERSION: u16 = 4;
/// First byte of the MAC'd statement; no message's statement begins with it.
const STATEMENT: u8 = 0xa7;

/// Who speaks over a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Peer {
    /// A replica.
    Replica(ReplicaId),
    /// A process that has an identity's key. Replies to its sessions `first .. first + sessions` go over this link.
    Client {
        /// Whose key.
        identity: IdentityId,
        /// The first session.
        first: u32,
        /// How many.
        sessions: u32,
    },
    /// A process with a key that the cluster file does not name. All that is said to this key goes over its links.
    Stranger(PublicKey),
}

impl Peer {
    /// The party whose keys authenticate the link. An identity is one party, whatever sessions it has, so that what is
    /// counted per party stays bounded.
    pub const fn principal(self) -> Principal {
        match self {
            Self::Replica(id) => Principal::Replica(id),
            Self::Client { identity, .. } => Principal::Client(ClientId { identity, session: 0 }),
            Self::Stranger(key) => Principal::Key(key),
        }
    }

    /// Whether it is no replica.
    pub const fn is_client(self) -> bool {
        matches!(self, Self::Client { .. } | Self::Stranger(_))
    }

    fn is_well_formed(self) -> bool {
        match self {
            Self::Replica(_) | Self::Stranger(_) => true,
            Self::Client { first, sessions, .. } => {
                (1..=SESSIONS_PER_CONNECTION_MAX).contains(&sessions) && first.checked_add(sessions - 1).is_some()
            }
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Replica(id) => write!(f, "replica {}", id.0),
            Self::Client { identity, .. } => write!(f, "client {}", identity.0),
            Self::Stranger(key) => write!(f, "client {key:?}"),
        }
    }
}

impl Wire for Peer {
    fn encode(&self, out: &mut impl Sink) {
        match self {
            Self::Replica(id) => {
                out.push(0);
                id.encode(out);
            }
            Self::Client { identity, first, sessions } => {
                out.push(1);
                identity.encode(out);
                first.encode(out);
                sessions.encode(out);
            }
            Self::Stranger(key) => {
                out.push(2);
                key.encode(out);
            }
        }
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        match reader.tag()? {
            0 => Ok(Self::Replica(Wire::decode(reader)?)),
            1 => Ok(Self::Client {
                identity: Wire::decode(reader)?,
                first: Wire::decode(reader)?,
                sessions: Wire::decode(reader)?,
            }),
            2 => Ok(Self::Stranger(Wire::decode(reader)?)),
            _ => Err(WireError::UnknownTag),
        }
    }
}

/// Bytes of a [`ServiceBuild`].
const SERVICE_BUILD_BYTES: usize = 40;

/// Which service a replica runs, in which version: a few words, in ASCII.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServiceBuild([u8; SERVICE_BUILD_BYTES]);

impl ServiceBuild {
    /// Nothing is said: clients need not run the service.
    pub const NONE: Self = Self([0; SERVICE_BUILD_BYTES]);

    /// The first 40 bytes of a text; what is not printable ASCII becomes a question mark.
    pub fn new(text: &str) -> Self {
        let mut bytes = [0; SERVICE_BUILD_BYTES];
        for (place, byte) in bytes.iter_mut().zip(text.bytes()) {
            *place = if byte.is_ascii_graphic() || byte == b' ' { byte } else { b'?' };
        }
        Self(bytes)
    }
}

impl fmt::Display for ServiceBuild {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.iter().take_while(|byte| **byte != 0);
        // It may have come over the wire.
        text.map(|byte| if byte.is_ascii_graphic() { char::from(*byte) } else { ' ' })
            .try_for_each(|c| write!(f, "{c}"))
    }
}

macro_rules! refusals {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $label:literal, $text:literal;)*) => {
        /// Why a connection was refused.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum LinkRefusal { $($(#[$doc])* $name,)* }

        impl LinkRefusal {
            /// Every reason, for documentation and metrics.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// A stable name in snake case.
            pub const fn label(self) -> &'static str {
                match self { $(Self::$name => $label),* }
            }
        }

        impl fmt::Display for LinkRefusal {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$name => $text),* })
            }
        }

        impl Wire for LinkRefusal {
            fn encode(&self, out: &mut impl Sink) {
                out.push(match self { $(Self::$name => $code),* });
            }
            fn decode(reader: &mut Reader) -> Result<Self, WireError> {
                match reader.tag()? { $($code => Ok(Self::$name),)* _ => Err(WireError::UnknownTag) }
            }
        }
    };
}

refusals! {
    /// The bytes are not this protocol.
    NotBezant = 0, "not_bezant", "the other side does not speak this protocol";
    /// Another version of it.
    Version = 1, "version", "the other side speaks another version of the protocol";
    /// The cluster digest differs: another cluster, or the same one with other parameters.
    ForeignCluster = 2, "foreign_cluster", "the other side belongs to another cluster, or its cluster file differs";
    /// A replica or identity that the cluster does not know.
    UnknownIdentity = 3, "unknown_identity", "the cluster does not know this identity";
    /// A replica at the clients' port, a client at the replicas', or not the replica that was expected.
    WrongParty = 4, "wrong_party", "the other side is not who should be at this address";
    /// The MAC does not prove what the HELLO claims.
    BadProof = 5, "bad_proof", "the other side does not hold the key of the identity that it claims";
    /// As many connections as this replica takes.
    TooMany = 6, "too_many", "the replica has as many connections as it takes";
    /// A replica that runs another service, or another build of it.
    OtherService = 7, "other_service", "the other side runs another service, or another build of it";
}

/// HELLO: what each side claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hello {
    cluster: Digest,
    who: Peer,
    service: ServiceBuild,
    nonce: [u8; 32],
}

impl Wire for Hello {
    fn encode(&self, out: &mut impl Sink) {
        MAGIC.encode(out);
        VERSION.encode(out);
        self.cluster.encode(out);
        self.who.encode(out);
        self.service.0.encode(out);
        self.nonce.encode(out);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        if reader.array()? != MAGIC {
            return Err(WireError::UnknownTag);
        }
        if u16::decode(reader)? != VERSION {
            return Err(WireError::NotCanonical);
        }
        Ok(Self {
            cluster: Wire::decode(reader)?,
            who: Wire::decode(reader)?,
            service: ServiceBuild(Wire::decode(reader)?),
            nonce: Wire::decode(reader)?,
        })
    }
}

#[derive(Debug)]
enum Frame {
    Hello(Hello),
    Answer(Hello, Tag),
    Proof(Tag),
    Ready,
    Refuse(LinkRefusal),
    /// REFUSE, because the side that refuses runs this build.
    RefuseService(ServiceBuild),
}

impl Wire for Frame {
    fn encode(&self, out: &mut impl Sink) {
        match self {
            Self::Hello(hello) => {
                out.push(b'H');
                hello.encode(out);
            }
            Self::Answer(hello, tag) => {
                out.push(b'A');
                hello.encode(out);
                tag.encode(out);
            }
            Self::Proof(tag) => {
                out.push(b'P');
                tag.encode(out);
            }
            Self::Ready => out.push(b'Y'),
            Self::Refuse(reason) => {
                out.push(b'R');
                reason.encode(out);
            }
            Self::RefuseService(service) => {
                out.push(b'S');
                service.0.encode(out);
            }
        }
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        match reader.tag()? {
            b'H' => Ok(Self::Hello(Wire::decode(reader)?)),
            b'A' => Ok(Self::Answer(Wire::decode(reader)?, Wire::decode(reader)?)),
            b'P' => Ok(Self::Proof(Wire::decode(reader)?)),
            b'Y' => Ok(Self::Ready),
            b'R' => Ok(Self::Refuse(Wire::decode(reader)?)),
            b'S' => Ok(Self::RefuseService(ServiceBuild(Wire::decode(reader)?))),
            _ => Err(WireError::UnknownTag),
        }
    }
}

/// Whom a side is ready to talk to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Exactly this replica (we dialled it).
    Replica(ReplicaId),
    /// A replica with a higher number than ours (it dialled us).
    HigherReplica(ReplicaId),
    /// This replica alone dials us here.
    OnlyReplica(ReplicaId),
    /// Any identity that the cluster admits; anybody at all where clients may join.
    AnyClient,
}

impl Expect {
    fn admits(self, who: Peer, keyring: &Keyring) -> Result<(), LinkRefusal> {
        let right = match (self, who) {
            (Self::Replica(expected), Peer::Replica(id)) => id == expected,
            (Self::HigherReplica(me), Peer::Replica(id)) => id > me,
            (Self::OnlyReplica(one), Peer::Replica(id)) => id == one,
            (Self::AnyClient, Peer::Client { .. } | Peer::Stranger(_)) => who.is_well_formed(),
            _ => false,
        };
        let known = match who {
            Peer::Replica(id) => (id.0 as usize) < keyring.keys().replicas.len(),
            Peer::Client { identity, .. } => keyring.keys().identities.contains_key(&identity),
            Peer::Stranger(_) => keyring.admits_strangers(),
        };
        match (right, known) {
            (false, _) => Err(LinkRefusal::WrongParty),
            (true, false) => Err(LinkRefusal::UnknownIdentity),
            (true, true) => Ok(()),
        }
    }
}

/// What a frame led to.
#[derive(Debug, PartialEq, Eq)]
pub enum Progress {
    /// Send this frame and wait.
    Reply(Vec<u8>),
    /// The other side has proved who it is. Send this frame first, if there is one.
    Done(Peer, Option<Vec<u8>>),
    /// We refuse; send this frame and close.
    Refused(LinkRefusal, Vec<u8>),
    /// The other side refused us.
    RefusedByPeer(LinkRefusal),
    /// The other side refused us because it runs this build, and we run another.
    OtherService(ServiceBuild),
}

/// One side of one handshake, without I/O.
#[derive(Debug)]
pub struct Handshake {
    expect: Expect,
    mine: Hello,
    /// The other side's HELLO; at the initiator, once it has been proved.
    theirs: Option<Hello>,
    /// What the other side runs, if it was refused for that.
    other_service: Option<ServiceBuild>,
    binding: Vec<u8>,
}

impl Handshake {
    /// A side that claims to be `who`. `nonce` must be fresh and unpredictable.
    pub fn new(keyring: &Keyring, who: Peer, expect: Expect, nonce: [u8; 32]) -> Self {
        let mine = Hello { cluster: keyring.cluster(), who, service: ServiceBuild::NONE, nonce };
        Self { expect, mine, theirs: None, other_service: None, binding: Vec::new() }
    }

    /// What this side runs. Before the first frame.
    #[must_use]
    pub fn running(mut self, service: ServiceBuild) -> Self {
        self.mine.service = service;
        self
    }

    /// What the other side says that it runs, if we refused it for that.
    pub const fn other_service(&self) -> Option<ServiceBuild> {
        self.other_service
    }

    /// Binds the proofs to a channel that `binding` names. Before the first frame.
    pub fn bind(&mut self, binding: Vec<u8>) {
        self.binding = binding;
    }

    /// The frame with which the initiator begins.
    pub fn hello(&self) -> Vec<u8> {
        Frame::Hello(self.mine).to_bytes()
    }

    /// A frame that refuses the other side.
    pub fn refuse(reason: LinkRefusal) -> Vec<u8> {
        Frame::Refuse(reason).to_bytes()
    }

    fn is_initiator(&self) -> bool {
        matches!(self.expect, Expect::Replica(_))
    }

    /// What the MAC of the initiator or the acceptor covers.
    fn statement(&self, by_initiator: bool, theirs: &Hello) -> Vec<u8> {
        let (first, second) = if self.is_initiator() { (&self.mine, theirs) } else { (theirs, &self.mine) };
        let mut statement = vec![STATEMENT, u8::from(by_initiator)];
        first.encode(&mut statement);
        second.encode(&mut statement);
        statement.extend_from_slice(&self.binding);
        statement
    }

    /// Handles one frame of the other side.
    pub fn receive(&mut self, frame: Bytes, keyring: &Keyring) -> Progress {
        let refused = |reason| Progress::Refused(reason, Self::refuse(reason));
        let frame = match Frame::from_bytes(frame) {
            Ok(frame) => frame,
            Err(WireError::NotCanonical) => return refused(LinkRefusal::Version),
            Err(_) => return refused(LinkRefusal::NotBezant),
        };
        let outcome = match (frame, self.is_initiator(), self.theirs) {
            (Frame::Refuse(reason), _, _) => return Progress::RefusedByPeer(reason),
            (Frame::RefuseService(service), _, _) => return Progress::OtherService(service),
            (Frame::Hello(hello), false, None) => self.on_hello(hello, keyring),
            (Frame::Answer(hello, tag), true, None) => self.on_answer(hello, &tag, keyring),
            (Frame::Proof(tag), false, Some(theirs)) => self.on_proof(&theirs, &tag, keyring),
            (Frame::Ready, true, Some(theirs)) => Ok(Progress::Done(theirs.who, None)),
            _ => Err(LinkRefusal::NotBezant),
        };
        match outcome {
            Err(reason @ LinkRefusal::OtherService) => {
                Progress::Refused(reason, Frame::RefuseService(self.mine.service).to_bytes())
            }
            outcome => outcome.unwrap_or_else(refused),
        }
    }

    fn admit(&mut self, hello: &Hello, keyring: &Keyring) -> Result<(), LinkRefusal> {
        if hello.cluster != self.mine.cluster {
            return Err(LinkRefusal::ForeignCluster);
        }
        self.expect.admits(hello.who, keyring)?;
        let replicas = matches!((self.mine.who, hello.who), (Peer::Replica(_), Peer::Replica(_)));
        if replicas && self.mine.service != hello.service {
            // Only to be told about: nothing proves it yet, and the other side is not known by it.
            self.other_service = Some(hello.service);
            return Err(LinkRefusal::OtherService);
        }
        Ok(())
    }

    fn on_hello(&mut self, hello: Hello, keyring: &Keyring) -> Result<Progress, LinkRefusal> {
        self.admit(&hello, keyring)?;
        let tag = keyring.tag(hello.who.principal(), &self.statement(false, &hello));
        self.theirs = Some(hello);
        Ok(Progress::Reply(Frame::Answer(self.mine, tag).to_bytes()))
    }

    fn on_answer(&mut self, hello: Hello, tag: &Tag, keyring: &Keyring) -> Result<Progress, LinkRefusal> {
        self.admit(&hello, keyring)?;
        let other = hello.who.principal();
        if !keyring.check(other, &self.statement(false, &hello), tag) {
            return Err(LinkRefusal::BadProof);
        }
        self.theirs = Some(hello);
        Ok(Progress::Reply(Frame::Proof(keyring.tag(other, &self.statement(true, &hello))).to_bytes()))
    }

    fn on_proof(&mut self, theirs: &Hello, tag: &Tag, keyring: &Keyring) -> Result<Progress, LinkRefusal> {
        if keyring.check(theirs.who.principal(), &self.statement(true, theirs), tag) {
            Ok(Progress::Done(theirs.who, Some(Frame::Ready.to_bytes())))
        } else {
            Err(LinkRefusal::BadProof)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bezant_core::auth::{Ed25519, PublicKeys, SecretKey, Suite};
    use bezant_core::cluster::Cluster;

    /// The values of all constants below a folder that name the first byte of a statement.
    fn first_bytes(folder: &std::path::Path) -> Vec<u8> {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let of_path = |path: std::path::PathBuf| match path.is_dir() {
            true => first_bytes(&path),
            false => {
                let text = std::fs::read_to_string(&path).unwrap_or_default();
                let values = text.lines().filter_map(|line| line.split_once(": u8 = 0xa")?.1.strip_suffix(';'));
                values.filter_map(|digit| u8::from_str_radix(digit, 16).ok()).collect()
            }
        };
        entries.flat_map(of_path).collect()
    }

    /// Links and messages use the same keys: no statement of one is one of the other.
    #[test]
    fn no_message_has_a_statement_that_begins_like_this_one() {
        let core = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/src");
        let mut known = first_bytes(&core);
        known.push(STATEMENT & 0xf);
        let count = known.len();
        known.sort_unstable();
        known.dedup();
        assert!(count >= 8, "request, PRE-PREPARE, CHAIN, RING, their replies, and what is long: {known:?}");
        assert_eq!(known.len(), count, "two statements begin with the same byte: {known:?}");
    }

    const CLIENT: Principal = Principal::Client(ClientId { identity: IdentityId(7), session: 0 });

    fn keyring(cluster: u8, me: Principal, secret: u8) -> Keyring {
        let public = |secret| Ed25519.public(&SecretKey([secret; 32]));
        let keys = PublicKeys {
            replicas: (1..=4).map(public).collect(),
            identities: [(IdentityId(7), public(70)), (IdentityId(8), public(secret))].into(),
        };
        let cluster = Cluster::of([cluster; 16], 4).unwrap();
        Keyring::new(&Ed25519, &cluster, me, SecretKey([secret; 32]), keys).unwrap()
    }

    fn replica(id: u8) -> Principal {
        Principal::Replica(ReplicaId(id))
    }

    /// Lets `a` (claiming `who`) dial `b`, and says how it ends at `a` and at `b`.
    fn shake(a: &Keyring, who: Peer, b: (&Keyring, Expect), bindings: [u8; 2]) -> (Progress, Option<Progress>) {
        let Principal::Replica(id) = b.0.me() else { panic!() };
        let mut dialler = Handshake::new(a, who, Expect::Replica(id), [1; 32]);
        dialler.bind(vec![bindings[0]]);
        let mut acceptor = Handshake::new(b.0, Peer::Replica(id), b.1, [2; 32]);
        acceptor.bind(vec![bindings[1]]);
        let answer = match acceptor.receive(dialler.hello().into(), b.0) {
            Progress::Reply(answer) => answer,
            Progress::Refused(reason, frame) => {
                return (dialler.receive(frame.into(), a), Some(Progress::Refused(reason, vec![])));
            }
            other => panic!("{other:?}"),
        };
        let proof = match dialler.receive(answer.into(), a) {
            Progress::Reply(proof) => proof,
            other => return (other, None),
        };
        match acceptor.receive(proof.into(), b.0) {
            Progress::Done(peer, Some(ready)) => (dialler.receive(ready.into(), a), Some(Progress::Done(peer, None))),
            other => (Progress::Reply(Vec::new()), Some(other)),
        }
    }

    #[test]
    fn two_replicas_and_a_client_prove_who_they_are() {
        let (one, two) = (keyring(1, replica(1), 2), keyring(1, replica(0), 1));
        let higher = Expect::HigherReplica(ReplicaId(0));
        let peer = Peer::Replica(ReplicaId(1));
        let done = |peer| Progress::Done(peer, None);
        assert_eq!(shake(&one, peer, (&two, higher), [0; 2]), (done(Peer::Replica(ReplicaId(0))), Some(done(peer))));
        let client = Peer::Client { identity: IdentityId(7), first: 5, sessions: 10 };
        let ends = shake(&keyring(1, CLIENT, 70), client, (&two, Expect::AnyClient), [0; 2]);
        assert_eq!(ends, (done(Peer::Replica(ReplicaId(0))), Some(done(client))));
    }

    #[test]
    fn strangers_are_refused_and_told_why() {
        let server = keyring(1, replica(0), 1);
        let client = |identity, sessions| Peer::Client { identity: IdentityId(identity), first: 0, sessions };
        let dial = |cluster, who, expect| shake(&keyring(cluster, CLIENT, 70), who, (&server, expect), [0; 2]).0;
        let refused = Progress::RefusedByPeer;
        assert_eq!(dial(2, client(7, 1), Expect::AnyClient), refused(LinkRefusal::ForeignCluster));
        assert_eq!(dial(1, client(9, 1), Expect::AnyClient), refused(LinkRefusal::UnknownIdentity));
        assert_eq!(dial(1, client(7, 0), Expect::AnyClient), refused(LinkRefusal::WrongParty));
        let higher = Expect::HigherReplica(ReplicaId(0));
        assert_eq!(dial(1, client(7, 1), higher), refused(LinkRefusal::WrongParty));
    }

    #[test]
    fn a_stolen_name_and_a_spliced_channel_fail_the_proof() {
        let server = keyring(1, replica(0), 1);
        let thief = keyring(1, CLIENT, 70);
        let stolen = Peer::Replica(ReplicaId(3));
        let ends = shake(&thief, stolen, (&server, Expect::HigherReplica(ReplicaId(0))), [0; 2]);
        assert!(matches!(ends.0, Progress::Refused(LinkRefusal::BadProof, _)), "{ends:?}");
        let client = Peer::Client { identity: IdentityId(7), first: 0, sessions: 1 };
        let ends = shake(&thief, client, (&server, Expect::AnyClient), [1, 2]);
        assert!(matches!(ends.0, Progress::Refused(LinkRefusal::BadProof, _)), "{ends:?}");
    }

    /// Identity 4 connects to replica 0 of the cluster of the example in `docs/wire.md`, which shows these bytes.
    #[test]
    fn documentation_shows_the_bytes_of_a_handshake() {
        let public = |secret| Ed25519.public(&SecretKey([secret; 32]));
        let identity = IdentityId(4);
        let client = Principal::Client(ClientId { identity, session: 0 });
        let cluster = Cluster::of([7; 16], 4).unwrap();
        let keyring = |me, secret| {
            let keys =
                PublicKeys { replicas: (1..=4).map(public).collect(), identities: [(identity, public(9))].into() };
            Keyring::new(&Ed25519, &cluster, me, SecretKey([secret; 32]), keys).unwrap()
        };
        let (dialling, accepting) = (keyring(client, 9), keyring(replica(0), 1));
        let who = Peer::Client { identity, first: 5, sessions: 10 };
        let mut dialler = Handshake::new(&dialling, who, Expect::Replica(ReplicaId(0)), [0x11; 32]);
        let mut acceptor = Handshake::new(&accepting, Peer::Replica(ReplicaId(0)), Expect::AnyClient, [0x22; 32]);
        let hello = dialler.hello();
        let Progress::Reply(answer) = acceptor.receive(hello.clone().into(), &accepting) else { panic!() };
        let Progress::Reply(proof) = dialler.receive(answer.clone().into(), &dialling) else { panic!() };
        let Progress::Done(_, Some(ready)) = acceptor.receive(proof.clone().into(), &accepting) else { panic!() };
        let refusal = Handshake::refuse(LinkRefusal::ForeignCluster);
        let mut text = String::from("```text\n");
        let frames = [("HELLO", hello), ("ANSWER", answer), ("PROOF", proof), ("READY", ready), ("REFUSE", refusal)];
        for (name, frame) in frames {
            text += &format!("{name}\n");
            for line in frame.chunks(50) {
                let hex: String = line.iter().map(|byte| format!("{byte:02x}")).collect();
                text += &format!("  {hex}\n");
            }
        }
        text += "```\n";
        let document = include_str!("../../../../docs/wire.md");
        assert!(document.contains(&text), "docs/wire.md should show this:\n{text}");
    }

    #[test]
    fn replicas_of_another_build_are_refused_and_both_name_both() {
        let (low, high) = (keyring(1, replica(0), 1), keyring(1, replica(1), 2));
        let [ours, theirs] = ["SQLite 3.54.1 build aa", "SQLite 3.54.0 build bb"].map(ServiceBuild::new);
        let new = |keyring, id, expect| Handshake::new(keyring, Peer::Replica(ReplicaId(id)), expect, [id; 32]);
        let mut dialler = new(&high, 1, Expect::Replica(ReplicaId(0))).running(theirs);
        let mut acceptor = new(&low, 0, Expect::HigherReplica(ReplicaId(0))).running(ours);
        let Progress::Refused(reason, frame) = acceptor.receive(dialler.hello().into(), &low) else { panic!() };
        assert_eq!((reason, acceptor.other_service()), (LinkRefusal::OtherService, Some(theirs)));
        assert_eq!(dialler.receive(frame.into(), &high), Progress::OtherService(ours));
        assert_eq!(ours.to_string(), "SQLite 3.54.1 build aa");
        // An initiator that refused does not believe a READY: nothing was proved.
        let tag = low.tag(replica(1), b"nothing");
        let answer = Frame::Answer(acceptor.mine, tag).to_bytes();
        assert!(matches!(dialler.receive(answer.into(), &high), Progress::Refused(LinkRefusal::OtherService, _)));
        let ready = dialler.receive(Frame::Ready.to_bytes().into(), &high);
        assert!(matches!(ready, Progress::Refused(LinkRefusal::NotBezant, _)), "{ready:?}");
        let mut same = new(&low, 0, Expect::HigherReplica(ReplicaId(0))).running(theirs);
        assert!(matches!(same.receive(dialler.hello().into(), &low), Progress::Reply(_)));
    }

    #[test]
    fn garbage_is_refused() {
        let server = keyring(1, replica(0), 1);
        for garbage in [&b""[..], b"GET / HTTP/1.1", &[b'H'; 100], &[b'P'; 17]] {
            let mut side = Handshake::new(&server, Peer::Replica(ReplicaId(0)), Expect::AnyClient, [0; 32]);
            let end = side.receive(Bytes::from_static(garbage), &server);
            assert!(matches!(end, Progress::Refused(LinkRefusal::NotBezant, _)), "{end:?}");
        }
    }
}
