//! Keys are replaced at the right record, by both ends alike.

use sealway_aead::{RekeyPolicy, Suite};
use sealway_session::Error;
use sealway_session::handshake::{Established, Mode, Role};
use sealway_session::record::{HEADER_LEN, OVERHEAD, Opened};

use crate::common::*;

fn pair(suite: Suite) -> (Established, Established) {
    let end = |role: Role| {
        let mut config = config(role, auth(Mode::Code, role));
        config.offer = offer(&[suite], true);
        start(config, 9 + role as u64)
    };
    agree(end(Role::Initiator), end(Role::Responder))
}

const fn policy(bytes: u64, messages: u64) -> RekeyPolicy {
    RekeyPolicy { bytes, messages }
}

#[test]
fn at_each_record_in_both_directions_at_once() {
    for suite in Suite::ALL {
        let (mut here, mut there) = pair(suite);
        here.send.set_rekey(policy(u64::MAX, 1));
        there.send.set_rekey(policy(u64::MAX, 1));
        for i in 0..200u64 {
            // Both are on their way when either is opened.
            let (a, b) = (
                seal(&mut here.send, 1, 1, b"forth"),
                seal(&mut there.send, 1, 1, b"back"),
            );
            assert_eq!(a[0] >> 7, (i % 2) as u8, "the phase bit");
            open(&mut there.recv, &a).unwrap();
            open(&mut here.recv, &b).unwrap();
            for epoch in [
                here.send.epoch(),
                here.recv.epoch(),
                there.send.epoch(),
                there.recv.epoch(),
            ] {
                assert_eq!(epoch, i);
            }
        }
    }
}

#[test]
fn one_direction_alone() {
    let (mut here, mut there) = pair(Suite::Aes256Gcm);
    here.send.set_rekey(policy(u64::MAX, 3));
    for _ in 0..10 {
        assert_talks(&mut here.send, &mut there.recv);
        assert_talks(&mut there.send, &mut here.recv);
    }
    assert_eq!((here.send.epoch(), there.recv.epoch()), (3, 3));
    assert_eq!((there.send.epoch(), here.recv.epoch()), (0, 0));
}

#[test]
fn a_receiver_that_was_blocked_follows_many_changes() {
    let (mut here, mut there) = pair(Suite::ChaCha20Poly1305);
    here.send.set_rekey(policy(10, u64::MAX));
    let waiting: Vec<_> = (0..50).map(|i| seal(&mut here.send, 1, i, &[7; 6])).collect();
    assert_eq!(here.send.epoch(), 24);
    for (i, record) in (0..).zip(&waiting) {
        assert_eq!(open(&mut there.recv, record), Ok((1, i, vec![7; 6])));
    }
    assert_eq!(there.recv.epoch(), 24);
}

#[test]
fn exactly_at_the_limit_of_records() {
    let (mut here, mut there) = pair(Suite::Aes256Gcm);
    let mut record = [0; OVERHEAD];
    // The policy that holds unless set otherwise.
    for _ in 0..1u32 << 20 {
        here.send.seal(1, 1, &mut record).unwrap();
        there.recv.open(&mut record).unwrap();
    }
    assert_eq!((here.send.epoch(), there.recv.epoch()), (0, 0));
    here.send.seal(1, 1, &mut record).unwrap();
    there.recv.open(&mut record).unwrap();
    assert_eq!((here.send.epoch(), there.recv.epoch()), (1, 1));
}

#[test]
fn exactly_at_the_limit_of_bytes() {
    assert_eq!(RekeyPolicy::DEFAULT, policy(1 << 30, 1 << 20));
    for (limit, len, first) in [(100, 10, 10), (99, 10, 10), (101, 10, 11), (1, 1, 1), (5, 10, 1)] {
        let (mut here, mut there) = pair(Suite::Aes256Gcm);
        here.send.set_rekey(policy(limit, u64::MAX));
        for sealed in 0..first + 1 {
            assert_eq!(
                here.send.epoch(),
                0,
                "after {sealed} records of {len} with limit {limit}"
            );
            let record = seal(&mut here.send, 1, 1, &vec![1; len]);
            open(&mut there.recv, &record).unwrap();
        }
        assert_eq!((here.send.epoch(), there.recv.epoch()), (1, 1), "limit {limit}");
    }
}

/// What 3 GiB do with the limit of 1 GiB, at a scale of 1 to 1024.
#[test]
fn three_times_the_limit_takes_three_epochs() {
    let (mut here, mut there) = pair(Suite::Aes256Gcm);
    here.send.set_rekey(policy(1 << 20, 1 << 20));
    let mut record = vec![0; OVERHEAD + 1024];
    for _ in 0..3 * 1024 {
        here.send.seal(1, 1, &mut record).unwrap();
        assert!(matches!(there.recv.open(&mut record), Ok(Opened::Data { .. })));
    }
    assert_eq!((here.send.epoch(), there.recv.epoch()), (2, 2));
    assert_eq!(there.recv.bytes(), 3 << 20);
    let mut close = here.send.close().unwrap();
    assert_eq!(there.recv.open(&mut close), Ok(Opened::Close));
    assert_eq!(
        (here.send.epoch(), there.recv.epoch()),
        (3, 3),
        "the close is a record like any other"
    );
}

#[test]
fn never_means_never_and_asking_means_once() {
    let (mut here, mut there) = pair(Suite::Aes256Gcm);
    here.send.set_rekey(RekeyPolicy::NEVER);
    for _ in 0..100 {
        assert_talks(&mut here.send, &mut there.recv);
    }
    assert_eq!(here.send.epoch(), 0);
    here.send.rekey();
    here.send.rekey();
    assert_eq!(here.send.epoch(), 0, "not before the next record");
    for _ in 0..3 {
        assert_talks(&mut here.send, &mut there.recv);
    }
    assert_eq!((here.send.epoch(), there.recv.epoch()), (1, 1));
}

/// A flipped phase bit has the next key tried, which does not open the record either.
#[test]
fn the_phase_bit_cannot_be_flipped() {
    for ahead in 0..3 {
        let (mut here, mut there) = pair(Suite::Aes256Gcm);
        for _ in 0..ahead {
            here.send.rekey();
            assert_talks(&mut here.send, &mut there.recv);
        }
        let mut record = seal(&mut here.send, 1, 1, b"payload");
        record[0] ^= 0x80;
        assert_eq!(open(&mut there.recv, &record), Err(Error::Unauthentic));
        assert_eq!(there.recv.epoch(), ahead, "nothing was accepted, so nothing changed");
        record[0] ^= 0x80;
        assert_eq!(open(&mut there.recv, &record), Err(Error::Dead));
    }
}

/// The last records under a key are missed, although the next one is the first under its own: their numbers go on.
#[test]
fn records_before_a_change_of_keys_cannot_be_left_out() {
    for (left_out, before) in [(1, 3), (2, 3), (3, 3), (1, 1)] {
        let (mut here, mut there) = pair(Suite::Aes256Gcm);
        let sealed: Vec<_> = (0..before).map(|i| seal(&mut here.send, 1, i, b"before")).collect();
        here.send.rekey();
        let after = seal(&mut here.send, 1, 1, b"after");
        for record in &sealed[..(before - left_out) as usize] {
            open(&mut there.recv, record).unwrap();
        }
        assert_eq!(
            open(&mut there.recv, &after),
            Err(Error::Unauthentic),
            "{left_out} of {before}"
        );
    }
}

#[test]
fn records_of_a_past_or_later_epoch_do_not_open() {
    let (mut here, _) = pair(Suite::Aes256Gcm);
    here.send.set_rekey(policy(u64::MAX, 1));
    let records: Vec<_> = (0..4).map(|_| seal(&mut here.send, 1, 1, b"same")).collect();
    for (epoch, record) in records.iter().enumerate().skip(1) {
        let (_, mut there) = pair(Suite::Aes256Gcm);
        let opened = open(&mut there.recv, record);
        assert_eq!(opened, Err(Error::Unauthentic), "epoch {epoch} first");
    }
    let (_, mut there) = pair(Suite::Aes256Gcm);
    open(&mut there.recv, &records[0]).unwrap();
    assert_eq!(
        open(&mut there.recv, &records[2]),
        Err(Error::Unauthentic),
        "two epochs on"
    );
    let (_, mut there) = pair(Suite::Aes256Gcm);
    open(&mut there.recv, &records[0]).unwrap();
    open(&mut there.recv, &records[1]).unwrap();
    assert_eq!(open(&mut there.recv, &records[0]), Err(Error::Unauthentic));
}

/// Equal records at equal places under all keys of two sessions: no two ciphertexts are alike.
#[test]
fn no_two_keys_are_alike() {
    let mut seen = std::collections::HashSet::new();
    for suite in Suite::ALL {
        let (mut here, mut there) = pair(suite);
        for half in [&mut here.send, &mut there.send] {
            half.set_rekey(policy(u64::MAX, 1));
            for _ in 0..8 {
                let record = seal(half, 1, 1, &[0; 64]);
                assert!(seen.insert(record[HEADER_LEN..].to_vec()));
            }
        }
    }
    assert_eq!(seen.len(), 4 * 2 * 8);
}
