//! Requests to valgrind: a sequence of instructions that does nothing on a CPU and that valgrind takes as a call. Sequence
//! and numbers are part of its interface (valgrind.h and memcheck.h) and stay as they are.

const RUNNING_ON_VALGRIND: usize = 0x1001;
const COUNT_ERRORS: usize = 0x1201;
const MAKE_MEM_UNDEFINED: usize = 0x4d43_0001;
const MAKE_MEM_DEFINED: usize = 0x4d43_0002;

/// Makes a request; 0 outside valgrind.
#[cfg(target_arch = "x86_64")]
fn request(number: usize, first: usize, second: usize) -> usize {
    let arguments = [number, first, second, 0, 0, 0];
    let mut result = 0_usize;
    // SAFETY: on a CPU the rotations add up to a whole turn and the exchange is of a register with itself. Under valgrind the
    // requests used here change what it knows of memory, not memory.
    unsafe {
        std::arch::asm!(
            "rol rdi, 3",
            "rol rdi, 13",
            "rol rdi, 61",
            "rol rdi, 51",
            "xchg rbx, rbx",
            in("rax") arguments.as_ptr(),
            inout("rdx") result,
        );
    }
    result
}

/// No sequence for this architecture here: as if outside valgrind.
#[cfg(not(target_arch = "x86_64"))]
fn request(_: usize, _: usize, _: usize) -> usize {
    0
}

/// True under valgrind.
pub(crate) fn is_running() -> bool {
    request(RUNNING_ON_VALGRIND, 0, 0) > 0
}

/// Errors reported so far; suppressed ones are not among them.
pub(crate) fn errors() -> usize {
    request(COUNT_ERRORS, 0, 0)
}

/// Marks bytes as never written: whatever branches on them, or takes an address from them, becomes an error.
pub(crate) fn hide(bytes: &[u8]) {
    request(MAKE_MEM_UNDEFINED, bytes.as_ptr() as usize, bytes.len());
}

/// Marks bytes as written.
pub(crate) fn show(bytes: &[u8]) {
    request(MAKE_MEM_DEFINED, bytes.as_ptr() as usize, bytes.len());
}
