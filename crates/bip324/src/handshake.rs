//! The handshake as types: each step uses up the one before it, so calls in a wrong order do not compile.
//!
//! ```text
//! Initiator::start ────────────────► AwaitingKey ─► Keyed ─► AwaitingTerminator ─► AwaitingVersion ─► Established
//! Responder::prefix ─┬─ (not v1) ──►               (send)
//!                    └─ (v1: replay the 16 bytes)
//! ```
//!
//! Steps that read take what has come and say how much of it they used; needing more is a normal result that gives the step
//! back. What is to be sent is appended to a buffer of the caller's. [`crate::Connection`] drives all of it and is what
//! most callers want.

mod terminator;

use alloc::vec::Vec;
use core::fmt;

use crate::magic::VERSION_TYPE;
use crate::{
    ELLSWIFT_LEN, Error, GARBAGE_MAX, Kind, LocalKey, Magic, PacketOpener, PacketSealer, Role, TERMINATOR_LEN,
    V1_PREFIX_LEN,
};

use terminator::Scan;

/// What one end brings to the handshake.
struct Own {
    role: Role,
    magic: Magic,
    key: LocalKey,
    garbage: Vec<u8>,
}

impl Own {
    fn new(role: Role, magic: Magic, key: LocalKey, garbage: Vec<u8>) -> Result<Self, Error> {
        if garbage.len() > GARBAGE_MAX {
            return Err(Error::GarbageTooLong { got: garbage.len() });
        }
        Ok(Own {
            role,
            magic,
            key,
            garbage,
        })
    }

    /// Sends the key and the garbage, and waits for the peer's key.
    fn send(self, out: &mut Vec<u8>) -> AwaitingKey {
        out.extend_from_slice(self.key.encoding());
        out.extend_from_slice(&self.garbage);
        AwaitingKey {
            own: self,
            theirs: [0; ELLSWIFT_LEN],
            have: 0,
        }
    }
}

/// An initiator that has not sent anything.
pub struct Initiator(Own);

impl Initiator {
    /// `garbage` is sent after the key: 0 to 4095 bytes, of random length and content in the use that BIP324 has in mind.
    ///
    /// # Errors
    /// [`Error::GarbageTooLong`].
    pub fn new(magic: Magic, key: LocalKey, garbage: Vec<u8>) -> Result<Self, Error> {
        Own::new(Role::Initiator, magic, key, garbage).map(Initiator)
    }

    /// Appends key and garbage to `out`, the first bytes of the connection.
    pub fn start(self, out: &mut Vec<u8>) -> AwaitingKey {
        self.0.send(out)
    }
}

/// A responder that does not know yet whether the peer speaks v1.
pub struct Responder {
    own: Own,
    matched: usize,
}

/// What the first bytes of a connection say.
#[derive(Debug)]
pub enum Prefix {
    /// They are those of a v1 connection as far as they go.
    More(Responder),
    /// This is a v1 connection. These 16 bytes are its first ones.
    V1([u8; V1_PREFIX_LEN]),
    /// This is not v1 of this network. What was used is the start of the peer's key, and is kept.
    V2(AwaitingKey),
}

impl Responder {
    /// As [`Initiator::new`].
    ///
    /// # Errors
    /// [`Error::GarbageTooLong`].
    pub fn new(magic: Magic, key: LocalKey, garbage: Vec<u8>) -> Result<Self, Error> {
        Own::new(Role::Responder, magic, key, garbage).map(|own| Responder { own, matched: 0 })
    }

    /// Reads up to the first byte that is not of v1, which may be the very first. Key and garbage are then appended to
    /// `out` and must be sent without waiting for more.
    pub fn prefix(mut self, input: &[u8], out: &mut Vec<u8>) -> (usize, Prefix) {
        let prefix = self.own.magic.v1_prefix();
        let rest = prefix.get(self.matched..).unwrap_or_default();
        let same = input.iter().zip(rest).take_while(|(got, want)| got == want).count();
        self.matched += same;
        if self.matched == V1_PREFIX_LEN {
            return (same, Prefix::V1(prefix));
        }
        if same == input.len() {
            return (same, Prefix::More(self));
        }
        let mut next = self.own.send(out);
        next.theirs[..self.matched].copy_from_slice(&prefix[..self.matched]);
        next.have = self.matched;
        (same, Prefix::V2(next))
    }

    /// Bytes that are missing until it is certain that this is v1.
    pub const fn missing(&self) -> usize {
        V1_PREFIX_LEN - self.matched
    }
}

/// Own key and garbage are sent, the peer's key has not come whole.
pub struct AwaitingKey {
    own: Own,
    theirs: [u8; ELLSWIFT_LEN],
    have: usize,
}

/// Where reading the peer's key led.
#[derive(Debug)]
pub enum Key {
    /// It has not come whole.
    More(AwaitingKey),
    /// Both ends have the same secrets.
    Done(Keyed),
}

impl AwaitingKey {
    /// Reads up to the end of the peer's key.
    ///
    /// # Errors
    /// [`Error::OtherNetwork`] if the peer of a responder speaks v1 of another network. [`Error::Aead`] if memory ran out.
    pub fn key(mut self, input: &[u8]) -> Result<(usize, Key), Error> {
        let used = self.missing().min(input.len());
        self.theirs[self.have..self.have + used].copy_from_slice(&input[..used]);
        self.have += used;
        if self.own.role == Role::Responder && self.have >= V1_PREFIX_LEN {
            let (magic, rest) = self.theirs.split_at(4);
            if rest.starts_with(&VERSION_TYPE)
                && let Ok(magic) = magic.try_into()
            {
                return Err(Error::OtherNetwork { magic: Magic(magic) });
            }
        }
        if self.missing() > 0 {
            return Ok((used, Key::More(self)));
        }
        let Own {
            role,
            magic,
            key,
            garbage,
        } = self.own;
        let keys = key.agree(&self.theirs, role, magic)?;
        let keyed = Keyed {
            sealer: PacketSealer::new(keys.send_chain(role)?),
            garbage,
            terminator: keys.terminator(role),
            next: AwaitingTerminator {
                scan: Scan::new(keys.terminator(role.other())),
                opener: PacketOpener::new(keys.recv_chain(role)?),
                session_id: keys.session_id(),
            },
        };
        Ok((used, Key::Done(keyed)))
    }

    /// Bytes that are missing of the peer's key.
    pub const fn missing(&self) -> usize {
        ELLSWIFT_LEN - self.have
    }

    /// Bytes that have come of it.
    pub const fn received(&self) -> usize {
        self.have
    }
}

/// Both ends have the same secrets; nothing has been sent with them yet.
pub struct Keyed {
    sealer: PacketSealer,
    garbage: Vec<u8>,
    terminator: [u8; TERMINATOR_LEN],
    next: AwaitingTerminator,
}

impl Keyed {
    /// Appends the garbage terminator, the decoys and the version packet to `out`; nothing has to be waited for in between.
    ///
    /// `version` are the contents of the version packet: none at present. The sealer may send on at once.
    ///
    /// # Errors
    /// [`Error::ContentsTooLong`] for a decoy or version that does not fit a packet. Nothing of `out` is to be sent then.
    pub fn send<'a>(
        self,
        decoys: impl IntoIterator<Item = &'a [u8]>,
        version: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(PacketSealer, AwaitingTerminator), Error> {
        let Keyed {
            mut sealer,
            garbage,
            terminator,
            next,
        } = self;
        out.extend_from_slice(&terminator);
        let mut aad = &garbage[..];
        for decoy in decoys {
            sealer.seal(Kind::Decoy, aad, decoy, out)?;
            aad = &[];
        }
        sealer.seal(Kind::Genuine, aad, version, out)?;
        Ok((sealer, next))
    }
}

/// The peer's key is there; what comes is garbage until its terminator.
pub struct AwaitingTerminator {
    scan: Scan,
    opener: PacketOpener,
    session_id: [u8; 32],
}

/// Where reading garbage led.
#[derive(Debug)]
pub enum Garbage {
    /// No terminator yet.
    More(AwaitingTerminator),
    /// It was found. What follows are packets.
    Done(AwaitingVersion),
}

impl AwaitingTerminator {
    /// Reads up to the end of the terminator: at most 4095 bytes of garbage and 16 more, in linear time.
    ///
    /// # Errors
    /// [`Error::NoTerminator`] if it did not come in time.
    pub fn garbage(mut self, input: &[u8]) -> Result<(usize, Garbage), Error> {
        let (used, found) = self.scan.push(input)?;
        if !found {
            return Ok((used, Garbage::More(self)));
        }
        let next = AwaitingVersion {
            opener: self.opener,
            aad: self.scan.into_garbage(),
            session_id: self.session_id,
        };
        Ok((used, Garbage::Done(next)))
    }

    /// Bytes that have come after the key.
    pub const fn received(&self) -> usize {
        self.scan.received()
    }
}

/// Garbage and terminator are through; what comes are packets, of which the first that is no decoy is the version packet.
pub struct AwaitingVersion {
    opener: PacketOpener,
    /// The garbage that came, until the first packet has been opened with it.
    aad: Vec<u8>,
    session_id: [u8; 32],
}

/// Where a packet led.
#[derive(Debug)]
pub enum Version {
    /// It was a decoy. The version packet is still to come.
    Decoy(AwaitingVersion),
    /// It was the version packet.
    Done(Established),
}

impl AwaitingVersion {
    /// Opens a length, as [`PacketOpener::open_length`].
    ///
    /// # Errors
    /// [`Error::OutOfOrder`] if a packet is awaited already.
    pub fn open_length(&mut self, sealed: [u8; 3]) -> Result<usize, Error> {
        self.opener.open_length(sealed)
    }

    /// Opens what follows a length, in place, as [`PacketOpener::open_in_place`].
    ///
    /// # Errors
    /// [`Error::Unauthentic`] if it is not what was sealed, or came after other garbage than was sent.
    pub fn open(mut self, packet: &mut [u8]) -> Result<Version, Error> {
        let (kind, _) = self.opener.open_in_place(&self.aad, packet)?;
        Ok(match kind {
            Kind::Decoy => {
                self.aad = Vec::new();
                Version::Decoy(self)
            }
            Kind::Genuine => Version::Done(Established {
                opener: self.opener,
                session_id: self.session_id,
            }),
        })
    }
}

/// The peer has shown that it has the same secrets.
pub struct Established {
    /// What opens everything from here on.
    pub opener: PacketOpener,
    /// The same at both ends, if nobody stands between them.
    pub session_id: [u8; 32],
}

macro_rules! says_its_name {
    ($($name:ident),*) => {
        $(impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(stringify!($name))
            }
        })*
    };
}

says_its_name!(
    Initiator,
    Responder,
    AwaitingKey,
    Keyed,
    AwaitingTerminator,
    AwaitingVersion,
    Established
);
