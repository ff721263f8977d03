//! Agreement on a curve of NIST's (RFC 8446 sections 4.2.8.2 and 7.4.2). Points are uncompressed.

use aws_lc_rs::agreement::{self, Algorithm, PrivateKey, UnparsedPublicKey};
use zeroize::Zeroizing;

use super::{SharedSecret, leaving_no_stack, refused};
use crate::error::Error;

/// What an uncompressed point begins with.
const UNCOMPRESSED: u8 = 4;

/// One of the curves.
#[derive(Clone, Copy)]
pub(super) struct Curve {
    pub(super) algorithm: &'static Algorithm,
    /// Bytes of a coordinate, and of a secret.
    pub(super) len: usize,
}

impl Curve {
    /// Draws a secret. What stands for no number below the curve's order, one in 2^32 at most, is made one.
    pub(super) fn draw(self, random: &mut dyn FnMut(&mut [u8])) -> Zeroizing<Vec<u8>> {
        let mut secret = Zeroizing::new(vec![0; self.len]);
        random(&mut secret);
        if self.key(&secret).is_err() {
            secret[0] &= 0x7f;
            secret[self.len - 1] |= 1;
        }
        secret
    }

    /// The point to send.
    pub(super) fn point(self, secret: &[u8]) -> Result<Vec<u8>, Error> {
        leaving_no_stack(|| {
            let point = self.key(secret)?.compute_public_key().map_err(|_| FAILED)?;
            Ok(point.as_ref().to_vec())
        })
    }

    /// What a secret and another's point make: the first coordinate of their product.
    pub(super) fn agree(self, secret: &[u8], point: &[u8]) -> Result<SharedSecret, Error> {
        if point.len() != 1 + 2 * self.len || point.first() != Some(&UNCOMPRESSED) {
            return Err(refused("a key share that is no uncompressed point"));
        }
        leaving_no_stack(|| {
            let theirs = UnparsedPublicKey::new(self.algorithm, point);
            let wrong = refused("a key share that is no point of its curve");
            agreement::agree(&self.key(secret)?, theirs, wrong, |shared| {
                Ok(Zeroizing::new(shared.to_vec()))
            })
        })
    }

    fn key(self, secret: &[u8]) -> Result<PrivateKey, Error> {
        leaving_no_stack(|| PrivateKey::from_private_key(self.algorithm, secret)).map_err(|_| FAILED)
    }
}

const FAILED: Error = Error::Library("a key of a curve could not be made");
