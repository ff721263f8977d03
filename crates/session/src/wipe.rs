//! Stack that libraries leave secrets on.

use std::hint::black_box;

use zeroize::Zeroize;

/// Words of eight bytes that are overwritten: ML-KEM keeps its vectors and its private key in frames of some tens of KiB.
const STACK_WORDS: usize = 16 * 1024;

/// Calls `f`, then overwrites the stack that it used.
///
/// The libraries of ML-KEM and SPAKE2 keep secrets in frames that they do not wipe. The frames of `f` and of the wiping
/// start at the same place, because neither is inlined into this function.
#[inline(never)]
pub(crate) fn leaving_no_stack<T>(f: impl FnOnce() -> T) -> T {
    #[inline(never)]
    fn call<T>(f: impl FnOnce() -> T) -> T {
        f()
    }
    #[inline(never)]
    fn wipe() {
        let mut stack = [0u64; STACK_WORDS];
        stack.zeroize();
        black_box(&stack);
    }
    let result = call(f);
    wipe();
    result
}
