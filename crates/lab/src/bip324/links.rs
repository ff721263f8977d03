//! The connections that packets are sealed on, with keys from a stated seed and the handshake's own derivation.

use secp256k1::ellswift::ElligatorSwift;
use secp256k1::{Secp256k1, SecretKey, SignOnly};

use sealway_bip324::fschacha::{PacketNumber, REKEY_INTERVAL, RecvChain, SendChain};
use sealway_bip324::{ELLSWIFT_LEN, LocalKey, Magic, Role};

use crate::run::CellError;
use crate::stats::SplitMix64;
use crate::workload::bytes::noise;

/// Seed of keys, lengths, contents and turns: the same packets on every machine and in every run.
pub(super) const SEED: u64 = 1;

/// The network whose magic goes into the keys.
pub(super) const MAGIC: Magic = Magic::MAINNET;

/// A connection; what is measured goes from the initiator to the responder.
#[derive(Clone)]
pub(super) struct Link {
    /// Secret keys of initiator and responder.
    pub(super) secrets: [[u8; 32]; 2],
    /// Their encodings, as the peer crate makes them: without randomness of their own, so that all ends derive the same.
    pub(super) encodings: [[u8; ELLSWIFT_LEN]; 2],
    /// The first key of the lengths that the initiator seals, and that of its contents.
    pub(super) length_key: [u8; 32],
    pub(super) content_key: [u8; 32],
    /// Number of the packet that a pass begins with, 1 to 223: connections change their keys at different times, and the
    /// version packet was number 0.
    pub(super) start: u8,
    pub(super) session_id: [u8; 32],
}

impl Link {
    /// Where a pass begins.
    pub(super) fn number(&self) -> PacketNumber {
        PacketNumber::from_index(u64::from(self.start))
    }

    /// The chain that seals.
    pub(super) fn send_chain(&self) -> Result<SendChain, CellError> {
        SendChain::resume(&self.length_key, &self.content_key, self.number()).map_err(failed)
    }

    /// The chain that opens the same.
    pub(super) fn recv_chain(&self) -> Result<RecvChain, CellError> {
        RecvChain::resume(&self.length_key, &self.content_key, self.number()).map_err(failed)
    }
}

/// A failure of our own engine, in its words.
pub(super) fn failed(error: impl std::fmt::Display) -> CellError {
    CellError::failed(error)
}

/// Makes that many connections.
pub(super) fn links(count: usize) -> Result<Vec<Link>, CellError> {
    let mut starts = SplitMix64::stream(SEED, 2);
    let secrets = noise(count * 64, SEED ^ 0x5ec3e7);
    let (secrets, _) = secrets.as_chunks::<32>();
    let secp = Secp256k1::signing_only();
    let mut links = Vec::with_capacity(count);
    for pair in secrets.as_chunks::<2>().0 {
        let encodings = [encoding(&secp, &pair[0])?, encoding(&secp, &pair[1])?];
        let key = LocalKey::with_encoding(&pair[0], encodings[0]).map_err(failed)?;
        let keys = key.agree(&encodings[1], Role::Initiator, MAGIC).map_err(failed)?;
        links.push(Link {
            secrets: *pair,
            encodings,
            length_key: *keys.length_key(Role::Initiator),
            content_key: *keys.content_key(Role::Initiator),
            start: 1 + starts.below(usize::from(REKEY_INTERVAL) - 1) as u8,
            session_id: keys.session_id(),
        });
    }
    Ok(links)
}

/// The encoding of a public key that has no randomness but the key's.
fn encoding(secp: &Secp256k1<SignOnly>, secret: &[u8; 32]) -> Result<[u8; ELLSWIFT_LEN], CellError> {
    let secret = SecretKey::from_slice(secret).map_err(failed)?;
    Ok(ElligatorSwift::from_pubkey(secret.public_key(secp)).to_array())
}
