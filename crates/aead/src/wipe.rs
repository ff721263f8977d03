//! Stack that libraries leave secrets on.

use std::hint::black_box;

use zeroize::Zeroize;

/// Calls `f`, then overwrites `WORDS` words of eight bytes of the stack that it used: several times what `f` takes.
///
/// Libraries of key agreement, derivation and hashing keep secrets in frames that they do not wipe. The frames of `f` and of the
/// wiping start at the same place, because neither is inlined into this function.
#[inline(never)]
pub fn leaving_no_stack<const WORDS: usize, T>(f: impl FnOnce() -> T) -> T {
    #[inline(never)]
    fn call<T>(f: impl FnOnce() -> T) -> T {
        f()
    }
    #[inline(never)]
    fn wipe<const WORDS: usize>() {
        let mut stack = [0u64; WORDS];
        stack.zeroize();
        black_box(&stack);
    }
    let result = call(f);
    wipe::<WORDS>();
    result
}
