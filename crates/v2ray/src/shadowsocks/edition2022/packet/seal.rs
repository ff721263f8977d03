//! Sealing datagrams of one session.

use std::sync::atomic::{AtomicU64, Ordering};

use sealway_aead::{Nonce, SealingKey, Suite};

use super::super::{FROM_CLIENT, FROM_SERVER, wire_time};
use super::{BLOCK, LONG_NONCE, block, xor};
use crate::address::write_type_first;
use crate::shadowsocks::key::BlockCipher;
use crate::shadowsocks::{Key, KeyChain};
use crate::{Address, Error};

/// Seals the datagrams that one end sends in one session, numbered from 0. Several tasks may use it.
pub struct PacketSealer {
    key: SealingKey,
    /// The cipher of the plain block. `None`: both numbers are sealed with the body.
    block: Option<BlockCipher>,
    /// The cipher of each identity header, and the name in it.
    identities: Vec<(BlockCipher, [u8; 16])>,
    session: u64,
    next: AtomicU64,
    /// Of answers: the client's session.
    client: Option<u64>,
}

impl PacketSealer {
    /// A client's session. `session` is a random number.
    ///
    /// # Errors
    /// [`Error::Aead`] if memory ran out.
    pub fn client(keys: &KeyChain, session: u64) -> Result<Self, Error> {
        let mut sealer = Self::new(keys.own(), session, None)?;
        sealer.identities = keys
            .steps()
            .map(|(key, next)| (key.block_cipher(), next.name()))
            .collect();
        if let (Some(block), Some(first)) = (&mut sealer.block, keys.identities.first()) {
            *block = first.block_cipher();
        }
        Ok(sealer)
    }

    /// A server's session, which answers the one of a client. `session` is a random number, `key` the user's.
    ///
    /// # Errors
    /// [`Error::Aead`] if memory ran out.
    pub fn server(key: &Key, session: u64, client: u64) -> Result<Self, Error> {
        Self::new(key, session, Some(client))
    }

    fn new(key: &Key, session: u64, client: Option<u64>) -> Result<Self, Error> {
        let aes = key.method().has_identities();
        Ok(PacketSealer {
            key: if aes {
                SealingKey::new(key.method().suite(), key.subkey(&session.to_be_bytes()).as_ref())?
            } else {
                SealingKey::new(Suite::XChaCha20Poly1305, key.as_bytes())?
            },
            block: aes.then(|| key.block_cipher()),
            identities: Vec::new(),
            session,
            next: AtomicU64::new(0),
            client,
        })
    }

    /// The session's number.
    pub const fn session(&self) -> u64 {
        self.session
    }

    /// Appends one datagram.
    ///
    /// `now` is the Unix time in seconds; `random` is the nonce of the ChaCha20 method; `padding` is how many zeros hide the
    /// length of the payload.
    ///
    /// # Errors
    /// [`Error::Aead`] when the numbers are used up.
    pub fn seal(
        &self,
        now: i64,
        random: &[u8; LONG_NONCE],
        (address, port): (&Address, u16),
        padding: u16,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let packet = self.next.fetch_add(1, Ordering::Relaxed);
        if packet == u64::MAX {
            // It stays there: the next number would be 0 again.
            self.next.store(packet, Ordering::Relaxed);
            return Err(sealway_aead::Error::Exhausted.into());
        }
        let plain = block(self.session, packet);
        let (nonce, at) = match &self.block {
            Some(cipher) => {
                out.extend_from_slice(&cipher.encrypt(&plain));
                for (cipher, name) in &self.identities {
                    out.extend_from_slice(&cipher.encrypt(&xor(*name, &plain)));
                }
                (Nonce::assume_unique(self.key.suite(), &plain[4..])?, out.len())
            }
            None => {
                out.extend_from_slice(random);
                out.extend_from_slice(&plain);
                (Nonce::assume_unique(self.key.suite(), random)?, out.len() - BLOCK)
            }
        };
        out.push(if self.client.is_some() {
            FROM_SERVER
        } else {
            FROM_CLIENT
        });
        out.extend_from_slice(&wire_time(now));
        if let Some(client) = self.client {
            out.extend_from_slice(&client.to_be_bytes());
        }
        out.extend_from_slice(&padding.to_be_bytes());
        out.resize(out.len() + usize::from(padding), 0);
        write_type_first(address, port, out);
        out.extend_from_slice(payload);
        let tag = self.key.seal_in_place(nonce, &[], &mut out[at..])?;
        out.extend_from_slice(tag.as_bytes());
        Ok(())
    }
}

impl std::fmt::Debug for PacketSealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PacketSealer")
            .field("suite", &self.key.suite())
            .finish_non_exhaustive()
    }
}
