//! The first datagrams of QUIC (RFC 9000, RFC 9001, RFC 9369): Initial packets, opened with the keys that everybody knows, and
//! the ClientHello that lies in them in pieces.

use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128Enc, Block};
use hkdf::Hkdf;
use sealway_aead::{OpeningKey, Suite};
use sha2::Sha256;

use super::{Kind, Look, tls};

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod seal;

/// Most datagrams of one flow that are looked at.
pub const MAX_HELD: usize = 4;
/// Longest connection id.
const MAX_ID: usize = 20;
/// Bytes of the sample that protects a header, and of the tag behind a packet.
const SAMPLE: usize = 16;
/// A packet number has as many bytes at most.
const MAX_NUMBER: usize = 4;

/// A version that is known.
struct Version {
    number: u32,
    salt: [u8; 20],
    /// The type of Initial packets, as it stands in their first byte.
    initial: u8,
    key: &'static [u8],
    iv: &'static [u8],
    hp: &'static [u8],
}

const DRAFT_29: Version = Version {
    number: 0xff00_001d,
    salt: [
        0xaf, 0xbf, 0xec, 0x28, 0x99, 0x93, 0xd2, 0x4c, 0x9e, 0x97, 0x86, 0xf1, 0x9c, 0x61, 0x11, 0xe0, 0x43, 0x90,
        0xa8, 0x99,
    ],
    ..V1
};

const V1: Version = Version {
    number: 1,
    salt: [
        0x38, 0x76, 0x2c, 0xf7, 0xf5, 0x59, 0x34, 0xb3, 0x4d, 0x17, 0x9a, 0xe6, 0xa4, 0xc8, 0x0c, 0xad, 0xcc, 0xbb,
        0x7f, 0x0a,
    ],
    initial: 0b00,
    key: b"quic key",
    iv: b"quic iv",
    hp: b"quic hp",
};

const V2: Version = Version {
    number: 0x6b33_43cf,
    salt: [
        0x0d, 0xed, 0xe3, 0xde, 0xf7, 0x00, 0xa6, 0xdb, 0x81, 0x93, 0x81, 0xbe, 0x6e, 0x26, 0x9d, 0xcb, 0xf9, 0xbd,
        0x2e, 0xd9,
    ],
    initial: 0b01,
    key: b"quicv2 key",
    iv: b"quicv2 iv",
    hp: b"quicv2 hp",
};

const VERSIONS: [Version; 3] = [V1, DRAFT_29, V2];

/// Reads fields off the front; every read may find too little.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(taken)
    }

    fn u8(&mut self) -> Option<u8> {
        Some(self.take(1)?[0])
    }

    /// A number of 1, 2, 4 or 8 bytes (RFC 9000 section 16).
    fn varint(&mut self) -> Option<u64> {
        let first = self.u8()?;
        let more = self.take((1 << (first >> 6)) - 1)?;
        Some(
            more.iter()
                .fold(u64::from(first & 0x3f), |sum, &byte| sum << 8 | u64::from(byte)),
        )
    }

    /// Bytes behind their number.
    fn sized(&mut self) -> Option<&'a [u8]> {
        let len = usize::try_from(self.varint()?).ok()?;
        self.take(len)
    }

    /// A connection id behind its length.
    fn id(&mut self) -> Option<&'a [u8]> {
        let len = usize::from(self.u8()?);
        (len <= MAX_ID).then(|| self.take(len))?
    }
}

/// A packet with a long header, still protected.
struct Packet<'a> {
    version: &'static Version,
    is_initial: bool,
    id: &'a [u8],
    /// From its first byte to its end.
    bytes: &'a [u8],
    /// Where its number begins.
    number_at: usize,
}

/// The packet at the front, and what follows it. `None`: there is none that is understood.
fn packet(bytes: &[u8]) -> Option<(Packet<'_>, &[u8])> {
    let mut fields = Fields(bytes);
    let first = fields.u8()?;
    if first & 0xc0 != 0xc0 {
        return None;
    }
    let number = fields.take(4)?.iter().fold(0, |sum, &byte| sum << 8 | u32::from(byte));
    let version = VERSIONS.iter().find(|version| version.number == number)?;
    let kind = (first >> 4 & 3).wrapping_sub(version.initial) & 3;
    // Behind Initial come 0-RTT, Handshake and Retry, in both orders of types. A client sends no Retry.
    if kind == 3 {
        return None;
    }
    let id = fields.id()?;
    fields.id()?;
    if kind == 0 {
        fields.sized()?;
    }
    let len = usize::try_from(fields.varint()?).ok()?;
    let number_at = bytes.len() - fields.0.len();
    fields.take(len)?;
    let (bytes, rest) = bytes.split_at(number_at + len);
    let packet = Packet {
        version,
        is_initial: kind == 0,
        id,
        bytes,
        number_at,
    };
    Some((packet, rest))
}

/// Whether a datagram begins with an Initial packet of a version that is known, as far as that can be seen without opening it.
pub fn is_initial(datagram: &[u8]) -> bool {
    // Most datagrams of other protocols end here.
    datagram.first().is_some_and(|first| first & 0xc0 == 0xc0)
        && packet(datagram).is_some_and(|(packet, _)| packet.is_initial)
}

/// What a client's Initial packets are sealed with.
struct Keys {
    opener: OpeningKey,
    iv: [u8; 12],
    header: Aes128Enc,
}

/// HKDF-Expand-Label of TLS 1.3, without a context (RFC 8446 section 7.1).
fn expand<const N: usize>(secret: &Hkdf<Sha256>, label: &[u8]) -> [u8; N] {
    let mut out = [0; N];
    let prefix = b"tls13 ";
    let head = [0, N as u8, (prefix.len() + label.len()) as u8];
    // It fails for more than 8160 bytes only.
    let _ = secret.expand_multi_info(&[&head, prefix, label, &[0]], &mut out);
    out
}

impl Keys {
    /// Those that belong to a version and the id that the client has drawn for the server.
    fn new(version: &Version, id: &[u8]) -> Option<Keys> {
        let initial = Hkdf::<Sha256>::new(Some(&version.salt), id);
        let client: [u8; 32] = expand(&initial, b"client in");
        let client = Hkdf::<Sha256>::from_prk(&client).ok()?;
        let key: [u8; 16] = expand(&client, version.key);
        let header: [u8; 16] = expand(&client, version.hp);
        Some(Keys {
            opener: OpeningKey::new(Suite::Aes128Gcm, &key).ok()?,
            iv: expand(&client, version.iv),
            header: Aes128Enc::new(&header.into()),
        })
    }

    /// The frames of a packet.
    fn open(&self, packet: &Packet<'_>) -> Option<Vec<u8>> {
        let sample_at = packet.number_at + MAX_NUMBER;
        let sample = packet.bytes.get(sample_at..)?.first_chunk::<SAMPLE>()?;
        let mut mask = Block::from(*sample);
        self.header.encrypt_block(&mut mask);
        let number_len = usize::from((packet.bytes[0] ^ mask[0]) & 3) + 1;
        let (head, sealed) = packet.bytes.split_at(packet.number_at + number_len);
        // The datagram goes on as it came, so this is done to a copy.
        let mut head = head.to_vec();
        head[0] ^= mask[0] & 0x0f;
        let mut nonce = self.iv;
        for at in 0..number_len {
            let byte = &mut head[packet.number_at + at];
            *byte ^= mask[1 + at];
            nonce[nonce.len() - number_len + at] ^= *byte;
        }
        let mut frames = vec![0; sealed.len().checked_sub(Suite::TAG_LEN)?];
        self.opener.open_to(&nonce, &head, sealed, &mut frames).ok()?;
        Some(frames)
    }
}

/// A message that comes in pieces, in any order and as often as they like.
#[derive(Default)]
struct Pieces {
    bytes: Vec<u8>,
    /// A bit for each byte that is there.
    have: Vec<u64>,
    /// Bytes from the front without a gap.
    ready: usize,
}

impl Pieces {
    /// False: it would be too long.
    fn put(&mut self, at: u64, piece: &[u8]) -> bool {
        let Some(end) = usize::try_from(at).ok().and_then(|at| at.checked_add(piece.len())) else {
            return false;
        };
        if end > tls::MAX_HELLO {
            return false;
        }
        let at = end - piece.len();
        if self.bytes.capacity() == 0 {
            // All of it at once: growing by doubling would take twice as much in the end.
            self.bytes.reserve_exact(tls::MAX_HELLO);
            self.have.reserve_exact(tls::MAX_HELLO.div_ceil(64));
        }
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
            self.have.resize(end.div_ceil(64), 0);
        }
        for (at, byte) in (at..).zip(piece) {
            let (word, bit) = (&mut self.have[at / 64], 1 << (at % 64));
            // What was said first counts.
            if *word & bit == 0 {
                *word |= bit;
                self.bytes[at] = *byte;
            }
        }
        while self.ready < self.bytes.len() && self.have[self.ready / 64] & 1 << (self.ready % 64) != 0 {
            self.ready += 1;
        }
        true
    }

    /// What is there from the front.
    fn ready(&self) -> &[u8] {
        &self.bytes[..self.ready]
    }
}

/// Takes the frames of a packet apart. `None`: it holds what a client's Initial packets do not.
fn read_frames(frames: &[u8], pieces: &mut Pieces) -> Option<()> {
    let mut fields = Fields(frames);
    // A packet without frames is an error (RFC 9000 section 12.4).
    if frames.is_empty() {
        return None;
    }
    while let Some(kind) = fields.u8() {
        match kind {
            // PADDING, PING
            0x00 | 0x01 => {}
            // ACK
            0x02 | 0x03 => {
                fields.varint()?;
                fields.varint()?;
                let ranges = fields.varint()?;
                fields.varint()?;
                for _ in 0..ranges {
                    fields.varint()?;
                    fields.varint()?;
                }
                if kind == 0x03 {
                    for _ in 0..3 {
                        fields.varint()?;
                    }
                }
            }
            // CRYPTO
            0x06 => {
                let at = fields.varint()?;
                if !pieces.put(at, fields.sized()?) {
                    return None;
                }
            }
            // CONNECTION_CLOSE
            0x1c => {
                fields.varint()?;
                fields.varint()?;
                fields.sized()?;
            }
            _ => return None,
        }
    }
    Some(())
}

/// The first datagrams of one flow.
///
/// They are shown to [`Quic::look`] one after the other, at most [`MAX_HELD`], until it has found something. It takes at most
/// 18 KiB of memory, and twice the size of one datagram while it looks.
#[derive(Default)]
pub struct Quic {
    /// The keys, and the id that they are for: that of the first packet, also where others follow with another one.
    keys: Option<(Keys, Vec<u8>)>,
    pieces: Pieces,
    datagrams: usize,
    /// A packet was sealed with its keys.
    is_quic: bool,
}

impl Quic {
    /// Looks at the next datagram.
    pub fn look(&mut self, datagram: &[u8]) -> Look {
        self.datagrams += 1;
        let mut rest = datagram;
        while let Some((packet, after)) = packet(rest) {
            rest = after;
            if packet.is_initial && self.take(&packet).is_none() {
                return self.give_up();
            }
        }
        let hello = self.pieces.ready();
        let Some(need) = tls::whole(hello) else {
            return self.give_up();
        };
        if hello.len() >= need && hello.len() > tls::HEAD {
            let name = tls::server_name(&hello[tls::HEAD..need]);
            return Look::found(Kind::Quic, name.flatten());
        }
        if self.is_quic && self.datagrams < MAX_HELD {
            Look::More(1)
        } else {
            self.give_up()
        }
    }

    /// What is known if nothing follows.
    pub fn give_up(&self) -> Look {
        match self.is_quic {
            true => Look::found(Kind::Quic, None),
            false => Look::Nothing,
        }
    }

    /// Opens a packet. `None`: nothing can be learned from this flow.
    fn take(&mut self, packet: &Packet<'_>) -> Option<()> {
        let keys = match &mut self.keys {
            Some((keys, id)) if id == packet.id => keys,
            // One that is sealed otherwise says nothing of those that are not.
            Some(_) => return Some(()),
            empty => {
                let keys = Keys::new(packet.version, packet.id)?;
                &mut empty.insert((keys, packet.id.to_vec())).0
            }
        };
        let Some(frames) = keys.open(packet) else {
            return self.is_quic.then_some(());
        };
        self.is_quic = true;
        read_frames(&frames, &mut self.pieces)
    }
}

impl std::fmt::Debug for Quic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("Quic");
        shown
            .field("datagrams", &self.datagrams)
            .field("ready", &self.pieces.ready);
        shown.finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
