//! Keys out of one shared secret, so that the same secret never gives the same key twice.
//!
//! HKDF (RFC 5869) with a label that names purpose, suite, direction, epoch and context. The `info` of an expansion is
//!
//! ```text
//! "sealway derive 1"                    16 bytes, the version of this layout
//! usage                                  1 byte: 1 key, 2 initialisation vector, 3 next epoch, 4 export,
//!                                               5 exported pseudorandom key
//! suite                                  1 byte: 1 aes-128-gcm, 2 aes-256-gcm, 3 chacha20-, 4 xchacha20-poly1305, 0 none
//! direction                              1 byte: 1 initiator to responder, 2 responder to initiator, 0 none
//! epoch                                  8 bytes, big-endian
//! output length                          2 bytes, big-endian
//! purpose length, purpose                1 byte, then that many
//! context length, context                2 bytes, big-endian, then that many
//! ```
//!
//! The next epoch's secret and exports have suite 0 and direction 0, exports epoch 0.
//! Every field has a fixed length or a length before it, so different labels never encode alike.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use hkdf::Hkdf;
use sha2::{Sha256, Sha512};
use zeroize::{Zeroize, Zeroizing};

use crate::wipe::leaving_no_stack;
use crate::{Error, Suite};

/// First bytes of every label.
const VERSION: &[u8; 16] = b"sealway derive 1";

/// The hash under HKDF.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Hash {
    /// SHA-256: secrets of 32 bytes.
    Sha256,
    /// SHA-512: secrets of 64 bytes.
    Sha512,
}

impl Hash {
    /// Length of its output, bytes.
    pub const fn output_len(self) -> usize {
        match self {
            Hash::Sha256 => 32,
            Hash::Sha512 => 64,
        }
    }
}

/// Which way a key seals.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Direction {
    /// From the end that opened the connection.
    InitiatorToResponder,
    /// From the end that accepted it.
    ResponderToInitiator,
}

impl Direction {
    /// The other way.
    #[must_use]
    pub const fn reverse(self) -> Self {
        match self {
            Direction::InitiatorToResponder => Direction::ResponderToInitiator,
            Direction::ResponderToInitiator => Direction::InitiatorToResponder,
        }
    }

    const fn id(self) -> u8 {
        match self {
            Direction::InitiatorToResponder => 1,
            Direction::ResponderToInitiator => 2,
        }
    }
}

/// What a traffic key is for. Two labels that differ in any field give unrelated keys.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Label<'a> {
    purpose: &'a str,
    suite: Suite,
    direction: Direction,
    epoch: u64,
    context: &'a [u8],
}

impl<'a> Label<'a> {
    /// Names a purpose (at most 255 bytes), a suite and a direction; epoch 0, no context.
    pub const fn new(purpose: &'a str, suite: Suite, direction: Direction) -> Self {
        Label {
            purpose,
            suite,
            direction,
            epoch: 0,
            context: &[],
        }
    }

    /// The same label in another epoch.
    #[must_use]
    pub const fn epoch(mut self, epoch: u64) -> Self {
        self.epoch = epoch;
        self
    }

    /// The same label bound to a context of at most 65535 bytes: a transcript hash, a connection number.
    #[must_use]
    pub const fn context(mut self, context: &'a [u8]) -> Self {
        self.context = context;
        self
    }
}

/// What an expansion is used as.
#[derive(Clone, Copy)]
enum Usage {
    Key = 1,
    Iv = 2,
    NextEpoch = 3,
    Export = 4,
    ExportPrk = 5,
}

/// Stack that is overwritten after a derivation, in words of eight bytes: several times what one uses.
const STACK_WORDS: usize = 2048;

/// A pseudorandom key: the one secret from which everything else is expanded. Wiped when dropped.
pub struct Prk {
    hash: Hash,
    bytes: Zeroizing<Vec<u8>>,
}

impl Prk {
    /// HKDF-Extract (RFC 5869 section 2.2). An empty salt stands for zeros of the hash's length.
    pub fn extract(hash: Hash, salt: &[u8], secret: &[u8]) -> Self {
        let mut bytes = Zeroizing::new(vec![0; hash.output_len()]);
        leaving_no_stack::<STACK_WORDS, _>(|| match hash {
            Hash::Sha256 => {
                let (mut prk, _) = Hkdf::<Sha256>::extract(Some(salt), secret);
                bytes.copy_from_slice(&prk);
                prk.zeroize();
            }
            Hash::Sha512 => {
                let (mut prk, _) = Hkdf::<Sha512>::extract(Some(salt), secret);
                bytes.copy_from_slice(&prk);
                prk.zeroize();
            }
        });
        Prk { hash, bytes }
    }

    /// A pseudorandom key that was made elsewhere: the chaining key of a Noise handshake, the exporter of TLS.
    ///
    /// It must be uniformly random and of the hash's length. Anything else, a password or the coordinate of a
    /// Diffie-Hellman exchange, goes through [`Prk::extract`]. The caller wipes the bytes that were passed in.
    ///
    /// # Errors
    /// [`Error::SecretLength`] unless there are [`Hash::output_len`] bytes.
    pub fn from_secret(hash: Hash, secret: &[u8]) -> Result<Self, Error> {
        let (need, got) = (hash.output_len(), secret.len());
        if got != need {
            return Err(Error::SecretLength { need, got });
        }
        let mut bytes = Zeroizing::new(vec![0; need]);
        bytes.copy_from_slice(secret);
        Ok(Prk { hash, bytes })
    }

    /// HKDF-Expand (RFC 5869 section 2.3) with an `info` of the caller's, for protocols with labels of their own.
    ///
    /// # Errors
    /// [`Error::DerivedLength`] above 255 times the length of the hash.
    pub fn expand_raw(&self, info: &[u8], output: &mut [u8]) -> Result<(), Error> {
        self.expand_parts(&[info], output)
    }

    fn expand_parts(&self, info: &[&[u8]], output: &mut [u8]) -> Result<(), Error> {
        let too_long = Error::DerivedLength { got: output.len() };
        // The pseudorandom key has the length of the hash, so `from_prk` cannot refuse it.
        let done = leaving_no_stack::<STACK_WORDS, _>(|| match self.hash {
            Hash::Sha256 => Hkdf::<Sha256>::from_prk(&self.bytes).map(|hkdf| hkdf.expand_multi_info(info, output)),
            Hash::Sha512 => Hkdf::<Sha512>::from_prk(&self.bytes).map(|hkdf| hkdf.expand_multi_info(info, output)),
        });
        match done {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(too_long),
            Err(_) => Err(Error::Backend),
        }
    }

    fn expand(
        &self,
        usage: Usage,
        ids: [u8; 2],
        epoch: u64,
        purpose: &str,
        context: &[u8],
        output: &mut [u8],
    ) -> Result<(), Error> {
        let purpose_len = u8::try_from(purpose.len()).map_err(|_| Error::LabelLength { got: purpose.len() })?;
        let context_len = u16::try_from(context.len()).map_err(|_| Error::LabelLength { got: context.len() })?;
        let output_len = u16::try_from(output.len()).map_err(|_| Error::DerivedLength { got: output.len() })?;
        let parts: [&[u8]; 9] = [
            VERSION,
            &[usage as u8],
            &ids,
            &epoch.to_be_bytes(),
            &output_len.to_be_bytes(),
            &[purpose_len],
            purpose.as_bytes(),
            &context_len.to_be_bytes(),
            context,
        ];
        self.expand_parts(&parts, output)
    }

    /// Key and initialisation vector for one suite, direction and epoch.
    ///
    /// # Errors
    /// [`Error::LabelLength`] for a purpose or context that is too long.
    pub fn traffic(&self, label: &Label<'_>) -> Result<Traffic, Error> {
        let ids = [label.suite.derivation_id(), label.direction.id()];
        let mut bytes = Box::new(Zeroizing::new([0; Suite::MAX_KEY_LEN + Suite::MAX_NONCE_LEN]));
        let (key, iv) = bytes.split_at_mut(Suite::MAX_KEY_LEN);
        let (epoch, purpose, context) = (label.epoch, label.purpose, label.context);
        self.expand(
            Usage::Key,
            ids,
            epoch,
            purpose,
            context,
            &mut key[..label.suite.key_len()],
        )?;
        self.expand(
            Usage::Iv,
            ids,
            epoch,
            purpose,
            context,
            &mut iv[..label.suite.nonce_len()],
        )?;
        Ok(Traffic {
            suite: label.suite,
            bytes,
        })
    }

    /// The secret of the epoch after `epoch`, from which this one cannot be computed back. Drop this one to forget it.
    ///
    /// `context` binds it as [`Label::context`] binds a key: to a transcript hash, a connection number.
    ///
    /// # Errors
    /// [`Error::LabelLength`] for a purpose or context that is too long.
    pub fn next_epoch(&self, purpose: &str, epoch: u64, context: &[u8]) -> Result<Prk, Error> {
        self.expand_prk(Usage::NextEpoch, epoch, purpose, context)
    }

    /// A secret of its own for another part of the protocol, to derive from further: an extra connection, a session to
    /// resume. It is unrelated to what [`Prk::export`] gives under the same names.
    ///
    /// # Errors
    /// [`Error::LabelLength`] for a purpose or context that is too long.
    pub fn export_prk(&self, purpose: &str, context: &[u8]) -> Result<Prk, Error> {
        self.expand_prk(Usage::ExportPrk, 0, purpose, context)
    }

    fn expand_prk(&self, usage: Usage, epoch: u64, purpose: &str, context: &[u8]) -> Result<Prk, Error> {
        let mut bytes = Zeroizing::new(vec![0; self.hash.output_len()]);
        self.expand(usage, [0, 0], epoch, purpose, context, &mut bytes)?;
        Ok(Prk { hash: self.hash, bytes })
    }

    /// Bytes for another part of the protocol: a ticket, a check string. For a secret to derive from, see
    /// [`Prk::export_prk`].
    ///
    /// # Errors
    /// [`Error::LabelLength`] for a purpose or context that is too long, [`Error::DerivedLength`] for an output longer
    /// than 255 times the hash.
    pub fn export(&self, purpose: &str, context: &[u8], output: &mut [u8]) -> Result<(), Error> {
        self.expand(Usage::Export, [0, 0], 0, purpose, context, output)
    }
}

impl fmt::Debug for Prk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Prk({:?})", self.hash)
    }
}

/// A derived key with its initialisation vector. Wiped when dropped.
pub struct Traffic {
    suite: Suite,
    /// Key, then vector. Boxed, so that moving it moves a pointer and leaves no copy behind.
    bytes: Box<Zeroizing<[u8; Suite::MAX_KEY_LEN + Suite::MAX_NONCE_LEN]>>,
}

impl Traffic {
    /// The suite.
    pub const fn suite(&self) -> Suite {
        self.suite
    }

    /// The key bytes, for a protocol or backend that sets up keys itself.
    pub fn key(&self) -> &[u8] {
        &self.bytes[..self.suite.key_len()]
    }

    /// The initialisation vector, of the length of the suite's nonce.
    pub fn iv(&self) -> &[u8] {
        &self.bytes[Suite::MAX_KEY_LEN..][..self.suite.nonce_len()]
    }
}

impl fmt::Debug for Traffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Traffic({})", self.suite)
    }
}
