//! What this CPU has, and proofs of it.
//!
//! [`Cpu::get`] probes once. `SEALWAY_CPU_DISABLE`, a comma-separated list of the names below, hides features from this
//! library: kernels that need them are not used, and [`crate::choose`] decides as if they were absent. `avx512` hides all
//! of AVX-512. Libraries underneath probe for themselves and are not affected.
//!
//! Without cargo feature `std` nothing is asked of machine or environment: the CPU has what the compiler was told that it has
//! (`-C target-feature`, `-C target-cpu`).

mod probe;

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
#[cfg(feature = "std")]
use std::sync::OnceLock;

/// Environment variable with the features to hide.
pub const DISABLE_VARIABLE: &str = "SEALWAY_CPU_DISABLE";

macro_rules! features {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// A CPU feature that some cipher here can use.
        #[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
        #[non_exhaustive]
        pub enum Feature {
            $($(#[$doc])* $variant,)*
        }

        impl Feature {
            /// Every feature, x86 first.
            pub const ALL: &[Feature] = &[$(Feature::$variant,)*];

            /// The name, as `SEALWAY_CPU_DISABLE` takes it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Feature::$variant => $name,)*
                }
            }
        }
    };
}

features! {
    /// AES rounds: AES-NI on x86, FEAT_AES on Arm.
    Aes = "aes",
    /// Carry-less multiply of 64-bit halves (x86).
    Pclmulqdq = "pclmulqdq",
    /// AES rounds on 256- and 512-bit vectors (x86).
    Vaes = "vaes",
    /// Carry-less multiply on 256- and 512-bit vectors (x86).
    Vpclmulqdq = "vpclmulqdq",
    /// 256-bit integer vectors (x86).
    Avx2 = "avx2",
    /// AVX-512 foundation (x86).
    Avx512F = "avx512f",
    /// AVX-512 byte and word operations (x86).
    Avx512Bw = "avx512bw",
    /// AVX-512 operations on shorter vectors (x86).
    Avx512Vl = "avx512vl",
    /// AVX-512 multiply of 52-bit integers (x86).
    Avx512Ifma = "avx512ifma",
    /// AVX-512 byte permutations (x86).
    Avx512Vbmi = "avx512vbmi",
    /// 128-bit vectors (Arm).
    Neon = "neon",
    /// Carry-less multiply (Arm).
    Pmull = "pmull",
    /// SHA-3 instructions, with a three-way XOR (Arm).
    Sha3 = "sha3",
    /// Scalable vectors (Arm).
    Sve = "sve",
}

impl Feature {
    /// The one-bit set of this feature.
    const fn bit(self) -> u32 {
        1 << self as u32
    }

    /// True for the parts of AVX-512.
    const fn is_avx512(self) -> bool {
        matches!(
            self,
            Feature::Avx512F | Feature::Avx512Bw | Feature::Avx512Vl | Feature::Avx512Ifma | Feature::Avx512Vbmi
        )
    }
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A set of features.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct FeatureSet(u32);

impl FeatureSet {
    /// No feature.
    pub const EMPTY: FeatureSet = FeatureSet(0);

    /// The set with one more feature.
    #[must_use]
    pub const fn with(self, feature: Feature) -> Self {
        FeatureSet(self.0 | feature.bit())
    }

    /// True if the feature is in the set.
    pub const fn has(self, feature: Feature) -> bool {
        self.0 & feature.bit() != 0
    }

    /// The features of this set that are not in the other.
    #[must_use]
    pub const fn without(self, other: FeatureSet) -> Self {
        FeatureSet(self.0 & !other.0)
    }

    /// The features in the order of [`Feature::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Feature> {
        Feature::ALL.iter().copied().filter(move |&feature| self.has(feature))
    }
}

impl FromIterator<Feature> for FeatureSet {
    fn from_iter<I: IntoIterator<Item = Feature>>(features: I) -> Self {
        features.into_iter().fold(FeatureSet::EMPTY, FeatureSet::with)
    }
}

/// The CPU as this library sees it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Cpu {
    present: FeatureSet,
    disabled: FeatureSet,
    unknown: Vec<String>,
}

impl Cpu {
    /// The CPU this process runs on, probed once, less what [`DISABLE_VARIABLE`] hides.
    #[cfg(feature = "std")]
    pub fn get() -> &'static Cpu {
        static CPU: OnceLock<Cpu> = OnceLock::new();
        CPU.get_or_init(|| {
            let list = std::env::var_os(DISABLE_VARIABLE).unwrap_or_default();
            Cpu::new(probe::probe(), &list.to_string_lossy())
        })
    }

    /// The CPU that the program was compiled for.
    #[cfg(not(feature = "std"))]
    pub fn get() -> &'static Cpu {
        static CPU: Cpu = Cpu {
            present: probe::probe(),
            disabled: FeatureSet::EMPTY,
            unknown: Vec::new(),
        };
        &CPU
    }

    /// A CPU with the given features, less the ones named in `disable` (comma-separated, blanks and case ignored).
    ///
    /// For tests and for reasoning about other machines; kernels only ever trust [`Cpu::get`].
    pub fn new(present: FeatureSet, disable: &str) -> Cpu {
        let mut disabled = FeatureSet::EMPTY;
        let mut unknown = Vec::new();
        for word in disable.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            let word = word.to_ascii_lowercase();
            let named: FeatureSet = Feature::ALL
                .iter()
                .copied()
                .filter(|feature| feature.name() == word || (word == "avx512" && feature.is_avx512()))
                .collect();
            if named == FeatureSet::EMPTY {
                unknown.push(word);
            }
            disabled = named.iter().fold(disabled, FeatureSet::with);
        }
        Cpu {
            present,
            disabled,
            unknown,
        }
    }

    /// True if the feature is there and not hidden.
    pub const fn has(&self, feature: Feature) -> bool {
        self.usable().has(feature)
    }

    /// What the machine has.
    pub const fn present(&self) -> FeatureSet {
        self.present
    }

    /// What [`DISABLE_VARIABLE`] hides, present or not.
    pub const fn disabled(&self) -> FeatureSet {
        self.disabled
    }

    /// What is there and not hidden.
    pub const fn usable(&self) -> FeatureSet {
        self.present.without(self.disabled)
    }

    /// Words of [`DISABLE_VARIABLE`] that name no feature; whoever starts the program should tell its user.
    pub fn unknown_words(&self) -> &[String] {
        &self.unknown
    }

    /// True if AES and carry-less multiply are both in hardware, which is what AES-GCM needs to be fast and to have no
    /// secret-dependent table look-ups.
    pub const fn has_aes_gcm(&self) -> bool {
        self.has(Feature::Aes) && (self.has(Feature::Pclmulqdq) || self.has(Feature::Pmull))
    }
}

/// True if this CPU works on vectors of 512 bits in two halves, so that they gain it less: Zen 4. Decided once.
///
/// There is no feature bit for it: AMD's family 25 is Zen 3, which has no AVX-512, and Zen 4; Zen 5, family 26, and
/// Intel's CPUs with AVX-512 and IFMA have units of full width.
#[cfg(all(feature = "aes", target_arch = "x86_64"))]
pub(crate) fn splits_512() -> bool {
    use crate::low::cpuid;
    static SPLITS: OnceLock<bool> = OnceLock::new();
    *SPLITS.get_or_init(|| {
        let vendor = cpuid(0);
        let amd = [vendor.ebx, vendor.edx, vendor.ecx]
            .map(u32::to_le_bytes)
            .as_flattened()
            == b"AuthenticAMD";
        amd && family(cpuid(1).eax) == 25
    })
}

/// What this machine's CPU calls itself: its name and its signature on x86-64, as in `Intel(R) Xeon(R) Processor c06f2`; the
/// architecture elsewhere. At most 64 printable characters of ASCII, single spaces between words.
///
/// It tells machines apart for which something was measured, on x86-64 at least. Nothing is to be decided by it: features are in [`Cpu`].
#[cfg(feature = "std")]
pub fn model() -> String {
    named().unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}

#[cfg(all(feature = "std", target_arch = "x86_64"))]
fn named() -> Option<String> {
    use crate::low::cpuid;
    // The last of the three leaves that hold the name.
    const NAME_END: u32 = 0x8000_0004;
    if cpuid(0x8000_0000).eax < NAME_END {
        return None;
    }
    let mut name = Vec::with_capacity(48);
    for leaf in NAME_END - 2..=NAME_END {
        let part = cpuid(leaf);
        for register in [part.eax, part.ebx, part.ecx, part.edx] {
            name.extend(register.to_le_bytes());
        }
    }
    Some(readable(&name, cpuid(1).eax))
}

#[cfg(all(feature = "std", not(target_arch = "x86_64")))]
fn named() -> Option<String> {
    None
}

/// A name of at most 48 bytes that ends with a zero, and a signature.
#[cfg(all(feature = "std", target_arch = "x86_64"))]
fn readable(name: &[u8], signature: u32) -> String {
    let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
    let mut text = String::new();
    for word in name[..end].split(|byte| !byte.is_ascii_graphic()) {
        if !word.is_empty() {
            text.extend(word.iter().map(|&byte| char::from(byte)));
            text.push(' ');
        }
    }
    text + &format!("{signature:x}")
}

/// No AVX-512 on this architecture.
#[cfg(all(feature = "aes", not(target_arch = "x86_64")))]
pub(crate) fn splits_512() -> bool {
    true
}

/// The family of an x86 CPU from the register that tells it: base and, where the base is 15, extended family added up.
#[cfg(all(feature = "aes", target_arch = "x86_64"))]
fn family(eax: u32) -> u32 {
    let (base, extended) = (eax >> 8 & 15, eax >> 20 & 255);
    if base == 15 { base + extended } else { base }
}

macro_rules! tokens {
    ($($(#[$doc:meta])* $token:ident needs $($feature:ident)&&+;)*) => {$(
        $(#[$doc])*
        ///
        /// Only [`Self::probe`] can make one, so a function that takes it cannot be called where it must not run.
        #[derive(Clone, Copy, Debug)]
        pub struct $token(());

        impl $token {
            /// The proof, if this machine has what it says and it is not hidden.
            pub fn probe() -> Option<Self> {
                Self::of(Cpu::get())
            }

            fn of(cpu: &Cpu) -> Option<Self> {
                ($(cpu.has(Feature::$feature))&&+).then_some($token(()))
            }
        }
    )*};
}

tokens! {
    /// Proof of AES in hardware (either architecture).
    HaveAes needs Aes;
    /// Proof of AVX2.
    HaveAvx2 needs Avx2;
    /// Proof of AVX-512 with foundation, byte and word operations and shorter vectors, and of AVX2.
    HaveAvx512 needs Avx2 && Avx512F && Avx512Bw && Avx512Vl;
    /// Proof of everything [`HaveAvx512`] proves, and of the 52-bit multiply.
    HaveAvx512Ifma needs Avx2 && Avx512F && Avx512Bw && Avx512Vl && Avx512Ifma;
    /// Proof of NEON.
    HaveNeon needs Neon;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Signatures as CPUs report them.
    #[cfg(all(feature = "aes", target_arch = "x86_64"))]
    #[test]
    fn families_are_read_from_signatures() {
        for (eax, expected) in [
            (0x00a1_0f11, 25),
            (0x00b0_0f21, 26),
            (0x000c_06f2, 6),
            (0x0080_0f11, 23),
        ] {
            assert_eq!(family(eax), expected, "{eax:#x}");
        }
    }

    #[cfg(all(feature = "std", target_arch = "x86_64"))]
    #[test]
    fn names_of_cpus_are_readable() {
        for (name, expected) in [
            (&b"   AMD  EPYC\tX \xff\x07 Y\0Z"[..], "AMD EPYC X Y a10f11"),
            (&[b'n'; 48], &*format!("{} a10f11", "n".repeat(48))),
            (b"", "a10f11"),
        ] {
            assert_eq!(readable(name, 0x00a1_0f11), expected);
        }
    }

    #[cfg(feature = "std")]
    #[test]
    fn this_cpu_has_a_name() {
        let model = model();
        assert!((3..=64).contains(&model.len()), "{model}");
        assert!(
            model.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()),
            "{model}"
        );
        assert_eq!(model, super::model());
    }

    fn all() -> FeatureSet {
        Feature::ALL.iter().copied().collect()
    }

    #[test]
    fn names_are_distinct_and_disable_exactly_themselves() {
        for &feature in Feature::ALL {
            let cpu = Cpu::new(all(), feature.name());
            assert!(!cpu.has(feature));
            assert_eq!(cpu.usable().iter().count(), Feature::ALL.len() - 1, "{feature}");
            assert!(cpu.unknown_words().is_empty());
        }
    }

    #[test]
    fn avx512_names_the_family() {
        let cpu = Cpu::new(all(), " AVX512 ,vaes,, ");
        let gone: Vec<_> = cpu.present().without(cpu.usable()).iter().map(Feature::name).collect();
        assert_eq!(
            gone,
            ["vaes", "avx512f", "avx512bw", "avx512vl", "avx512ifma", "avx512vbmi"]
        );
        assert!(HaveAvx2::of(&cpu).is_some());
        assert!(HaveAvx512::of(&cpu).is_none());
        assert!(HaveAvx512Ifma::of(&cpu).is_none());
    }

    #[test]
    fn unknown_words_are_kept_for_a_warning() {
        let cpu = Cpu::new(all(), "avx2,axv512");
        assert_eq!(cpu.unknown_words(), ["axv512"]);
        assert!(cpu.has(Feature::Avx512F));
    }

    #[test]
    fn a_token_needs_every_feature() {
        for missing in ["avx2", "avx512f", "avx512bw", "avx512vl", "avx512ifma"] {
            assert!(HaveAvx512Ifma::of(&Cpu::new(all(), missing)).is_none(), "{missing}");
        }
        assert!(HaveAvx512Ifma::of(&Cpu::new(all(), "")).is_some());
        assert!(HaveAes::of(&Cpu::new(FeatureSet::EMPTY, "")).is_none());
        assert!(HaveNeon::of(&Cpu::new(FeatureSet::EMPTY.with(Feature::Neon), "")).is_some());
    }

    #[test]
    fn aes_gcm_needs_aes_and_carry_less_multiply() {
        let aes = FeatureSet::EMPTY.with(Feature::Aes);
        assert!(!Cpu::new(aes, "").has_aes_gcm());
        assert!(!Cpu::new(FeatureSet::EMPTY.with(Feature::Pclmulqdq), "").has_aes_gcm());
        assert!(Cpu::new(aes.with(Feature::Pclmulqdq), "").has_aes_gcm());
        assert!(Cpu::new(aes.with(Feature::Pmull), "").has_aes_gcm());
        assert!(!Cpu::new(aes.with(Feature::Pmull), "aes").has_aes_gcm());
    }
}
