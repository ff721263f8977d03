//! What the machine has. It is asked while the program runs; without the standard library, which does the asking, it is what the
//! compiler was told that every machine has.

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use super::Feature;
use super::FeatureSet;

/// Defines `probe` and `compiled_for` by features and their names.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! probed {
    ($($feature:ident $name:tt,)*) => {
        /// Asks the CPU and the operating system.
        #[cfg(feature = "std")]
        pub(super) fn probe() -> FeatureSet {
            all_of([$((Feature::$feature, detected!($name)),)*])
        }

        /// What the program was compiled for.
        #[cfg(any(test, not(feature = "std")))]
        pub(super) const fn compiled_for() -> FeatureSet {
            all_of([$((Feature::$feature, compiled_for!($name)),)*])
        }
    };
}

#[cfg(all(not(feature = "std"), any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) use compiled_for as probe;

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

#[cfg(all(
    any(test, not(feature = "std")),
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
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

#[cfg(all(test, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod tests {
    use super::*;

    #[cfg(target_arch = "x86_64")]
    const TOLD: [(Feature, bool); 10] = [
        (Feature::Aes, cfg!(target_feature = "aes")),
        (Feature::Pclmulqdq, cfg!(target_feature = "pclmulqdq")),
        (Feature::Vaes, cfg!(target_feature = "vaes")),
        (Feature::Vpclmulqdq, cfg!(target_feature = "vpclmulqdq")),
        (Feature::Avx2, cfg!(target_feature = "avx2")),
        (Feature::Avx512F, cfg!(target_feature = "avx512f")),
        (Feature::Avx512Bw, cfg!(target_feature = "avx512bw")),
        (Feature::Avx512Vl, cfg!(target_feature = "avx512vl")),
        (Feature::Avx512Ifma, cfg!(target_feature = "avx512ifma")),
        (Feature::Avx512Vbmi, cfg!(target_feature = "avx512vbmi")),
    ];

    #[cfg(target_arch = "aarch64")]
    const TOLD: [(Feature, bool); 5] = [
        (Feature::Aes, cfg!(target_feature = "aes")),
        (Feature::Neon, cfg!(target_feature = "neon")),
        (Feature::Pmull, cfg!(target_feature = "aes")),
        (Feature::Sha3, cfg!(target_feature = "sha3")),
        (Feature::Sve, cfg!(target_feature = "sve")),
    ];

    /// Says the most in a build with `-C target-cpu=native`.
    #[test]
    fn a_program_is_compiled_for_what_the_compiler_was_told_of() {
        for &feature in Feature::ALL {
            let told = TOLD.contains(&(feature, true));
            assert_eq!(compiled_for().has(feature), told, "{feature}");
        }
    }

    #[test]
    fn the_machine_has_what_the_program_is_compiled_for() {
        assert_eq!(compiled_for().without(probe()), FeatureSet::EMPTY);
    }
}
