//! Stack that libraries leave secrets on.

/// Words of eight bytes that are overwritten: several times what ML-KEM uses, which keeps vectors and its private key in frames of some tens of KiB.
const STACK_WORDS: usize = 16 * 1024;

/// Calls `f`, then overwrites the stack that it used.
pub(crate) fn leaving_no_stack<T>(f: impl FnOnce() -> T) -> T {
    sealway_aead::wipe::leaving_no_stack::<STACK_WORDS, T>(f)
}
