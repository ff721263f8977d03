//! The key schedule (RFC 8446 section 7): from what two ends share, and what they have said, to the keys of every record.
//!
//! Without resumption there is one way through it: [`Handshake::new`] after the ServerHello, [`Handshake::application`] after the
//! server's Finished, and a [`TrafficSecret`] for each direction, which makes keys, Finished, and the secret that follows it.

mod transcript;

use sealway_aead::wipe::leaving_no_stack;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use crate::error::{Alert, Error};
use crate::suite::{CipherSuite, Digest, HashKind};

pub use transcript::Transcript;

/// Stack that is overwritten behind a derivation, in words of eight bytes.
const STACK_WORDS: usize = 1024;

/// What is done with secrets that somebody asked to see, to look into a recording of a connection. There is none unless asked for.
pub trait KeyLog: Send + Sync {
    /// A secret, by the name that it has in key logs, and the random bytes of the client's hello, by which it is found.
    fn secret(&self, label: &'static str, client_random: &[u8; 32], secret: &[u8]);
}

/// A key log, and the random bytes of the client's hello.
pub type Logged<'a> = Option<(&'a dyn KeyLog, &'a [u8; 32])>;

/// A line of a key log (draft-ietf-tls-keylogfile), without its end.
pub fn key_log_line(label: &str, client_random: &[u8], secret: &[u8]) -> Zeroizing<String> {
    let mut line = Zeroizing::new(String::with_capacity(
        label.len() + 2 + 2 * (client_random.len() + secret.len()),
    ));
    line.push_str(label);
    for bytes in [client_random, secret] {
        line.push(' ');
        for byte in bytes {
            for digit in [byte >> 4, byte & 15] {
                line.push(char::from(b"0123456789abcdef"[usize::from(digit)]));
            }
        }
    }
    line
}

/// HKDF-Expand-Label (RFC 8446 section 7.1), for at most one output of the hash.
fn expand(hash: HashKind, secret: &[u8], label: &[u8], context: &[u8], out: &mut [u8]) {
    let heads = [0, out.len() as u8, (6 + label.len()) as u8];
    let parts: [&[u8]; 6] = [&heads, b"tls13 ", label, &[context.len() as u8], context, &[1]];
    let block = hash.hmac(secret, &parts);
    out.copy_from_slice(&(*block).as_ref()[..out.len()]);
}

/// Derive-Secret.
fn derive(hash: HashKind, secret: &[u8], label: &[u8], transcript: &Digest) -> Zeroizing<Vec<u8>> {
    let mut out = Zeroizing::new(vec![0; hash.output_len()]);
    expand(hash, secret, label, transcript.as_ref(), &mut out);
    out
}

/// The secret after one whose part is over, with what is mixed in (HKDF-Extract).
fn follow(hash: HashKind, secret: &[u8], input: &[u8]) -> Zeroizing<Vec<u8>> {
    let salt = derive(hash, secret, b"derived", &hash.digest(b""));
    let next = hash.hmac(&salt, &[input]);
    Zeroizing::new((*next).as_ref().to_vec())
}

/// The key of one direction, its initialisation vector, and the number of the record that comes next. Wiped when dropped.
pub struct Keys {
    suite: sealway_aead::Suite,
    key: Zeroizing<Vec<u8>>,
    iv: Zeroizing<[u8; 12]>,
    next: u64,
}

impl Keys {
    /// Of another key schedule, that of TLS 1.2 or of another library.
    ///
    /// # Errors
    /// [`Error::Given`] for a key of a wrong length.
    pub fn new(suite: sealway_aead::Suite, key: &[u8], iv: [u8; 12], next: u64) -> Result<Keys, Error> {
        if key.len() != suite.key_len() {
            return Err(Error::Given("a key of another length than its suite's"));
        }
        let key = Zeroizing::new(key.to_vec());
        let iv = Zeroizing::new(iv);
        Ok(Keys { suite, key, iv, next })
    }

    /// The AEAD.
    pub fn suite(&self) -> sealway_aead::Suite {
        self.suite
    }

    /// The key.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// The initialisation vector.
    pub fn iv(&self) -> &[u8; 12] {
        &self.iv
    }

    /// The number of the next record.
    pub fn next(&self) -> u64 {
        self.next
    }
}

/// The secret of one direction, wiped when dropped.
pub struct TrafficSecret {
    suite: CipherSuite,
    secret: Zeroizing<Vec<u8>>,
}

impl TrafficSecret {
    /// Its suite.
    pub fn suite(&self) -> CipherSuite {
        self.suite
    }

    /// The keys of its records, whose numbers begin at zero (section 7.3).
    pub fn keys(&self) -> Keys {
        let (hash, suite) = (self.suite.hash(), self.suite.aead());
        let (mut key, mut iv) = (Zeroizing::new(vec![0; suite.key_len()]), Zeroizing::new([0; 12]));
        expand(hash, &self.secret, b"key", b"", &mut key);
        expand(hash, &self.secret, b"iv", b"", &mut *iv);
        Keys {
            suite,
            key,
            iv,
            next: 0,
        }
    }

    /// The content of this end's Finished (section 4.4.4): of a handshake's secret only.
    pub fn finished(&self, transcript: &Digest) -> Digest {
        let hash = self.suite.hash();
        let mut key = Zeroizing::new(vec![0; hash.output_len()]);
        expand(hash, &self.secret, b"finished", b"", &mut key);
        *hash.hmac(&key, &[transcript.as_ref()])
    }

    /// Judges the other end's Finished, in constant time.
    ///
    /// # Errors
    /// [`Error::Peer`] if it is another.
    pub fn check_finished(&self, transcript: &Digest, got: &[u8]) -> Result<(), Error> {
        match bool::from(self.finished(transcript).as_ref().ct_eq(got)) {
            true => Ok(()),
            false => Err(Error::peer(
                Alert::DecryptError,
                "a Finished that is not that of this handshake",
            )),
        }
    }

    /// The secret after a KeyUpdate (section 7.2).
    pub fn updated(&self) -> TrafficSecret {
        let hash = self.suite.hash();
        let mut secret = Zeroizing::new(vec![0; hash.output_len()]);
        expand(hash, &self.secret, b"traffic upd", b"", &mut secret);
        TrafficSecret {
            suite: self.suite,
            secret,
        }
    }
}

/// The secrets of both directions.
pub struct Secrets {
    /// What the client sends with.
    pub client: TrafficSecret,
    /// What the server sends with.
    pub server: TrafficSecret,
}

impl Secrets {
    fn new(suite: CipherSuite, secret: &[u8], transcript: &Digest, names: &Names, log: Logged<'_>) -> Secrets {
        let one = |(label, logged): (&[u8], &'static str)| {
            let secret = derive(suite.hash(), secret, label, transcript);
            if let Some((log, random)) = log {
                log.secret(logged, random, &secret);
            }
            TrafficSecret { suite, secret }
        };
        Secrets {
            client: one(names[0]),
            server: one(names[1]),
        }
    }
}

/// Of the client's and of the server's secret: the label, and the name in key logs.
type Names = [(&'static [u8], &'static str); 2];

const HANDSHAKE: Names = [
    (b"c hs traffic", "CLIENT_HANDSHAKE_TRAFFIC_SECRET"),
    (b"s hs traffic", "SERVER_HANDSHAKE_TRAFFIC_SECRET"),
];

const APPLICATION: Names = [
    (b"c ap traffic", "CLIENT_TRAFFIC_SECRET_0"),
    (b"s ap traffic", "SERVER_TRAFFIC_SECRET_0"),
];

/// What there is between the ServerHello and the server's Finished. Wiped when dropped.
pub struct Handshake {
    /// Under which the handshake's messages are sealed.
    pub secrets: Secrets,
    main: Zeroizing<Vec<u8>>,
}

impl Handshake {
    /// By what both ends share, and the transcript up to the ServerHello.
    pub fn new(suite: CipherSuite, shared: &[u8], transcript: &Digest, log: Logged<'_>) -> Handshake {
        leaving_no_stack::<STACK_WORDS, _>(|| {
            let hash = suite.hash();
            let zeros = &[0; crate::suite::MAX_HASH][..hash.output_len()];
            let early = hash.hmac(b"", &[zeros]);
            let handshake = follow(hash, (*early).as_ref(), shared);
            Handshake {
                secrets: Secrets::new(suite, &handshake, transcript, &HANDSHAKE, log),
                main: follow(hash, &handshake, zeros),
            }
        })
    }

    /// By the transcript up to the server's Finished.
    pub fn application(&self, transcript: &Digest, log: Logged<'_>) -> Secrets {
        leaving_no_stack::<STACK_WORDS, _>(|| {
            Secrets::new(self.secrets.client.suite, &self.main, transcript, &APPLICATION, log)
        })
    }
}

#[cfg(test)]
mod tests;
