//! Secrets overwritten: large buffers, and the stack that libraries leave secrets on.

use core::hint::black_box;

use zeroize::{Zeroize, optimization_barrier};

/// Overwrites bytes with zeros at the speed of memory, in a way the compiler does not leave out.
///
/// [`Zeroize`] stores the bytes of a slice one at a time, each of them volatile: an eighth of the time of a packet that is
/// sealed. Here they are stored as the compiler likes, all of them before this returns.
#[inline]
pub fn zero(bytes: &mut [u8]) {
    bytes.fill(0);
    optimization_barrier(bytes);
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bytes_and_no_others() {
        for len in [0, 1, 15, 64, 1000, 100_000] {
            let mut bytes = vec![7; len + 2];
            zero(&mut bytes[1..=len]);
            assert!(bytes[1..=len].iter().all(|&byte| byte == 0), "{len}");
            assert_eq!((bytes[0], bytes[len + 1]), (7, 7), "{len}");
        }
    }
}
