//! The key of one connection, and what both ends make of their two keys.

use alloc::boxed::Box;
use core::fmt;

use once_cell::race::OnceBox;
use sealway_aead::derive::{Hash, Prk};
use secp256k1::ellswift::{ElligatorSwift, ElligatorSwiftParty};
use secp256k1::{Secp256k1, SecretKey, VerifyOnly};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::fschacha::{RecvChain, SendChain};
use crate::wipe::leaving_no_stack;
use crate::{ELLSWIFT_LEN, Error, Magic, Role, TERMINATOR_LEN};

/// A secret key for one connection with its ElligatorSwift encoding, which is what the peer is sent.
///
/// Not `Clone`, wiped when dropped, used up by the handshake: no two connections have the same key.
pub struct LocalKey {
    /// Boxed before it is filled, so that moving the key moves a pointer and leaves no copy behind.
    secret: Box<Zeroizing<[u8; 32]>>,
    encoding: [u8; ELLSWIFT_LEN],
}

impl LocalKey {
    /// Makes a key of 32 secret random bytes and encodes it with 32 more, both from a cryptographic generator. The caller
    /// wipes the bytes passed in.
    ///
    /// One in 2^128 draws is no key.
    ///
    /// # Errors
    /// [`Error::SecretKey`] if `secret` is zero or not below the order of the curve: draw again.
    pub fn new(secret: &[u8; 32], auxiliary: &[u8; 32]) -> Result<Self, Error> {
        let mut kept = Box::new(Zeroizing::new([0; 32]));
        kept.copy_from_slice(secret);
        let encoding = leaving_no_stack(|| -> Result<_, Error> {
            let mut key = secret_key(&kept)?;
            let encoding = ElligatorSwift::from_seckey(context(secret, auxiliary), key, Some(*auxiliary)).to_array();
            key.non_secure_erase();
            Ok(encoding)
        })?;
        Ok(LocalKey { secret: kept, encoding })
    }

    /// A key whose encoding is known: that of a test vector. It is not checked whether they belong together; if they do
    /// not, the two ends agree on nothing.
    ///
    /// # Errors
    /// [`Error::SecretKey`] as [`LocalKey::new`].
    pub fn with_encoding(secret: &[u8; 32], encoding: [u8; ELLSWIFT_LEN]) -> Result<Self, Error> {
        let mut kept = Box::new(Zeroizing::new([0; 32]));
        kept.copy_from_slice(secret);
        leaving_no_stack(|| -> Result<_, Error> {
            let mut key = secret_key(&kept)?;
            key.non_secure_erase();
            Ok(())
        })?;
        Ok(LocalKey { secret: kept, encoding })
    }

    /// The 64 bytes to send.
    pub const fn encoding(&self) -> &[u8; ELLSWIFT_LEN] {
        &self.encoding
    }

    /// What both ends derive: this key, the 64 bytes of the peer exactly as they came, and the network.
    ///
    /// Any 64 bytes are the encoding of some point, so nothing a peer sends makes this fail; a wrong one shows by the first
    /// packet.
    ///
    /// # Errors
    /// [`Error::Aead`] if memory ran out.
    pub fn agree(self, theirs: &[u8; ELLSWIFT_LEN], role: Role, magic: Magic) -> Result<SessionKeys, Error> {
        let (initiator, responder, party) = match role {
            Role::Initiator => (&self.encoding, theirs, ElligatorSwiftParty::A),
            Role::Responder => (theirs, &self.encoding, ElligatorSwiftParty::B),
        };
        let mut shared = Box::new(Zeroizing::new([0; 32]));
        leaving_no_stack(|| -> Result<_, Error> {
            // Passed on at once: one that could not be a key was refused when it was made.
            let mut key = secret_key(&self.secret)?;
            let secret = ElligatorSwift::shared_secret(
                ElligatorSwift::from_array(*initiator),
                ElligatorSwift::from_array(*responder),
                key,
                party,
                None,
            );
            shared.copy_from_slice(secret.as_secret_bytes());
            key.non_secure_erase();
            Ok(())
        })?;
        SessionKeys::derive(&shared, magic)
    }
}

fn secret_key(bytes: &[u8; 32]) -> Result<SecretKey, Error> {
    SecretKey::from_slice(bytes).map_err(|_| Error::SecretKey)
}

/// The library's tables, blinded against onlookers with what the first key of the process came with. Blinding anew for
/// every key would double what a key costs, and a key here is used twice in its life; Bitcoin Core blinds once, too.
fn context(secret: &[u8; 32], auxiliary: &[u8; 32]) -> &'static Secp256k1<VerifyOnly> {
    // Threads that come first together each make one, and all but one are dropped: nobody waits, so no operating system is needed.
    static CONTEXT: OnceBox<Secp256k1<VerifyOnly>> = OnceBox::new();
    CONTEXT.get_or_init(|| {
        let mut context = Secp256k1::verification_only();
        let hash = Sha256::new_with_prefix(b"sealway blinding")
            .chain_update(secret)
            .chain_update(auxiliary);
        let seed: Zeroizing<[u8; 32]> = Zeroizing::new(hash.finalize().into());
        context.seeded_randomize(&seed);
        Box::new(context)
    })
}

impl fmt::Debug for LocalKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LocalKey")
    }
}

/// Everything that is derived of the shared secret (BIP324, "Keys and session ID derivation"). Wiped when dropped.
pub struct SessionKeys {
    /// initiator_L, initiator_P, responder_L, responder_P, garbage_terminators, session_id, in one place.
    bytes: Box<Zeroizing<[u8; 32 * LABELS.len()]>>,
}

const LABELS: [&[u8]; 6] = [
    b"initiator_L",
    b"initiator_P",
    b"responder_L",
    b"responder_P",
    b"garbage_terminators",
    b"session_id",
];

impl SessionKeys {
    /// Derives from the 32 bytes that the key agreement gives. [`LocalKey::agree`] does this.
    ///
    /// # Errors
    /// [`Error::Aead`] if memory ran out.
    pub fn derive(shared: &[u8; 32], magic: Magic) -> Result<Self, Error> {
        let mut salt = *b"bitcoin_v2_shared_secret....";
        salt[24..].copy_from_slice(&magic.0);
        let prk = Prk::extract(Hash::Sha256, &salt, shared);
        let mut bytes = Box::new(Zeroizing::new([0; 32 * LABELS.len()]));
        for (part, label) in bytes.chunks_exact_mut(32).zip(LABELS) {
            prk.expand_raw(label, part)?;
        }
        Ok(SessionKeys { bytes })
    }

    /// The part with this number in [`LABELS`].
    fn part(&self, index: usize) -> &[u8; 32] {
        &self.bytes.as_chunks::<32>().0[index]
    }

    /// The number in [`LABELS`] of what `sender` seals lengths with.
    const fn first(sender: Role) -> usize {
        match sender {
            Role::Initiator => 0,
            Role::Responder => 2,
        }
    }

    /// The first key of the lengths that `sender` seals.
    pub fn length_key(&self, sender: Role) -> &[u8; 32] {
        self.part(Self::first(sender))
    }

    /// The first key of the contents that `sender` seals.
    pub fn content_key(&self, sender: Role) -> &[u8; 32] {
        self.part(Self::first(sender) + 1)
    }

    /// What `sender` ends its garbage with.
    pub fn terminator(&self, sender: Role) -> [u8; TERMINATOR_LEN] {
        let both = self.part(4).as_chunks::<TERMINATOR_LEN>().0;
        match sender {
            Role::Initiator => both[0],
            Role::Responder => both[1],
        }
    }

    /// The same at both ends if nobody stands between them; to be compared by other means.
    pub fn session_id(&self) -> [u8; 32] {
        *self.part(5)
    }

    /// The chain of what `role` sends.
    ///
    /// # Errors
    /// [`Error::Aead`] never happens with a working machine.
    pub fn send_chain(&self, role: Role) -> Result<SendChain, Error> {
        SendChain::new(self.length_key(role), self.content_key(role))
    }

    /// The chain of what `role` receives.
    ///
    /// # Errors
    /// As [`SessionKeys::send_chain`].
    pub fn recv_chain(&self, role: Role) -> Result<RecvChain, Error> {
        let sender = role.other();
        RecvChain::new(self.length_key(sender), self.content_key(sender))
    }
}

impl fmt::Debug for SessionKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionKeys")
    }
}
