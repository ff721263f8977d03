//! The authentication id: 16 bytes that say which user speaks, and when.

use aes::cipher::{BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};
use aes::{Aes128Dec, Aes128Enc, Block};
use md5::{Digest, Md5};
use zeroize::{Zeroize, Zeroizing};

use super::kdf;
use super::keys::Wanted;
use crate::UserId;

/// Seconds that the clocks of both ends may differ.
pub const MAX_SKEW: u64 = 120;

/// Above this many seconds of difference a block is taken for noise and its checksum is not looked at. About 34 years:
/// wide enough for a clock that starts at 1970 or 2038, narrow enough that noise hardly ever passes.
const PLAUSIBLE_SKEW: u64 = 1 << 30;

/// What a user's id is hashed with.
const COMMAND_KEY_SALT: &[u8] = b"c48619fe-8f02-49e0-b9e9-edf763e17e21";

/// A user's command key, from which all keys of a header come. Wiped when dropped.
#[derive(Clone)]
pub struct CommandKey([u8; 16]);

impl CommandKey {
    /// The key of a user.
    pub fn new(id: &UserId) -> Self {
        let digest = Md5::new()
            .chain_update(id.as_bytes())
            .chain_update(COMMAND_KEY_SALT)
            .finalize();
        CommandKey(digest.into())
    }

    pub(super) fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    #[cfg(test)]
    pub(super) fn from_bytes(bytes: [u8; 16]) -> Self {
        CommandKey(bytes)
    }

    pub(super) fn auth_key(&self) -> Zeroizing<[u8; 16]> {
        Zeroizing::new(kdf::AUTH_ID.derive(&self.0))
    }

    /// Makes an authentication id.
    ///
    /// `time` is the Unix time in seconds; `random` must be new for each, or the server takes it for a replay.
    pub fn auth_id(&self, time: i64, random: [u8; 4]) -> [u8; 16] {
        let mut plain = [0; 16];
        plain[..8].copy_from_slice(&time.to_be_bytes());
        plain[8..12].copy_from_slice(&random);
        let crc = crc32fast::hash(&plain[..12]);
        plain[12..].copy_from_slice(&crc.to_be_bytes());
        let mut block = Block::from(plain);
        Aes128Enc::new(&(*self.auth_key()).into()).encrypt_block(&mut block);
        block.into()
    }

    pub(super) fn decryptor(&self) -> Aes128Dec {
        Aes128Dec::new(&(*self.auth_key()).into())
    }
}

impl Drop for CommandKey {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl std::fmt::Debug for CommandKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CommandKey(…)")
    }
}

/// What one user's key makes of an authentication id.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Trial {
    /// It is not this user's.
    Other,
    /// It is this user's and in time: made then, Unix time in seconds.
    Fits(i64),
    /// It is this user's, made this many seconds after our time (before it, if negative).
    Skewed(i64),
}

/// The high halves of the times that [`try_key`] would not take for noise.
pub(super) fn plausible_times(now: i64) -> Wanted {
    let high = |time: i64| {
        let [a, b, c, d, ..] = time.to_be_bytes();
        [a, b, c, d]
    };
    Wanted::new([
        high(now.saturating_sub_unsigned(PLAUSIBLE_SKEW)),
        high(now.saturating_add_unsigned(PLAUSIBLE_SKEW)),
    ])
}

/// Tries one key. The time is looked at first: it costs next to nothing and tells almost all noise apart.
#[inline]
pub(super) fn try_key(key: &Aes128Dec, auth_id: &[u8; 16], now: i64) -> Trial {
    let mut block = Block::from(*auth_id);
    key.decrypt_block(&mut block);
    let plain: [u8; 16] = block.into();
    let [t0, t1, t2, t3, t4, t5, t6, t7, ..] = plain;
    let time = i64::from_be_bytes([t0, t1, t2, t3, t4, t5, t6, t7]);
    let skew = time.abs_diff(now);
    if skew > PLAUSIBLE_SKEW || crc32fast::hash(&plain[..12]).to_be_bytes() != plain[12..] {
        Trial::Other
    } else if skew <= MAX_SKEW {
        Trial::Fits(time)
    } else {
        Trial::Skewed(time.wrapping_sub(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::unhex;

    #[test]
    fn vectors() {
        let key = CommandKey::from_bytes(*b"Demo Key for Aut");
        assert_eq!(
            key.auth_id(0, [0, 1, 2, 3]).to_vec(),
            unhex("9f515418f87bb7553a2e6a83de2a8a79")
        );
        let id = UserId::parse("450bae28-b9da-67d0-16bc-4918dc8d79b5").unwrap();
        assert_eq!(
            CommandKey::new(&id).0.to_vec(),
            unhex("da8b7df4396329ebe7a74afc62a9e7c8")
        );
    }

    #[test]
    fn the_window_is_120_seconds_on_either_side() {
        let key = CommandKey::from_bytes([9; 16]);
        let decryptor = key.decryptor();
        let now = 1_700_000_000;
        for (delta, want) in [
            (0, Trial::Fits(now)),
            (120, Trial::Fits(now + 120)),
            (-120, Trial::Fits(now - 120)),
            (121, Trial::Skewed(121)),
            (-121, Trial::Skewed(-121)),
            (-1_000_000_000, Trial::Skewed(-1_000_000_000)),
            (i64::MIN / 2, Trial::Other),
        ] {
            let auth_id = key.auth_id(now + delta, [1, 2, 3, 4]);
            assert_eq!(try_key(&decryptor, &auth_id, now), want, "{delta}");
        }
        // Extreme times do not overflow.
        for (time, now) in [(i64::MAX, i64::MIN), (i64::MIN, i64::MAX), (i64::MIN, 0)] {
            assert_eq!(try_key(&decryptor, &key.auth_id(time, [0; 4]), now), Trial::Other);
        }
        let mut wrong = key.auth_id(now, [1, 2, 3, 4]);
        wrong[3] ^= 1;
        assert_eq!(try_key(&decryptor, &wrong, now), Trial::Other);
        assert_eq!(
            try_key(
                &CommandKey::from_bytes([8; 16]).decryptor(),
                &key.auth_id(now, [0; 4]),
                now
            ),
            Trial::Other
        );
    }
}
