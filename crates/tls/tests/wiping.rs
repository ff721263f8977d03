//! Secrets of a handshake are gone from the memory of the process once they have done their work: not in their own place, not in the
//! libraries underneath, not on the stack.
//!
//! The test reads its own memory through `/proc/self/mem`, so it runs on Linux only. What is sought is kept masked, so that the search
//! does not find itself. What is tested runs on a thread of its own, deep in its stack, and that thread waits while another one
//! searches. Not covered: registers, swap, other forms of a secret, key schedules inside of the AEAD's library.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

#[path = "../../aead/tests/common/own_memory.rs"]
mod own_memory;

use std::fs::File;
use std::hint::black_box;
use std::io::Read;
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::thread;

use own_memory::{MASK, deep, places};
use sealway_tls::group::{ClientSecret, Group, answer};
use sealway_tls::records::Records;
use sealway_tls::schedule::{Handshake, KeyLog, Logged};
use sealway_tls::suite::CipherSuite;

/// Bytes that are looked for: enough not to be there by chance.
const NEEDLE: usize = 16;

fn mask(secret: &[u8]) -> Vec<u8> {
    secret.iter().map(|byte| byte ^ MASK).collect()
}

/// Which of these secrets, masked, stand in writable memory, as a whole or in part: an allocator overwrites the first bytes of what it
/// is given back, and would hide that nobody wiped the rest.
fn found(sought: &[(&'static str, Vec<u8>)]) -> Vec<&'static str> {
    let is_there = |masked: &Vec<u8>| masked.chunks_exact(NEEDLE).any(|part| places(part) > 0);
    let there = sought.iter().filter(|(_, masked)| is_there(masked));
    there.map(|(name, _)| *name).collect()
}

/// Keeps what it is shown, masked.
#[derive(Default)]
struct Masked(Mutex<Vec<(&'static str, Vec<u8>)>>);

impl KeyLog for Masked {
    fn secret(&self, label: &'static str, _: &[u8; 32], secret: &[u8]) {
        self.0.lock().unwrap().push((label, mask(secret)));
    }
}

/// Both ends of a handshake; what is still in use at the end, and what was on the way.
#[inline(never)]
fn handshake(suite: CipherSuite, group: Group, seen: &Masked) -> (Records, Records) {
    let note = |name, secret: &[u8]| seen.0.lock().unwrap().push((name, mask(secret)));
    let mut random = |out: &mut [u8]| {
        File::open("/dev/urandom").unwrap().read_exact(out).unwrap();
        note("random bytes", out);
    };
    let client = ClientSecret::of(group, &mut random);
    let (share, shared) = answer(group, &client.share(group).unwrap(), &mut random).unwrap();
    note("the shared secret", &shared);
    let agreed = client.agree(group, &share).unwrap();
    assert_eq!(agreed, shared);
    let digest = suite.hash().digest(b"said");
    let end = |shared: &[u8]| Handshake::new(suite, shared, &digest, Some((seen, &[0; 32])));
    let (here, there) = (end(&agreed), end(&shared));
    let finished = here.secrets.client.finished(&digest);
    there.secrets.client.check_finished(&digest, finished.as_ref()).unwrap();
    let log = || -> Logged<'_> { Some((seen, &[0; 32])) };
    let (here, there) = (here.application(&digest, log()), there.application(&digest, log()));
    for secret in [&here.client, &here.server] {
        note("a key of records", secret.keys().key());
    }
    let mut far = Records::after(here.client, here.server, true).unwrap();
    let mut near = Records::after(there.server, there.client, false).unwrap();
    // Keys change once: those before are over.
    let mut wire = Vec::new();
    far.key_update(&mut wire, true).unwrap();
    let len = wire.len();
    near.open(&mut wire, 0, 0..len).unwrap();
    let mut reply = std::mem::take(&mut near.reply);
    let len = reply.len();
    far.open(&mut reply, 0, 0..len).unwrap();
    (far, near)
}

#[test]
fn what_a_handshake_is_made_of_is_gone_behind_it() {
    for (suite, group) in [
        (CipherSuite::Aes128GcmSha256, Group::X25519),
        (CipherSuite::Aes256GcmSha384, Group::X25519MlKem768),
        (CipherSuite::Aes128GcmSha256, Group::Secp256r1),
        (CipherSuite::Aes256GcmSha384, Group::Secp384r1),
    ] {
        let seen = &Masked::default();
        let (at, paused) = channel();
        let (next, go) = channel::<()>();
        // A panic on either side drops that side's ends of the channels, which ends the other.
        thread::scope(move |scope| {
            scope.spawn(move || {
                let ends = deep(|| handshake(suite, group, seen));
                at.send(()).unwrap();
                go.recv().unwrap();
                drop(ends);
            });
            paused.recv().unwrap();
            let sought = seen.0.lock().unwrap();
            for label in [
                "HANDSHAKE_TRAFFIC_SECRET",
                "TRAFFIC_SECRET_0",
                "shared secret",
                "key of records",
                "random bytes",
            ] {
                assert!(
                    sought.iter().any(|(name, _)| name.ends_with(label)),
                    "{label} is not sought"
                );
            }
            assert_eq!(found(&sought), [""; 0], "{suite:?} {group:?}");
            drop(sought);
            next.send(()).unwrap();
        });
    }
}

/// The search finds what is there.
#[test]
fn what_is_still_in_use_is_found() {
    let mut secret = Box::new([0; 32]);
    File::open("/dev/urandom").unwrap().read_exact(&mut *secret).unwrap();
    let sought = [("the secret", mask(&*secret))];
    assert!(!found(&sought).is_empty());
    black_box(&secret);
}
