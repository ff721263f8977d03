//! One message with the kernels of batches, for builds without the library underneath.
//!
//! The keystream of one message fills the lanes by itself from 512 bytes on; its authenticator has only one lane, the plain
//! one. On processors with AVX-512 the kernels for one message are used, as in every build.

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
use crate::cpu::HaveAvx2;
use crate::cpu::HaveAvx512Ifma;
#[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
use crate::cpu::HaveNeon;
#[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
use crate::low::neon;
use crate::low::portable::{self, CLAMP, Poly1305};
use crate::low::{KeyWords, Keyring, MacRecord, Memory, Task, Text, Use, scrub_stack, wipe};
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
use crate::low::{avx2, avx512};

/// Bytes of a block of ChaCha20.
const BLOCK: usize = 64;

/// Bytes of keystream made at a time: all lanes of the widest kernel used here, twice.
const STRETCH: usize = 16 * BLOCK;

/// What the keystream is XORed into; kernels also want room for a tag behind a text.
const ZEROS: [u8; STRETCH + 16] = [0; STRETCH + 16];

/// Words of stack that the kernels may have used, as in `batch`, and the two stretches here. `tests/residue.rs` looks.
const SCRUB_WORDS: usize = 896 + 2 * STRETCH / 8;

/// Which kernels work on one message, with the proof that this machine can run them.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Single {
    Avx512(HaveAvx512Ifma),
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    Avx2(HaveAvx2),
    #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
    Neon(HaveNeon),
    Portable,
}

impl Single {
    /// The best of this machine; there always is one.
    #[cfg(not(feature = "aes"))]
    pub(crate) fn probe() -> Option<Self> {
        Self::available().next()
    }

    /// All of this machine, best first.
    pub(crate) fn available() -> impl Iterator<Item = Self> {
        let wide = HaveAvx512Ifma::probe().map(Single::Avx512);
        #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
        let middle = HaveAvx2::probe().map(Single::Avx2);
        #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
        let middle = HaveNeon::probe().map(Single::Neon);
        #[cfg(not(any(
            all(target_arch = "x86_64", target_feature = "sse2"),
            all(target_arch = "aarch64", target_feature = "neon")
        )))]
        let middle = None;
        [wide, middle, Some(Single::Portable)].into_iter().flatten()
    }

    /// Fills `out` with the keystream behind the block that the nonce names.
    #[inline]
    fn keystream(self, key: &KeyWords, nonce: [u32; 4], out: &mut [u8]) {
        let task = Task {
            nonce,
            src: 0,
            dst: 0,
            len: out.len() as u32,
            key: 0,
            job: 0,
            way: Use::Open,
        };
        let mut memory = Memory::Separate { src: &ZEROS, dst: out };
        let keys = Keyring {
            resident: core::slice::from_ref(key),
            derived: &[],
        };
        match self {
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            Single::Avx2(have) => avx2::xor(have, &mut memory, keys, &[task]),
            #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
            Single::Neon(have) => neon::xor(have, &mut memory, keys, &[task]),
            _ => portable::xor(&mut memory, keys, &[task]),
        };
    }
}

/// Seals or opens one message; gives the tag that the ciphertext should have.
pub(crate) fn one(
    how: Single,
    key: &KeyWords,
    nonce: &[u32; 4],
    aad: &[u8],
    text: &mut Text<'_>,
    way: Use,
) -> [u8; 16] {
    match how {
        #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
        Single::Avx512(have) => avx512::one(have, key, nonce, aad, text, way),
        _ => {
            let tag = by_stretches(how, key, *nonce, aad, text, way);
            scrub_stack::<SCRUB_WORDS>();
            tag
        }
    }
}

#[inline(never)]
fn by_stretches(
    how: Single,
    key: &KeyWords,
    mut nonce: [u32; 4],
    aad: &[u8],
    text: &mut Text<'_>,
    way: Use,
) -> [u8; 16] {
    let mut stream = [0u8; STRETCH];
    let mut bytes = [0u8; STRETCH];
    // Kernels count one up before each block: the first one is that of the one-time key, before those of the text.
    nonce[0] = nonce[0].wrapping_sub(1);
    let mut skip = BLOCK;
    let first = STRETCH.min(BLOCK + text.len());
    how.keystream(key, nonce, &mut stream[..first]);
    let [r0, r1, s0, s1, ..] = *stream.as_chunks::<8>().0 else {
        return [0; 16];
    };
    let [r0, r1, s0, s1] = [r0, r1, s0, s1].map(u64::from_le_bytes);
    let mut mac = Poly1305::resume(&MacRecord {
        r: [r0 & CLAMP[0], r1 & CLAMP[1]],
        s: [s0, s1],
        ..MacRecord::default()
    });
    mac.absorb(aad);
    let mut at = 0;
    while at < text.len() {
        if at > 0 {
            nonce[0] = nonce[0].wrapping_add((STRETCH / BLOCK) as u32);
            skip = 0;
            let n = STRETCH.min(text.len() - at);
            how.keystream(key, nonce, &mut stream[..n]);
        }
        let n = (STRETCH - skip).min(text.len() - at);
        let part = &mut bytes[..n];
        text.read(at, part);
        if way == Use::Open {
            mac.absorb(part);
        }
        for (byte, mask) in part.iter_mut().zip(&stream[skip..]) {
            *byte ^= mask;
        }
        if way == Use::Seal {
            mac.absorb(part);
        }
        text.write(at, part);
        at += n;
    }
    wipe(&mut stream);
    wipe(&mut bytes);
    mac.finish(aad.len() as u64, text.len() as u64)
}
