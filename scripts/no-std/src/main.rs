//! A program without the standard library: both ends of a connection, the handshake, a message and a decoy.
//!
//! It has a panic handler and an allocator of its own. If anything beneath it brought the standard library along, there would be
//! two panic handlers, which the compiler refuses. `scripts/check-no-std` builds and runs it; the exit code 0 says that all went well.

#![no_std]
#![no_main]

extern crate alloc;

use alloc::vec;
use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::panic::PanicInfo;
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};

use sealway_bip324::decoy::DecoyPolicy;
use sealway_bip324::{Connection, Error, Event, LocalKey, Magic, Options};

/// Bytes of memory that there are; some 200 KiB are used.
const MEMORY: usize = 4 << 20;

/// What a build with the standard library, which is tested with the vectors of the BIP, makes of the keys in `run`.
const SESSION: [u8; 32] = [
    0x37, 0x01, 0xca, 0xe6, 0x2a, 0xfd, 0xf7, 0xa6, 0x0a, 0xfa, 0x9d, 0x1a, 0xf7, 0xfc, 0xfa, 0x0a, 0xd4, 0x17, 0x01,
    0x4d, 0xd8, 0xee, 0x8e, 0xdd, 0xb9, 0x13, 0x91, 0x66, 0x32, 0x8f, 0x6d, 0x51,
];

/// The message, sealed by the same build: the first packet after those of the handshake.
const PACKET: [u8; 36] = [
    0x06, 0x06, 0xba, 0x2a, 0x19, 0x26, 0xb7, 0x01, 0x00, 0xcd, 0xc4, 0x93, 0x23, 0x52, 0x28, 0x62, 0xbd, 0x15, 0xe4,
    0x6a, 0x50, 0x90, 0x3b, 0xc5, 0x9e, 0x37, 0xc7, 0x6d, 0x83, 0x46, 0x55, 0xd7, 0xfd, 0x4a, 0xfb, 0x14,
];

/// Gives out memory and never takes any back.
struct Memory {
    bytes: UnsafeCell<[u8; MEMORY]>,
    used: AtomicUsize,
}

// SAFETY: a byte is given out once, to one owner.
unsafe impl Sync for Memory {}

// SAFETY: ranges that are given out lie in `bytes`, are aligned as asked for and do not overlap, since `used` only grows.
unsafe impl GlobalAlloc for Memory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let start = self.bytes.get().cast::<u8>();
        let end_of = |used: usize| {
            let padding = (start as usize + used).wrapping_neg() & (layout.align() - 1);
            used.checked_add(padding)?
                .checked_add(layout.size())
                .filter(|&end| end <= MEMORY)
        };
        match self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, end_of) {
            // SAFETY: the range that begins there ends within `bytes`.
            Ok(used) => end_of(used).map_or(ptr::null_mut(), |end| unsafe { start.add(end - layout.size()) }),
            Err(_) => ptr::null_mut(),
        }
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[global_allocator]
static MEMORY_OF_ALL: Memory = Memory {
    bytes: UnsafeCell::new([0; MEMORY]),
    used: AtomicUsize::new(0),
};

// The C library starts the program and has the memory functions that compiled code calls. Bare metal has its own of both.
#[link(name = "c")]
unsafe extern "C" {
    safe fn abort() -> !;
}

#[panic_handler]
fn panicked(_: &PanicInfo<'_>) -> ! {
    abort()
}

/// Named by the unwind tables of the `alloc` that comes with the compiler, and never called: nothing unwinds.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

#[unsafe(no_mangle)]
extern "C" fn main() -> i32 {
    match run() {
        Ok(true) => 0,
        Ok(false) => 1,
        Err(_) => 2,
    }
}

/// True if the session and the first packet are the known ones, and the responder was given what the initiator sent.
fn run() -> Result<bool, Error> {
    let mut options = Options::default();
    options.garbage = vec![7; 100];
    let mut here = Connection::initiator(Magic::REGTEST, LocalKey::new(&[1; 32], &[2; 32])?, options)?;
    let key = LocalKey::new(&[3; 32], &[4; 32])?;
    let mut there = Connection::responder(Magic::REGTEST, key, Options::default())?;
    for _ in 0..2 {
        pass(&mut there, &mut here)?;
        pass(&mut here, &mut there)?;
    }
    here.send_shaped(b"\x12nonce of a ping", &mut DecoyPolicy::new(100, 50, 60)?, &mut || 0)?;
    let known = here.session_id() == Some(&SESSION) && here.output().starts_with(&PACKET);
    pass(&mut here, &mut there)?;
    Ok(known
        && there.session_id() == Some(&SESSION)
        && matches!(there.poll_event(), Some(Event::Established { .. }))
        && matches!(there.poll_event(), Some(Event::Message(contents)) if *contents == *b"\x12nonce of a ping")
        && matches!(there.poll_event(), Some(Event::Decoy { len: 50..=60 }))
        && there.poll_event().is_none())
}

/// Gives one end what the other has to send.
fn pass(from: &mut Connection, to: &mut Connection) -> Result<(), Error> {
    let taken = to.handle_input(from.output())?;
    from.advance_output(taken);
    Ok(())
}
