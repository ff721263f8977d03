//! Stack that libraries leave secrets on.

/// Words of eight bytes that are overwritten: several times what a key agreement of secp256k1 uses, whose keys are passed by value.
const STACK_WORDS: usize = 2048;

/// Calls `f`, then overwrites the stack that it used.
pub(crate) fn leaving_no_stack<T>(f: impl FnOnce() -> T) -> T {
    sealway_aead::wipe::leaving_no_stack::<STACK_WORDS, T>(f)
}
