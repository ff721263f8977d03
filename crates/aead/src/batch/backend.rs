//! Which kernels run.

use core::fmt;
#[cfg(feature = "std")]
use std::sync::OnceLock;

use crate::cpu::{HaveAvx2, HaveAvx512Ifma, HaveNeon};
#[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
use crate::low::neon;
use crate::low::{self, Keyring, Lanes, MacRecord, Memory, Single, Task, portable};
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
use crate::low::{avx2, avx512};

/// How a message of a batch goes on its own.
#[derive(Clone, Copy, Debug)]
pub(super) enum Lone {
    /// Through the kernels for one message.
    Own(Single),
    /// Through the library underneath.
    #[cfg(feature = "aes")]
    Library,
}

/// A set of kernels for ChaCha20-Poly1305, with the proof that this machine can run them. All give the same bytes.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Backend {
    /// Plain code, on any machine.
    Portable,
    /// Eight blocks of ChaCha20 at a time, Poly1305 for four messages at a time.
    Avx2(HaveAvx2),
    /// Sixteen blocks at a time, Poly1305 for eight messages at a time with the 52-bit multiply.
    Avx512(HaveAvx512Ifma),
    /// Four blocks of ChaCha20 at a time, Poly1305 for two messages at a time.
    Neon(HaveNeon),
}

impl Backend {
    /// The widest that this machine has and that [`crate::cpu::DISABLE_VARIABLE`] leaves; decided once.
    #[cfg(feature = "std")]
    pub fn best() -> Backend {
        static BEST: OnceLock<Backend> = OnceLock::new();
        *BEST.get_or_init(Self::widest)
    }

    /// The widest that the program was compiled for.
    #[cfg(not(feature = "std"))]
    pub fn best() -> Backend {
        Self::widest()
    }

    fn widest() -> Backend {
        Self::available().next().unwrap_or(Backend::Portable)
    }

    /// All that can run here, widest first.
    pub fn available() -> impl Iterator<Item = Backend> {
        let wide = HaveAvx512Ifma::probe().map(Backend::Avx512);
        let middle = HaveAvx2::probe().map(Backend::Avx2);
        let arm = HaveNeon::probe().map(Backend::Neon);
        [wide, middle, arm, Some(Backend::Portable)].into_iter().flatten()
    }

    /// The name: `portable`, `avx2`, `avx512`, `neon`.
    pub const fn name(self) -> &'static str {
        match self {
            Backend::Portable => "portable",
            Backend::Avx2(_) => "avx2",
            Backend::Avx512(_) => "avx512",
            Backend::Neon(_) => "neon",
        }
    }

    /// The backend with a name, if it can run here.
    pub fn named(name: &str) -> Option<Backend> {
        Self::available().find(|backend| backend.name() == name)
    }

    /// How a message goes on its own, if that is faster than with others: with fewer than [`Self::FEW`] messages, or from
    /// a length on at which it fills the lanes by itself or the library's single-message code overtakes the kernels.
    #[inline]
    pub(super) fn lone(self, count: usize, len: usize) -> Option<Lone> {
        match self {
            Backend::Avx512(have) if count < Self::FEW || len >= Self::LONG => Some(Lone::Own(low::wide(have))),
            Backend::Avx2(_) | Backend::Neon(_) => self.lone_narrow(count, len),
            _ => None,
        }
    }

    #[cfg(feature = "aes")]
    #[inline(always)]
    fn lone_narrow(self, count: usize, len: usize) -> Option<Lone> {
        (count < Self::FEW_NARROW || len >= Self::LONG_NARROW).then_some(Lone::Library)
    }

    /// The kernels of batches do one message too, but with one lane of the authenticator: its own is faster then.
    #[cfg(not(feature = "aes"))]
    fn lone_narrow(self, count: usize, _: usize) -> Option<Lone> {
        if count >= Self::FEW_NARROW {
            return None;
        }
        match self {
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            Backend::Avx2(have) => Some(Lone::Own(Single::Avx2(have))),
            #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
            Backend::Neon(have) => Some(Lone::Own(Single::Neon(have))),
            _ => None,
        }
    }

    /// Messages from which on a batch is faster than one after the other. Measured with `examples/jobs_speed fixed128x4` and
    /// the like: on Zen 4, four messages of 128 bytes take 204 ns each in a batch, 207 ns alone; on Emerald Rapids, four of 64 to 300
    /// bytes take 0.81 to 0.97 of the batch's time alone, and six 1.3 to 1.7 of it.
    const FEW: usize = 5;

    /// Bytes from which on a message fills the lanes by itself. Likewise: 4096 bytes take 1180 ns among their like, 1340 ns
    /// alone; 16 KiB alone run at 0.26 ns a byte, which batches do not reach.
    const LONG: usize = 8192;

    /// As `FEW`, against the library: with AVX2, four messages of 128 bytes take 207 ns each, 230 ns alone.
    const FEW_NARROW: usize = 4;

    /// As `LONG`, against the library: with AVX2, 1024 bytes take 602 ns against 597 ns, and 4096 bytes 2211 against 1723.
    #[cfg(feature = "aes")]
    const LONG_NARROW: usize = 1024;

    /// Fills in r and s of each task's record.
    #[inline]
    pub(crate) fn one_time_keys(self, keys: Keyring<'_>, tasks: &[Task], records: &mut [MacRecord]) -> Lanes {
        match self {
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            Backend::Avx2(have) => avx2::one_time_keys(have, keys, tasks, records),
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            Backend::Avx512(have) => avx512::one_time_keys(have, keys, tasks, records),
            #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
            Backend::Neon(have) => neon::one_time_keys(have, keys, tasks, records),
            _ => portable::one_time_keys(keys, tasks, records),
        }
    }

    /// XORs the keystream into every task that is not to be skipped.
    #[inline]
    pub(crate) fn xor(self, memory: &mut Memory<'_>, keys: Keyring<'_>, tasks: &[Task]) -> Lanes {
        match self {
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            Backend::Avx2(have) => avx2::xor(have, memory, keys, tasks),
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            Backend::Avx512(have) => avx512::xor(have, memory, keys, tasks),
            #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
            Backend::Neon(have) => neon::xor(have, memory, keys, tasks),
            _ => portable::xor(memory, keys, tasks),
        }
    }

    /// Computes the tags of the tasks named in `order`; neighbours there should be of like length, longest first.
    #[inline]
    pub(crate) fn macs(
        self,
        memory: &Memory<'_>,
        tasks: &[Task],
        order: &[u32],
        records: &[MacRecord],
        tags: &mut [[u8; 16]],
    ) -> Lanes {
        match self {
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            Backend::Avx2(have) => avx2::macs(have, memory, tasks, order, records, tags),
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            Backend::Avx512(have) => avx512::macs(have, memory, tasks, order, records, tags),
            #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
            Backend::Neon(have) => neon::macs(have, memory, tasks, order, records, tags),
            _ => portable::macs(memory, tasks, order, records, tags),
        }
    }
}

impl Default for Backend {
    fn default() -> Self {
        Self::best()
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
