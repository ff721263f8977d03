//! What the machine has. It is asked while the program runs; without the standard library, which does the asking, it is what the
//! compiler was told that every machine has.

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use super::Feature;
use super::FeatureSet;

/// Defines `probe` by features and their names.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! probed {
    ($($feature:ident $name:tt,)*) => {
        /// Asks the CPU and the operating system.
        #[cfg(feature = "std")]
        pub(super) fn probe() -> FeatureSet {
            all_of([$((Feature::$feature, detected!($name)),)*])
        }

        /// What the program was compiled for.
        #[cfg(not(feature = "std"))]
        pub(super) const fn probe() -> FeatureSet {
            all_of([$((Feature::$feature, compiled_for!($name)),)*])
        }
    };
}

/// The set of those that are there.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
const fn all_of<const N: usize>(found: [(Feature, bool); N]) -> FeatureSet {
    let (mut set, mut i) = (FeatureSet::EMPTY, 0);
    while i < N {
        if found[i].1 {
            set = set.with(found[i].0);
        }
        i += 1;
    }
    set
}

#[cfg(all(feature = "std", target_arch = "x86_64"))]
macro_rules! detected {
    ($name:tt) => {
        std::arch::is_x86_feature_detected!($name)
    };
}

#[cfg(all(feature = "std", target_arch = "aarch64"))]
macro_rules! detected {
    ($name:tt) => {
        std::arch::is_aarch64_feature_detected!($name)
    };
}

#[cfg(all(not(feature = "std"), any(target_arch = "x86_64", target_arch = "aarch64")))]
macro_rules! compiled_for {
    // The compiler has one name for it and for AES.
    ("pmull") => {
        cfg!(target_feature = "aes")
    };
    ($name:tt) => {
        cfg!(target_feature = $name)
    };
}

#[cfg(target_arch = "x86_64")]
probed! {
    Aes "aes",
    Pclmulqdq "pclmulqdq",
    Vaes "vaes",
    Vpclmulqdq "vpclmulqdq",
    Avx2 "avx2",
    Avx512F "avx512f",
    Avx512Bw "avx512bw",
    Avx512Vl "avx512vl",
    Avx512Ifma "avx512ifma",
    Avx512Vbmi "avx512vbmi",
}

#[cfg(target_arch = "aarch64")]
probed! {
    Aes "aes",
    Neon "neon",
    Pmull "pmull",
    Sha3 "sha3",
    Sve "sve",
}

/// No probe for this architecture: plain code only.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) const fn probe() -> FeatureSet {
    FeatureSet::EMPTY
}
