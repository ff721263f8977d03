//! Extra connections: one for each index, with keys of its own, and nobody else gets one.

use std::collections::HashSet;

use sealway_session::attach::{ANSWER_LEN, AttachInitiator, AttachResponder, Attached, HELLO_LEN, WINDOW};
use sealway_session::handshake::{Established, Mode};
use sealway_session::{Error, Session};

use crate::common::*;

fn pair() -> (Established, Established) {
    established(Mode::Code, 1)
}

fn dial(session: &Session, index: u32, seed: u64) -> (AttachInitiator, Vec<u8>) {
    let mut dialled = AttachInitiator::new(session, index, &mut random(seed)).unwrap();
    let hello = dialled.write().unwrap();
    assert_eq!(hello.len(), HELLO_LEN);
    (dialled, hello)
}

fn attach(from: &Session, to: &Session, index: u32) -> (Attached, Attached) {
    let (mut dialled, hello) = dial(from, index, u64::from(index));
    let mut answered = AttachResponder::new(to, &mut random(1000 + u64::from(index)));
    assert_eq!(answered.read(&hello), Ok(HELLO_LEN));
    assert!(!answered.is_done(), "the answer is not written yet");
    let answer = answered.write().unwrap();
    assert_eq!(dialled.read(&answer), Ok(ANSWER_LEN));
    (dialled.finish().unwrap(), answered.finish().unwrap())
}

#[test]
fn either_end_may_dial() {
    let (here, there) = pair();
    for (from, to, index) in [(&here, &there, 1), (&there, &here, 2), (&here, &there, 7)] {
        let (mut a, mut b) = attach(&from.session, &to.session, index);
        assert_eq!((a.index, b.index), (index, index));
        assert_talks(&mut a.send, &mut b.recv);
        assert_talks(&mut b.send, &mut a.recv);
    }
    assert_eq!(here.session.next_index(), 8);
    assert_eq!(there.session.next_index(), 8);
    // One that was passed over may still come.
    attach(&here.session, &there.session, 5);
}

#[test]
fn any_cut_of_the_input_gives_the_same() {
    let (here, there) = pair();
    let (mut dialled, mut hello) = dial(&here.session, 1, 1);
    let mut answered = AttachResponder::new(&there.session, &mut random(2));
    // A record that came with it is left alone.
    hello.push(0xaa);
    for (i, byte) in hello.iter().enumerate() {
        assert_eq!(
            answered.read(std::slice::from_ref(byte)),
            Ok(usize::from(i < HELLO_LEN)),
            "byte {i}"
        );
    }
    for byte in answered.write().unwrap() {
        assert!(!dialled.is_done());
        assert_eq!(dialled.read(&[byte]), Ok(1));
    }
    assert_eq!(dialled.read(&[1]), Ok(0));
    assert!(dialled.is_done() && answered.is_done());
}

#[test]
fn an_index_works_once() {
    let (here, there) = pair();
    attach(&here.session, &there.session, 1);
    for session in [&here.session, &there.session] {
        let again = AttachInitiator::new(session, 1, &mut random(1));
        assert_eq!(again.err(), Some(Error::IndexTaken { index: 1 }));
        assert_eq!(session.token(1), Err(Error::IndexTaken { index: 1 }));
    }
    for index in [0, 2 + WINDOW, u32::MAX] {
        assert_eq!(here.session.token(index), Err(Error::IndexTaken { index }));
    }
    assert!(here.session.token(1 + WINDOW).is_ok());
}

#[test]
fn a_replayed_hello_is_refused() {
    let (here, there) = pair();
    let (_, hello) = dial(&here.session, 1, 1);
    let answer = |session: &Session| AttachResponder::new(session, &mut random(3)).read(&hello);
    assert_eq!(answer(&there.session), Ok(HELLO_LEN));
    assert_eq!(answer(&there.session), Err(Error::UnknownToken));
}

#[test]
fn a_hello_sent_back_is_refused() {
    let (here, _) = pair();
    let (_, hello) = dial(&here.session, 1, 1);
    let mut mirror = AttachResponder::new(&here.session, &mut random(3));
    assert_eq!(mirror.read(&hello), Err(Error::UnknownToken), "the index is used");
    // The same end as it was before it dialled.
    let (before, _) = pair();
    let mut mirror = AttachResponder::new(&before.session, &mut random(3));
    assert_eq!(
        mirror.read(&hello),
        Err(Error::Unauthentic),
        "the role is that of the other end"
    );
    assert_eq!(mirror.read(&hello), Err(Error::Dead));
}

#[test]
fn every_changed_byte_is_noticed_and_leaves_the_index_open() {
    for at in 0..HELLO_LEN {
        let (here, there) = pair();
        let (_, hello) = dial(&here.session, 1, 1);
        let mut changed = hello.clone();
        changed[at] ^= 1 << (at % 8);
        let error = if at < 32 {
            Error::UnknownToken
        } else {
            Error::Unauthentic
        };
        let mut answered = AttachResponder::new(&there.session, &mut random(2));
        assert_eq!(answered.read(&changed), Err(error), "byte {at}");
        assert_eq!(answered.write(), None);
        assert_eq!(answered.finish().err(), Some(Error::NotDone));
        assert_eq!(
            AttachResponder::new(&there.session, &mut random(2)).read(&hello),
            Ok(HELLO_LEN)
        );
    }
    for at in 0..ANSWER_LEN {
        let (here, there) = pair();
        let (mut dialled, hello) = dial(&here.session, 1, 1);
        let mut answered = AttachResponder::new(&there.session, &mut random(2));
        answered.read(&hello).unwrap();
        let mut answer = answered.write().unwrap();
        answer[at] ^= 1 << (at % 8);
        assert_eq!(dialled.read(&answer), Err(Error::Unauthentic), "byte {at}");
        assert_eq!(dialled.read(&answer), Err(Error::Dead));
    }
}

#[test]
fn answers_and_hellos_of_other_indices_and_sessions_do_not_fit() {
    let (here, there) = pair();
    let (mut first, hello_1) = dial(&here.session, 1, 1);
    let (_, hello_2) = dial(&here.session, 2, 2);
    // The token of one index, the rest of another.
    let mixed = [&hello_1[..32], &hello_2[32..]].concat();
    let mut answered = AttachResponder::new(&there.session, &mut random(2));
    assert_eq!(answered.read(&mixed), Err(Error::Unauthentic));
    let mut answered = AttachResponder::new(&there.session, &mut random(2));
    answered.read(&hello_2).unwrap();
    assert_eq!(first.read(&answered.write().unwrap()), Err(Error::Unauthentic));

    let (_, other) = established(Mode::Code, 40);
    let mut answered = AttachResponder::new(&other.session, &mut random(2));
    assert_eq!(answered.read(&hello_1), Err(Error::UnknownToken));
}

#[test]
fn records_stay_on_their_connection() {
    let (mut here, there) = pair();
    let (mut a1, mut b1) = attach(&here.session, &there.session, 1);
    let (_, mut b2) = attach(&here.session, &there.session, 2);
    let record = seal(&mut a1.send, 1, 0, b"first");
    assert_eq!(open(&mut b2.recv, &record), Err(Error::Unauthentic));
    assert_eq!(open(&mut a1.recv, &record), Err(Error::Unauthentic));
    let record = seal(&mut here.send, 1, 0, b"connection 0");
    assert_eq!(open(&mut b1.recv, &record), Err(Error::Unauthentic));
}

/// The same index and the same dialler's nonce, another nonce of the other end: other keys.
#[test]
fn both_nonces_count() {
    let sealed = |seed| {
        let (here, there) = pair();
        let (mut dialled, hello) = dial(&here.session, 1, 1);
        let mut answered = AttachResponder::new(&there.session, &mut random(seed));
        answered.read(&hello).unwrap();
        dialled.read(&answered.write().unwrap()).unwrap();
        seal(&mut dialled.finish().unwrap().send, 1, 1, b"same")
    };
    assert_eq!(sealed(2), sealed(2));
    assert_ne!(sealed(2), sealed(3));
}

#[test]
fn tokens_tell_nothing_and_are_found() {
    let (here, there) = pair();
    let mut seen = HashSet::new();
    for index in 1..=WINDOW {
        let token = here.session.token(index).unwrap();
        assert_eq!(there.session.index_of(&token), Some(index));
        assert!(seen.insert(token));
    }
    assert_eq!(there.session.index_of(&[0; 32]), None);
    let (other, _) = established(Mode::Code, 40);
    assert_eq!(other.session.index_of(&here.session.token(1).unwrap()), None);
}

/// Attempts that are lost on their way use up indices at one end only.
#[test]
fn lost_attempts_are_survived_within_the_window() {
    let (here, there) = pair();
    for index in 1..WINDOW {
        dial(&here.session, index, 1);
    }
    attach(&here.session, &there.session, WINDOW);
    // More than a window of open ones is passed over; the oldest go.
    for round in 2..6 {
        attach(&here.session, &there.session, round * WINDOW);
    }
    assert_eq!(there.session.token(1), Err(Error::IndexTaken { index: 1 }));
    assert!(there.session.token(5 * WINDOW - 1).is_ok());
}

#[test]
fn many_threads_attach_at_once() {
    let (here, there) = pair();
    std::thread::scope(|scope| {
        for index in 1..=16 {
            let (here, there) = (&here.session, &there.session);
            scope.spawn(move || {
                let (mut a, mut b) = attach(here, there, index);
                assert_talks(&mut a.send, &mut b.recv);
                assert_talks(&mut b.send, &mut a.recv);
            });
        }
    });
    assert_eq!(here.session.next_index(), 17);
}

/// Of threads that are given the same hello, one answers.
#[test]
fn one_of_many_answers_a_hello() {
    let (here, there) = pair();
    let (_, hello) = dial(&here.session, 1, 1);
    let answers = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|seed| {
                let (hello, session) = (&hello, &there.session);
                scope.spawn(move || AttachResponder::new(session, &mut random(seed)).read(hello).is_ok())
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .filter(|&ok| ok)
            .count()
    });
    assert_eq!(answers, 1);
}
