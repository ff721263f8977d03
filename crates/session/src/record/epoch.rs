//! The keys of one direction of one connection, one epoch after another.

use sealway_aead::derive::{Direction, Label, Prk, Traffic};
use sealway_aead::{Error, Suite};

/// Length of what binds keys to their place: the transcript hash and the index of the connection.
pub(crate) const CONTEXT_LEN: usize = 36;

/// Label of traffic keys and of the step to the next secret.
const PURPOSE: &str = "sealway session traffic";

/// The secret of the epoch whose keys have not been made yet.
pub(crate) struct Epochs {
    secret: Prk,
    epoch: u64,
    suite: Suite,
    direction: Direction,
    context: [u8; CONTEXT_LEN],
}

impl Epochs {
    /// From a secret that is for this direction of this connection alone.
    pub(crate) fn new(secret: Prk, suite: Suite, direction: Direction, context: [u8; CONTEXT_LEN]) -> Self {
        Epochs {
            secret,
            epoch: 0,
            suite,
            direction,
            context,
        }
    }

    pub(super) const fn suite(&self) -> Suite {
        self.suite
    }

    /// The keys of the epoch. The secret goes on to the next one and is wiped, so that these keys cannot be made again.
    pub(super) fn next(&mut self) -> Result<Traffic, Error> {
        let label = Label::new(PURPOSE, self.suite, self.direction)
            .epoch(self.epoch)
            .context(&self.context);
        let traffic = self.secret.traffic(&label)?;
        self.secret = self.secret.next_epoch(PURPOSE, self.epoch, &self.context)?;
        self.epoch += 1;
        Ok(traffic)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use sealway_aead::derive::Hash;

    use super::*;

    /// The same secret under every suite, direction, context and epoch: no two keys or vectors are alike.
    #[test]
    fn one_secret_never_gives_a_key_twice() {
        let mut seen = HashSet::new();
        let mut made = 0;
        for suite in Suite::ALL {
            for direction in [Direction::InitiatorToResponder, Direction::ResponderToInitiator] {
                for index in [0u8, 1, 2] {
                    let mut context = [7; CONTEXT_LEN];
                    context[CONTEXT_LEN - 1] = index;
                    let secret = Prk::from_secret(Hash::Sha256, &[9; 32]).unwrap();
                    let mut epochs = Epochs::new(secret, suite, direction, context);
                    for _ in 0..5 {
                        let traffic = epochs.next().unwrap();
                        // Prefixes of one stream of bytes would not do either.
                        assert!(seen.insert(traffic.key()[..12].to_vec()));
                        assert!(seen.insert(traffic.iv()[..12].to_vec()));
                        made += 2;
                    }
                }
            }
        }
        assert_eq!(made, 4 * 2 * 3 * 5 * 2);
        assert_eq!(seen.len(), made);
    }
}
