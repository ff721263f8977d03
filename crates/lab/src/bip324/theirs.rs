//! Crate `bip324`, the library of rust-bitcoin's circle.

use std::cell::RefCell;

use bip324::{
    CipherSession, FillBytes, GarbageResult, Handshake, InboundCipher, Initialized, OutboundCipher, PacketType, Role,
    SentKey, VersionResult,
};
use sealway_bip324::{ELLSWIFT_LEN, LENGTH_LEN, OVERHEAD, TAG_LEN};
use secp256k1::{Secp256k1, SignOnly};

use super::ciphers::Ciphers;
use super::links::{Link, MAGIC, failed};
use crate::run::CellError;
use crate::workload::subjects::BIP324;

/// Bytes after the key: a garbage terminator without garbage, and an empty version packet.
const SECOND: usize = 16 + OVERHEAD;

/// The random bytes of a known key.
pub(super) struct Known(pub(super) [u8; 32]);

impl FillBytes for Known {
    fn fill_bytes(&mut self, dest: &mut [u8; 32]) {
        *dest = self.0;
    }
}

fn error(error: impl std::fmt::Debug) -> CellError {
    failed(format_args!("{BIP324}: {error:?}"))
}

/// Makes a key and its encoding.
pub(super) fn start(
    secret: [u8; 32],
    role: Role,
    curve: &Secp256k1<SignOnly>,
) -> Result<(Handshake<SentKey<'static>>, [u8; ELLSWIFT_LEN]), CellError> {
    let end = Handshake::<Initialized>::new_with_rng(MAGIC.0, role, &mut Known(secret), curve).map_err(error)?;
    let mut encoding = [0; ELLSWIFT_LEN];
    let end = end.send_key(None, &mut encoding).map_err(error)?;
    Ok((end, encoding))
}

/// The rest of a handshake on what the other end has sent.
fn finish(end: Handshake<bip324::SentVersion>, sent: &[u8; SECOND]) -> Result<CipherSession, CellError> {
    let GarbageResult::FoundGarbage {
        mut handshake,
        consumed_bytes,
    } = end.receive_garbage(sent).map_err(error)?
    else {
        return Err(error("no terminator"));
    };
    let Some((length, rest)) = sent[consumed_bytes..].split_first_chunk() else {
        return Err(error("no version packet"));
    };
    handshake.decrypt_packet_len(*length).map_err(error)?;
    match handshake.receive_version(&mut rest.to_vec()).map_err(error)? {
        VersionResult::Complete { cipher } => Ok(cipher),
        VersionResult::Decoy(_) => Err(error("a decoy nobody sent")),
    }
}

/// A handshake of two of their ends.
pub(super) fn handshake(secrets: &[[u8; 32]; 2], curve: &Secp256k1<SignOnly>) -> Result<[CipherSession; 2], CellError> {
    let (initiator, first) = start(secrets[0], Role::Initiator, curve)?;
    let (responder, second) = start(secrets[1], Role::Responder, curve)?;
    let mut sent = [[0; SECOND]; 2];
    let initiator = initiator.receive_key(second).map_err(error)?;
    let initiator = initiator.send_version(&mut sent[0], None).map_err(error)?;
    let responder = responder.receive_key(first).map_err(error)?;
    let responder = responder.send_version(&mut sent[1], None).map_err(error)?;
    Ok([finish(initiator, &sent[1])?, finish(responder, &sent[0])?])
}

/// Their ciphers, made once for each connection and copied from then on.
#[derive(Default)]
pub(super) struct Theirs {
    made: RefCell<Vec<(OutboundCipher, InboundCipher)>>,
}

impl Theirs {
    /// Makes those of so many connections: there is no way to them but a handshake and the packets before.
    fn make(&self, links: &[Link]) -> Result<(), CellError> {
        let mut made = self.made.borrow_mut();
        let curve = Secp256k1::signing_only();
        while let Some(link) = links.get(made.len()) {
            let [initiator, responder] = handshake(&link.secrets, &curve)?;
            if initiator.id() != &link.session_id {
                return Err(CellError::wrong(format_args!("{BIP324} derives another session id")));
            }
            let ((_, mut sealer), (mut opener, _)) = (initiator.into_split(), responder.into_split());
            for _ in 1..link.start {
                let mut wire = [0; OVERHEAD];
                let sealed = <Self as Ciphers>::seal(&mut sealer, true, &[], &mut wire);
                let Some((length, rest)) = wire.split_first_chunk().filter(|_| sealed) else {
                    return Err(error("an empty packet was refused"));
                };
                opener.decrypt_packet_len(*length);
                opener.decrypt(rest, &mut [0; 1], None).map_err(error)?;
            }
            made.push((sealer, opener));
        }
        Ok(())
    }
}

impl Ciphers for Theirs {
    const NAME: &'static str = BIP324;

    type Sealer = OutboundCipher;
    type Opener = InboundCipher;

    fn sealers(&self, links: &[Link]) -> Result<Vec<OutboundCipher>, CellError> {
        self.make(links)?;
        let made = self.made.borrow();
        Ok(made
            .iter()
            .take(links.len())
            .map(|(sealer, _)| sealer.clone())
            .collect())
    }

    fn openers(&self, links: &[Link]) -> Result<Vec<InboundCipher>, CellError> {
        self.make(links)?;
        let made = self.made.borrow();
        Ok(made
            .iter()
            .take(links.len())
            .map(|(_, opener)| opener.clone())
            .collect())
    }

    #[inline(always)]
    fn seal(sealer: &mut OutboundCipher, decoy: bool, contents: &[u8], wire: &mut [u8]) -> bool {
        let kind = if decoy { PacketType::Decoy } else { PacketType::Genuine };
        sealer.encrypt(contents, wire, kind, None).is_ok()
    }

    #[inline(always)]
    fn length(opener: &mut InboundCipher, sealed: [u8; LENGTH_LEN]) -> Option<usize> {
        Some(opener.decrypt_packet_len(sealed))
    }

    #[inline(always)]
    fn open(opener: &mut InboundCipher, sealed: &[u8], text: &mut [u8]) -> Option<bool> {
        let room = text.len().checked_sub(TAG_LEN)?;
        let kind = opener.decrypt(sealed, &mut text[..room], None).ok()?;
        Some(kind == PacketType::Decoy)
    }
}
