//! Keys are gone from the memory of the process once they have done their work: not in their own place, not in the library
//! underneath, not on the stack.
//!
//! The test reads its own memory through `/proc/self/mem`, so it runs on Linux only. What is sought is kept masked, so that
//! the search does not find itself. What is tested runs on a thread of its own, deep in its stack, and that thread waits
//! while another one searches. A secret is sought as its bytes and in their reverse order, which is how libsecp256k1 keeps
//! scalars on a little-endian machine. Not covered: registers, swap, other forms of a secret.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

mod common;
#[path = "../../aead/tests/common/own_memory.rs"]
mod own_memory;

use std::fs::File;
use std::io::Read;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use common::key;
use own_memory::{MASK, deep, places};
use sealway_bip324::{Connection, Kind, LocalKey, Magic, Options, PacketOpener, PacketSealer, Role, SessionKeys};
use zeroize::Zeroizing;

/// Bytes that are looked for: enough not to be there by chance.
const NEEDLE: usize = 16;

/// One test at a time: another one's stack holds another one's secrets.
static ALONE: Mutex<()> = Mutex::new(());

/// A secret, masked.
struct Sought(Vec<u8>);

impl Sought {
    fn of(secret: &[u8; 32]) -> Self {
        Sought(secret.iter().map(|byte| byte ^ MASK).collect())
    }

    /// How often either half stands in writable memory, in either order: an allocator overwrites the first bytes of what
    /// it is given back and would hide that nobody wiped the rest.
    fn copies(&self) -> usize {
        let reversed: Vec<u8> = self.0.iter().rev().copied().collect();
        let halves = |bytes: &[u8]| places(&bytes[..NEEDLE]) + places(&bytes[NEEDLE..]);
        halves(&self.0) + halves(&reversed)
    }
}

/// Stops the thread that works, and lets another one search.
struct Pause {
    at: Sender<Vec<(&'static str, Sought, bool)>>,
    go: Receiver<()>,
}

impl Pause {
    /// Says what must be there now, and what must not.
    fn look(&self, sought: Vec<(&'static str, Sought, bool)>) {
        self.at.send(sought).unwrap();
        self.go.recv().unwrap();
    }
}

/// Runs `work` on a thread and searches whenever it pauses.
fn watch(work: impl FnOnce(&Pause) + Send) {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let (at, paused) = channel();
    let (next, go) = channel();
    // A panic on either side drops that side's ends of the channels, which ends the other.
    thread::scope(move |scope| {
        scope.spawn(move || work(&Pause { at, go }));
        while let Ok(list) = paused.recv() {
            for (what, sought, there) in list {
                let copies = sought.copies();
                assert_eq!(copies > 0, there, "{what}: {copies} copies");
            }
            next.send(()).unwrap();
        }
    });
}

/// A random secret, masked.
fn random() -> Sought {
    let mut masked = vec![0; 32];
    File::open("/dev/urandom").unwrap().read_exact(&mut masked).unwrap();
    // Below the order of the curve.
    masked[0] = MASK ^ 0x12;
    Sought(masked)
}

/// Gives `f` the secret; the unmasked bytes are wiped.
#[inline(never)]
fn with_secret<T>(sought: &Sought, f: impl FnOnce(&[u8; 32]) -> T) -> T {
    let mut bytes = Box::new(Zeroizing::new([0; 32]));
    for (byte, masked) in bytes.iter_mut().zip(&sought.0) {
        *byte = masked ^ MASK;
    }
    f(&bytes)
}

fn again(sought: &Sought) -> Sought {
    Sought(sought.0.clone())
}

#[test]
fn a_key_that_is_dropped() {
    watch(|pause| {
        let secret = random();
        let key = deep(|| with_secret(&secret, |secret| LocalKey::new(secret, &[7; 32]).unwrap()));
        pause.look(vec![("a live key", again(&secret), true)]);
        deep(|| drop(key));
        pause.look(vec![("a key that was dropped", secret, false)]);
    });
}

#[test]
fn a_key_that_was_agreed_with() {
    watch(|pause| {
        let secret = random();
        let theirs = *key(Role::Responder).encoding();
        let keys = deep(|| {
            let key = with_secret(&secret, |secret| LocalKey::new(secret, &[7; 32]).unwrap());
            key.agree(&theirs, Role::Initiator, Magic::MAINNET).unwrap()
        });
        let derived = |keys: &SessionKeys, there| {
            [Role::Initiator, Role::Responder]
                .into_iter()
                .flat_map(|role| {
                    let length = Sought::of(keys.length_key(role));
                    let content = Sought::of(keys.content_key(role));
                    [("a length key", length, there), ("a content key", content, there)]
                })
                .collect::<Vec<_>>()
        };
        let gone = derived(&keys, false);
        pause.look(derived(&keys, true));
        pause.look(vec![("a key that was used up", secret, false)]);
        deep(|| drop(keys));
        pause.look(gone);
    });
}

/// Two ends in one direction; gives them with their first keys.
fn ends() -> (PacketSealer, PacketOpener, [Sought; 2]) {
    let secret = random();
    let theirs = *key(Role::Responder).encoding();
    let keys = with_secret(&secret, |secret| {
        let key = LocalKey::new(secret, &[7; 32]).unwrap();
        key.agree(&theirs, Role::Initiator, Magic::MAINNET).unwrap()
    });
    let role = Role::Initiator;
    let sought = [keys.length_key(role), keys.content_key(role)].map(Sought::of);
    let sealer = PacketSealer::new(keys.send_chain(role).unwrap());
    let opener = PacketOpener::new(keys.recv_chain(role.other()).unwrap());
    (sealer, opener, sought)
}

fn through(sealer: &mut PacketSealer, opener: &mut PacketOpener, flip: u8) -> bool {
    let mut wire = Vec::new();
    sealer.seal(Kind::Genuine, &[], b"contents", &mut wire).unwrap();
    opener.open_length(*wire.first_chunk().unwrap()).unwrap();
    wire[5] ^= flip;
    opener.open_in_place(&[], &mut wire[3..]).is_ok()
}

#[test]
fn keys_of_an_epoch_that_is_over() {
    watch(|pause| {
        let (mut sealer, mut opener, [length, content]) = deep(ends);
        // Lengths need their key only until the masks are made.
        pause.look(vec![("a length key", length, false)]);
        deep(|| (0..223).for_each(|_| assert!(through(&mut sealer, &mut opener, 0))));
        pause.look(vec![("the key of a live epoch", again(&content), true)]);
        deep(|| assert!(through(&mut sealer, &mut opener, 0)));
        pause.look(vec![("the key of an epoch that is over", content, false)]);
    });
}

#[test]
fn keys_after_a_failure() {
    watch(|pause| {
        let (mut sealer, mut opener, [_, content]) = deep(ends);
        deep(|| {
            assert!(through(&mut sealer, &mut opener, 0));
            assert!(!through(&mut sealer, &mut opener, 1));
            drop(sealer);
        });
        pause.look(vec![("the key of an opener that failed", content, false)]);
        assert!(opener.is_closed());
    });
}

#[test]
fn keys_of_a_connection() {
    watch(|pause| {
        let secret = random();
        let (ours, mut theirs) = deep(|| {
            let own = with_secret(&secret, |secret| LocalKey::new(secret, &[7; 32]).unwrap());
            let mut ours = Connection::initiator(Magic::MAINNET, own, Options::default()).unwrap();
            let mut theirs = Connection::responder(Magic::MAINNET, key(Role::Responder), Options::default()).unwrap();
            common::pump(&mut ours, &mut theirs);
            (ours, theirs)
        });
        assert!(ours.is_established() && theirs.is_established());
        pause.look(vec![("the key of an established connection", secret, false)]);
        let keys = ours.into_parts().unwrap();
        let number = keys.send.next_number().unwrap();
        let content = Sought::of(keys.send.key_of(number).unwrap());
        pause.look(vec![("the content key", again(&content), true)]);
        deep(|| {
            drop(keys);
            // Zeros open to any length: too long at once, or one for whose end more has to come.
            assert!((0..200).any(|_| theirs.handle_input(&[0; 100_000]).is_err()));
        });
        pause.look(vec![("the content key of two ends that are over", content, false)]);
    });
}
