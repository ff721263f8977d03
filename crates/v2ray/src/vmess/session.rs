//! What both ends of a connection share once the request header is known.

use md5::{Digest, Md5};
use sealway_aead::Suite;
use sha2::Sha256;
use zeroize::{Zeroize, Zeroizing};

use crate::address::Network;
use crate::{Error, Protocol};

/// How the body is sealed.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Security {
    /// AES-128-GCM, 3 on the wire.
    Aes128Gcm,
    /// ChaCha20-Poly1305, 4 on the wire.
    ChaCha20Poly1305,
    /// Not at all, 5 on the wire. Only the header is sealed.
    None,
}

impl Security {
    /// Reads the number on the wire. 1 (AES-CFB), 2 (`auto`) and 6 (`zero`) never stand there rightly.
    pub(super) fn from_wire(got: u8) -> Result<Self, Error> {
        match got {
            3 => Ok(Security::Aes128Gcm),
            4 => Ok(Security::ChaCha20Poly1305),
            5 => Ok(Security::None),
            _ => Err(Protocol::Vmess.field("the security", u64::from(got))),
        }
    }

    /// The number on the wire.
    pub const fn to_wire(self) -> u8 {
        match self {
            Security::Aes128Gcm => 3,
            Security::ChaCha20Poly1305 => 4,
            Security::None => 5,
        }
    }

    /// The suite, if there is one.
    pub const fn suite(self) -> Option<Suite> {
        match self {
            Security::Aes128Gcm => Some(Suite::Aes128Gcm),
            Security::ChaCha20Poly1305 => Some(Suite::ChaCha20Poly1305),
            Security::None => None,
        }
    }

    /// The options the peers' clients send with this security.
    pub const fn usual_options(self) -> Options {
        match self {
            Security::Aes128Gcm | Security::ChaCha20Poly1305 => {
                Options(Options::CHUNK_STREAM | Options::CHUNK_MASKING | Options::GLOBAL_PADDING)
            }
            Security::None => Options(Options::CHUNK_STREAM | Options::CHUNK_MASKING),
        }
    }
}

/// The option bits of a request.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Options(pub u8);

impl Options {
    /// The body comes in chunks. AEAD bodies do in any case.
    pub const CHUNK_STREAM: u8 = 0x01;
    /// The sizes of chunks are masked.
    pub const CHUNK_MASKING: u8 = 0x04;
    /// Chunks are padded. Needs masking.
    pub const GLOBAL_PADDING: u8 = 0x08;
    /// The sizes of chunks are sealed.
    pub const AUTHENTICATED_LENGTH: u8 = 0x10;

    /// No option: with [`Security::None`], a raw stream, which configurations call `zero`.
    pub const ZERO: Options = Options(0);

    /// Whether a bit is set.
    pub const fn has(self, bit: u8) -> bool {
        self.0 & bit != 0
    }

    /// The same options and these bits.
    #[must_use]
    pub const fn with(self, bits: u8) -> Self {
        Options(self.0 | bits)
    }

    /// Padding without masking has no source to draw its length from.
    pub(super) fn check(self) -> Result<(), Error> {
        if self.has(Self::GLOBAL_PADDING) && !self.has(Self::CHUNK_MASKING) {
            return Err(Protocol::Vmess.malformed("the options ask for padding without masking"));
        }
        Ok(())
    }
}

/// Keys and options of one connection. The keys are wiped when it is dropped.
#[derive(Clone)]
pub struct Session {
    pub(super) key: [u8; 16],
    pub(super) iv: [u8; 16],
    pub(super) response_v: u8,
    /// How the body is sealed.
    pub security: Security,
    /// The option bits.
    pub options: Options,
    /// Whether the body is a stream or datagrams. Mux is a stream.
    pub network: Network,
}

impl Session {
    /// Makes a session, as the client, of 33 random bytes.
    ///
    /// # Errors
    /// [`Error::Malformed`] if the options ask for padding without masking.
    pub fn new(random: &[u8; 33], security: Security, options: Options, network: Network) -> Result<Self, Error> {
        options.check()?;
        let mut session = Session {
            key: [0; 16],
            iv: [0; 16],
            response_v: random[32],
            security,
            options,
            network,
        };
        session.iv.copy_from_slice(&random[..16]);
        session.key.copy_from_slice(&random[16..32]);
        Ok(session)
    }

    /// Whether the body is the payload itself, without chunks: it ends with the connection.
    pub fn is_raw(&self) -> bool {
        self.security == Security::None && !self.options.has(Options::CHUNK_STREAM)
    }

    /// Key and IV of the response.
    pub(super) fn response_keys(&self) -> (Zeroizing<[u8; 16]>, [u8; 16]) {
        let half = |bytes: &[u8; 16]| {
            let mut half = [0; 16];
            half.copy_from_slice(&Sha256::digest(bytes)[..16]);
            half
        };
        (Zeroizing::new(half(&self.key)), half(&self.iv))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.key.zeroize();
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("security", &self.security)
            .field("options", &self.options)
            .field("network", &self.network)
            .finish_non_exhaustive()
    }
}

/// The key a suite takes, made of a 16-byte key.
pub(super) fn suite_key(suite: Suite, key: &[u8; 16]) -> Zeroizing<Vec<u8>> {
    let mut out = Zeroizing::new(Vec::with_capacity(32));
    if suite == Suite::Aes128Gcm {
        out.extend_from_slice(key);
    } else {
        let first = Md5::digest(key);
        out.extend_from_slice(&first);
        out.extend_from_slice(&Md5::digest(first));
    }
    out
}
