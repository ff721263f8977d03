//! aws-lc-rs and ring, called directly.

use sealway_aead::Suite;

use super::{Engine, TagBytes};

/// Both libraries have the same interface, down to the names.
macro_rules! ring_like {
    ($(#[$doc:meta])* $engine:ident, $name:literal, $library:ident, { $($extra:tt)* }) => {
        $(#[$doc])*
        pub(crate) struct $engine;

        impl Engine for $engine {
            const NAME: &'static str = $name;

            type Sealing = $library::aead::LessSafeKey;
            type Opening = $library::aead::LessSafeKey;

            fn has(suite: Suite) -> bool {
                suite != Suite::XChaCha20Poly1305
            }

            #[inline(always)]
            fn sealing(suite: Suite, key: &[u8]) -> Option<Self::Sealing> {
                let algorithm = match suite {
                    Suite::Aes128Gcm => &$library::aead::AES_128_GCM,
                    Suite::Aes256Gcm => &$library::aead::AES_256_GCM,
                    Suite::ChaCha20Poly1305 => &$library::aead::CHACHA20_POLY1305,
                    Suite::XChaCha20Poly1305 => return None,
                };
                $library::aead::UnboundKey::new(algorithm, key).ok().map($library::aead::LessSafeKey::new)
            }

            #[inline(always)]
            fn opening(suite: Suite, key: &[u8]) -> Option<Self::Opening> {
                Self::sealing(suite, key)
            }

            #[inline(always)]
            fn seal(key: &Self::Sealing, nonce: &[u8], aad: &[u8], in_out: &mut [u8]) -> Option<TagBytes> {
                let nonce = $library::aead::Nonce::try_assume_unique_for_key(nonce).ok()?;
                let tag = key.seal_in_place_separate_tag(nonce, $library::aead::Aad::from(aad), in_out).ok()?;
                tag.as_ref().try_into().ok()
            }

            #[inline(always)]
            fn open(key: &Self::Opening, nonce: &[u8], aad: &[u8], in_out: &mut [u8], tag: &TagBytes) -> bool {
                let Ok(nonce) = $library::aead::Nonce::try_assume_unique_for_key(nonce) else { return false };
                open_separate::$library(key, nonce, aad, in_out, tag)
            }

            $($extra)*
        }
    };
}

/// The one call that differs.
mod open_separate {
    use super::TagBytes;

    #[inline(always)]
    pub(crate) fn aws_lc_rs(
        key: &aws_lc_rs::aead::LessSafeKey,
        nonce: aws_lc_rs::aead::Nonce,
        aad: &[u8],
        in_out: &mut [u8],
        tag: &TagBytes,
    ) -> bool {
        key.open_in_place_separate_tag(nonce, aws_lc_rs::aead::Aad::from(aad), tag, in_out)
            .is_ok()
    }

    #[inline(always)]
    pub(crate) fn ring(
        key: &ring::aead::LessSafeKey,
        nonce: ring::aead::Nonce,
        aad: &[u8],
        in_out: &mut [u8],
        tag: &TagBytes,
    ) -> bool {
        key.open_in_place_separate_tag(nonce, ring::aead::Aad::from(aad), (*tag).into(), in_out, 0..)
            .is_ok()
    }
}

ring_like! {
    /// aws-lc-rs: AWS-LC, with AVX-512 for AES-GCM.
    AwsLc, "aws-lc-rs", aws_lc_rs, {
        #[inline(always)]
        fn seal_to(key: &Self::Sealing, nonce: &[u8], aad: &[u8], src: &[u8], dst: &mut [u8]) -> bool {
            let Some((text, tag)) = dst.split_at_mut_checked(src.len()) else { return false };
            let Ok(nonce) = aws_lc_rs::aead::Nonce::try_assume_unique_for_key(nonce) else { return false };
            let aad = aws_lc_rs::aead::Aad::from(aad);
            key.seal_out_of_place_scatter(nonce, aad, src, text, &[], tag).is_ok()
        }

        #[inline(always)]
        fn open_to(key: &Self::Opening, nonce: &[u8], aad: &[u8], src: &[u8], dst: &mut [u8]) -> bool {
            let Some((text, tag)) = src.split_last_chunk::<{ Suite::TAG_LEN }>() else { return false };
            let Ok(nonce) = aws_lc_rs::aead::Nonce::try_assume_unique_for_key(nonce) else { return false };
            key.open_separate_gather(nonce, aws_lc_rs::aead::Aad::from(aad), text, tag, dst).is_ok()
        }
    }
}

ring_like! {
    /// ring.
    Ring, "ring", ring, {}
}
