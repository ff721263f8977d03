//! Who this machine is, and whom it knows.
//!
//! An [`Identity`] is a static key in a file that only its owner may read. [`KnownPeers`] remembers the keys of others by name.

mod error;
mod folder;
mod kept;
mod known;

use std::fmt;
use std::path::{Path, PathBuf};

use sealway_aead::derive::{Hash, Prk};
use sealway_session::handshake::StaticKey;
use zeroize::Zeroizing;

use crate::key::{self, KeyTextError, PublicKey};
use folder::malformed;

pub use error::Error;
pub use folder::config_dir;
pub use kept::Kept;
pub use known::{Known, KnownPeers, Remembered};

/// Name of the file in [`config_dir`].
const FILE: &str = "identity";

/// First line of the file.
const VERSION: &str = "sealway identity 1";

/// Label of the secret under which transfers are kept for resuming.
const TRANSFER: &str = "drop transfer secret";

/// Purpose of the secrets by which two machines know each other on a network.
const NETWORK: &str = "meeting on a network";

/// The same at a relay, before the day and the end that waits.
const RELAY: &str = "meeting at a relay";

/// Seconds of a day.
const DAY: u64 = 24 * 3600;

/// The static key of this machine. Wiped when dropped.
pub struct Identity {
    /// Boxed, so that moving it moves a pointer and leaves no copy behind.
    secret: Box<Zeroizing<[u8; 32]>>,
    public: PublicKey,
    path: Option<PathBuf>,
}

impl Identity {
    /// The identity kept in [`config_dir`]; on first use a new one, which is kept there. Programs that start at the same time
    /// end with the same one. Where nothing can be kept (no home, a folder that cannot be written) it is an
    /// [ephemeral](Identity::ephemeral) one.
    ///
    /// # Errors
    /// [`Error::Exposed`] if there is a file that is not its owner's alone, [`Error::Malformed`] if it is no identity,
    /// [`Error::Io`].
    pub fn load_or_make() -> Result<Self, Error> {
        match config_dir() {
            Some(dir) => Self::load_or_make_in(&dir),
            None => Self::ephemeral(),
        }
    }

    /// As [`Identity::load_or_make`], in a folder of the caller's choice, which is made for the owner alone if there is none.
    ///
    /// # Errors
    /// As there.
    pub fn load_or_make_in(dir: &Path) -> Result<Self, Error> {
        let kept = Kept::at(dir, FILE);
        let (text, is_kept) = kept.secret(|| Ok(Self::ephemeral()?.to_text()))?;
        let secret = parse(&text).map_err(|(line, what)| malformed(&kept.path, line, what))?;
        Ok(Self::of(secret, is_kept.then_some(kept.path)))
    }

    /// An identity that is forgotten with this value.
    ///
    /// # Errors
    /// [`Error::Unable`] if the system gives no random bytes.
    pub fn ephemeral() -> Result<Self, Error> {
        let mut secret = Box::new(Zeroizing::new([0; 32]));
        getrandom::fill(&mut **secret)
            .map_err(|error| Error::Unable(format!("the system gives no random bytes: {error}")))?;
        Ok(Self::of(secret, None))
    }

    /// The identity with this secret key, kept nowhere.
    pub fn with_secret(secret: &Zeroizing<[u8; 32]>) -> Self {
        Self::of(Box::new(secret.clone()), None)
    }

    /// The public key, by which others know this machine.
    pub const fn public(&self) -> PublicKey {
        self.public
    }

    /// The secret key, for the handshake.
    pub fn secret(&self) -> &Zeroizing<[u8; 32]> {
        &self.secret
    }

    /// The file in which it is kept; `None` for an ephemeral one.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// A secret of this machine for its own records of transfers: it changes with the identity and gives nothing of it away.
    ///
    /// # Errors
    /// [`Error::Unable`] if the library of the derivation refuses, which it has no reason to.
    pub fn transfer_secret(&self) -> Result<Zeroizing<[u8; 32]>, Error> {
        let mut secret = Zeroizing::new([0; 32]);
        Prk::extract(Hash::Sha256, b"", &**self.secret)
            .export(TRANSFER, b"", &mut *secret)
            .map_err(|error| Error::Unable(error.to_string()))?;
        Ok(secret)
    }

    /// A secret of this machine and the one with this key, by which they know each other on a network before they speak.
    ///
    /// # Errors
    /// [`Error::Unable`] if the key is none that a machine could have.
    pub fn pair_secret(&self, peer: &[u8; 32]) -> Result<Zeroizing<[u8; 32]>, Error> {
        self.secret_with(peer, NETWORK)
    }

    /// The token by which this machine and the one with this key meet at a relay at a time, in seconds since 1970: another one each day,
    /// and for each of the two as the one that is `first`. To anybody else it is noise.
    ///
    /// # Errors
    /// As [`Identity::pair_secret`].
    pub fn relay_token(&self, peer: &[u8; 32], first: bool, now: u64) -> Result<[u8; 32], Error> {
        let first = if first { self.public } else { PublicKey::new(*peer) };
        let purpose = format!("{RELAY}, day {}, of {first}", now / DAY);
        Ok(*self.secret_with(peer, &purpose)?)
    }

    fn secret_with(&self, peer: &[u8; 32], purpose: &str) -> Result<Zeroizing<[u8; 32]>, Error> {
        let secret = StaticKey::from_bytes(&self.secret).pair_secret(peer, purpose);
        secret.map_err(|error| Error::Unable(format!("the key of another end: {error}")))
    }

    fn of(secret: Box<Zeroizing<[u8; 32]>>, path: Option<PathBuf>) -> Self {
        let public = PublicKey::new(*StaticKey::from_bytes(&secret).public());
        Identity { secret, public, path }
    }

    /// What the file holds.
    fn to_text(&self) -> Zeroizing<String> {
        let secret = key::encode(&self.secret);
        // Longer than what is written: a text that grows leaves copies behind.
        let mut all = Zeroizing::new(String::with_capacity(512));
        let public = self.public.to_string();
        for part in [
            VERSION,
            "\n# public key: ",
            &public,
            "\n# The next line is secret.\nsecret ",
            &secret,
            "\n",
        ] {
            all.push_str(part);
        }
        all
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({})", self.public)
    }
}

/// The secret key of a file's text. Errors name the line, from 1.
fn parse(text: &str) -> Result<Box<Zeroizing<[u8; 32]>>, (usize, String)> {
    let mut lines = text
        .lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line.trim_end()));
    match lines.next() {
        Some((_, VERSION)) => {}
        Some((line, other)) if other.starts_with("sealway identity ") => {
            return Err((line, "the file is of another version of this program".into()));
        }
        _ => return Err((1, format!("it does not begin with \"{VERSION}\""))),
    }
    let mut secret = None;
    let mut last = 1;
    for (line, text) in lines {
        last = line;
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        // Errors show no part of the line: it may be the secret, mistyped.
        let Some(key) = text.strip_prefix("secret ") else {
            return Err((line, "it is neither \"secret\" with a key, nor a comment".into()));
        };
        if secret.is_some() {
            return Err((line, "there are two secrets".into()));
        }
        let key = key::decode(key).map_err(|error| match error {
            KeyTextError::Character { position, .. } => {
                (line, format!("character {position} of the key is none of a key"))
            }
            other => (line, other.to_string()),
        })?;
        secret = Some(Box::new(key));
    }
    secret.ok_or_else(|| (last, "there is no secret".into()))
}

#[cfg(test)]
mod tests;
