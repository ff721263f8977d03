//! Who measures: identifiers, seeds, the version of this program.

use std::fmt;

use crate::format::hex;

/// The operating system gave no random bytes: nothing that needs a fresh identifier or seed can start.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct NoEntropy(getrandom::Error);

impl fmt::Display for NoEntropy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the operating system gave no random bytes ({}); in a sandbox, allow getrandom",
            self.0
        )
    }
}

impl std::error::Error for NoEntropy {}

/// A fresh identifier for a run: a random UUID (version 4, RFC 9562 section 5.4) in its text form.
///
/// # Errors
/// [`NoEntropy`] when the operating system gives no random bytes.
pub fn run_id() -> Result<String, NoEntropy> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(NoEntropy)?;
    Ok(uuid(bytes))
}

/// A fresh seed for the random choices of a run; it is recorded, so that the run can be repeated.
///
/// # Errors
/// [`NoEntropy`] when the operating system gives no random bytes.
pub fn seed() -> Result<u64, NoEntropy> {
    getrandom::u64().map_err(NoEntropy)
}

fn uuid(mut bytes: [u8; 16]) -> String {
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let groups = [&bytes[..4], &bytes[4..6], &bytes[6..8], &bytes[8..10], &bytes[10..]];
    groups.map(hex).join("-")
}

/// Version and commit of this program: `0.1.0+abcdef012345`, with `-dirty` when the tree differed from the commit, and
/// the bare version when it was built outside of version control.
pub fn version() -> String {
    version_of(
        env!("CARGO_PKG_VERSION"),
        env!("SEALWAY_BUILD_COMMIT"),
        env!("SEALWAY_BUILD_DIRTY") == "true",
    )
}

fn version_of(version: &str, commit: &str, dirty: bool) -> String {
    let commit: String = commit.chars().take(12).collect();
    match (commit.is_empty(), dirty) {
        (true, _) => version.to_owned(),
        (false, false) => format!("{version}+{commit}"),
        (false, true) => format!("{version}+{commit}-dirty"),
    }
}

/// CPUs this process can use at once, by affinity and quota; at least 1.
pub fn cpus() -> u32 {
    std::thread::available_parallelism().map_or(1, |count| u32::try_from(count.get()).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn uuid_text() {
        assert_eq!(uuid([0; 16]), "00000000-0000-4000-8000-000000000000");
        assert_eq!(uuid([0xff; 16]), "ffffffff-ffff-4fff-bfff-ffffffffffff");
        let bytes: [u8; 16] = std::array::from_fn(|i| i as u8 * 0x11);
        assert_eq!(uuid(bytes), "00112233-4455-4677-8899-aabbccddeeff");
    }

    #[test]
    fn identifiers_and_seeds_differ() {
        assert_ne!(run_id().unwrap(), run_id().unwrap());
        assert_ne!(seed().unwrap(), seed().unwrap());
    }

    #[test]
    fn version_text() {
        assert_eq!(version_of("0.1.0", "", true), "0.1.0");
        assert_eq!(version_of("0.1.0", "abcdef0123456789", false), "0.1.0+abcdef012345");
        assert_eq!(version_of("0.1.0", "abc", true), "0.1.0+abc-dirty");
        assert!(version().starts_with(env!("CARGO_PKG_VERSION")));
        assert!(cpus() >= 1);
    }
}
