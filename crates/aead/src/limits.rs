//! How much one key may seal: when to take a new one, and when to refuse.

use crate::Suite;

/// Block size by which all suites' use is counted, bytes (AES and Poly1305 blocks; a quarter of a ChaCha20 block).
const BLOCK: u64 = 16;

/// When to derive the next key for the sake of forward secrecy, long before any cipher needs it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RekeyPolicy {
    /// Payload bytes sealed under one key.
    pub bytes: u64,
    /// Messages sealed under one key.
    pub messages: u64,
}

impl RekeyPolicy {
    /// After 1 GiB or 2^20 messages, whichever comes first.
    pub const DEFAULT: RekeyPolicy = RekeyPolicy {
        bytes: 1 << 30,
        messages: 1 << 20,
    };

    /// Never asks for a new key; the suite's hard limits still hold.
    pub const NEVER: RekeyPolicy = RekeyPolicy {
        bytes: u64::MAX,
        messages: u64::MAX,
    };

    /// True once `messages` messages with `bytes` bytes in all call for the next key.
    pub const fn is_due(&self, bytes: u64, messages: u64) -> bool {
        bytes >= self.bytes || messages >= self.messages
    }
}

impl Default for RekeyPolicy {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The soft limit of a key (time to rekey) and its hard limits (refuse to seal).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// Soft limit.
    pub rekey: RekeyPolicy,
    /// Hard limit in messages.
    pub max_messages: u64,
    /// Hard limit in blocks of 16 bytes, one more counted for every message's tag.
    pub max_blocks: u64,
}

impl Limits {
    /// The defaults of a suite.
    ///
    /// AES-GCM: 2^34.5 blocks, which are the 2^24.5 full records that RFC 8446 section 5.5 allows for a safety margin of
    /// about 2^-57; the number of messages is bounded by the same count. The ChaCha20 suites have no such bound (RFC
    /// 8446 section 5.5, RFC 9001 section 6.6): there the 64-bit counter ends first.
    pub const fn of(suite: Suite) -> Self {
        match suite {
            Suite::Aes128Gcm | Suite::Aes256Gcm => Limits {
                rekey: RekeyPolicy::DEFAULT,
                // floor(2^34.5): each message takes at least the block of its tag.
                max_messages: 24_296_003_999,
                max_blocks: 24_296_003_999,
            },
            Suite::ChaCha20Poly1305 | Suite::XChaCha20Poly1305 => Limits {
                rekey: RekeyPolicy::DEFAULT,
                max_messages: u64::MAX,
                max_blocks: u64::MAX,
            },
        }
    }

    /// The same hard limits with another soft limit.
    #[must_use]
    pub const fn with_rekey(mut self, rekey: RekeyPolicy) -> Self {
        self.rekey = rekey;
        self
    }

    /// The soft limit of `other`, and of each hard limit the lower one.
    #[must_use]
    pub const fn lowered_to(self, other: Limits) -> Self {
        Limits {
            rekey: other.rekey,
            max_messages: if other.max_messages < self.max_messages {
                other.max_messages
            } else {
                self.max_messages
            },
            max_blocks: if other.max_blocks < self.max_blocks {
                other.max_blocks
            } else {
                self.max_blocks
            },
        }
    }

    /// These limits, with the hard ones lowered to at most the given messages.
    #[must_use]
    pub const fn with_max_messages(mut self, max: u64) -> Self {
        if max < self.max_messages {
            self.max_messages = max;
        }
        self
    }
}

/// What one key has sealed so far.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Usage {
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
    blocks: u64,
}

impl Usage {
    /// The use after one more message of `len` bytes, or `None` if a hard limit forbids it.
    pub(crate) fn after(self, len: u64, limits: &Limits) -> Option<Usage> {
        let messages = self.messages.checked_add(1)?;
        let blocks = self.blocks.checked_add(len.div_ceil(BLOCK))?.checked_add(1)?;
        if messages > limits.max_messages || blocks > limits.max_blocks {
            return None;
        }
        Some(Usage {
            messages,
            blocks,
            bytes: self.bytes.saturating_add(len),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gcm_limit_is_the_power_it_claims() {
        let limit = Limits::of(Suite::Aes256Gcm).max_blocks as u128;
        // (2^34.5)^2 = 2^69.
        assert!(limit * limit <= 1 << 69);
        assert!((limit + 1) * (limit + 1) > 1 << 69);
    }

    #[test]
    fn lowering_takes_each_hard_limit_by_itself_and_the_new_soft_one() {
        let limits = |rekey, max_messages, max_blocks| Limits {
            rekey,
            max_messages,
            max_blocks,
        };
        let (soon, never) = (RekeyPolicy { bytes: 1, messages: 2 }, RekeyPolicy::NEVER);
        let lowered = limits(soon, 5, 50).lowered_to(limits(never, 6, 40));
        assert_eq!(lowered, limits(never, 5, 40));
        let lowered = limits(never, 6, 40).lowered_to(limits(soon, 5, 50));
        assert_eq!(lowered, limits(soon, 5, 40));
    }

    #[test]
    fn rekey_is_due_by_bytes_or_messages() {
        let policy = RekeyPolicy::DEFAULT;
        assert!(!policy.is_due((1 << 30) - 1, (1 << 20) - 1));
        assert!(policy.is_due(1 << 30, 1));
        assert!(policy.is_due(0, 1 << 20));
        assert!(!RekeyPolicy::NEVER.is_due(1 << 62, 1 << 62));
    }

    #[test]
    fn usage_counts_a_block_for_the_tag_and_stops_at_the_limit() {
        let limits = Limits {
            rekey: RekeyPolicy::NEVER,
            max_messages: 3,
            max_blocks: 5,
        };
        let used = Usage::default().after(17, &limits).unwrap();
        assert_eq!(
            used,
            Usage {
                messages: 1,
                bytes: 17,
                blocks: 3
            }
        );
        assert_eq!(used.after(17, &limits), None);
        let used = used.after(16, &limits).unwrap();
        assert_eq!(used.after(0, &limits), None);
        assert_eq!(Usage::default().after(u64::MAX, &Limits::of(Suite::Aes128Gcm)), None);
    }

    #[test]
    fn message_limit_stops_without_bytes() {
        let limits = Limits::of(Suite::ChaCha20Poly1305).with_max_messages(2);
        let mut used = Usage::default();
        used = used.after(0, &limits).unwrap();
        used = used.after(0, &limits).unwrap();
        assert_eq!(used.after(0, &limits), None);
    }
}
