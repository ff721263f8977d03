//! Two ends that should agree do, on everything.

use sealway_aead::Suite;
use sealway_session::handshake::{Handshake, Kem, Mode, PeerKey, Role};

use crate::common::*;

#[test]
fn both_modes_agree_on_everything() {
    for mode in [Mode::Code, Mode::Keys] {
        let (mut here, mut there) = established(mode, 1);
        assert_eq!(here.suite, Suite::Aes256Gcm);
        assert_eq!(here.suite, there.suite);
        assert_eq!((here.role, there.role), (Role::Initiator, Role::Responder));
        assert_eq!(here.check, there.check);
        assert_eq!(here.session.id(), there.session.id());
        let theirs = |role: Role| (mode == Mode::Keys).then(|| *static_key(role).public());
        assert_eq!(here.peer_key, theirs(Role::Responder));
        assert_eq!(there.peer_key, theirs(Role::Initiator));
        let (mut a, mut b) = ([0; 48], [0; 48]);
        here.session.exporter("label", b"context", &mut a).unwrap();
        there.session.exporter("label", b"context", &mut b).unwrap();
        assert_eq!(a, b);
        assert_talks(&mut here.send, &mut there.recv);
        assert_talks(&mut there.send, &mut here.recv);
    }
}

/// Gives the flight of one end to the other in pieces; three bytes that come right after it are left alone.
fn feed(from: &mut Handshake, to: &mut Handshake, step: usize) {
    let mut flight = from.write().unwrap();
    let len = flight.len();
    flight.extend([0xaa; 3]);
    let mut used = 0;
    while used < len {
        let end = flight.len().min(used + step);
        used += to.read(&flight[used..end]).unwrap();
    }
    assert_eq!(used, len);
}

#[test]
fn any_cut_of_the_input_gives_the_same() {
    for mode in [Mode::Code, Mode::Keys] {
        let (whole, _) = established(mode, 5);
        for step in [1, 7, 8, 9, 1000, 5000] {
            let (mut initiator, mut responder) = ends(mode, 5);
            feed(&mut initiator, &mut responder, step);
            feed(&mut responder, &mut initiator, step);
            feed(&mut initiator, &mut responder, step);
            assert_eq!(initiator.finish().unwrap().session.id(), whole.session.id());
            assert_eq!(responder.finish().unwrap().session.id(), whole.session.id());
        }
    }
}

#[test]
fn ml_kem_1024_by_wish_of_either_end() {
    for mode in [Mode::Code, Mode::Keys] {
        let end = |role, kem| {
            let mut config = config(role, auth(mode, role));
            config.kem = kem;
            start(config, 3 + role as u64)
        };
        for responder in [Kem::MlKem768, Kem::MlKem1024] {
            let (here, there) = agree(end(Role::Initiator, Kem::MlKem1024), end(Role::Responder, responder));
            assert_eq!((here.kem, there.kem), (Kem::MlKem1024, Kem::MlKem1024));
            assert_eq!(here.session.id(), there.session.id());
        }
    }
}

#[test]
fn an_unknown_peer_is_told_and_one_of_several_is_found() {
    let other = [7; 32];
    let own = |role: Role| *static_key(role).public();
    for peer in [
        PeerKey::Unknown,
        PeerKey::OneOf(vec![other, own(Role::Initiator)]),
        PeerKey::Pinned(own(Role::Initiator)),
    ] {
        let initiator = start(config(Role::Initiator, keys(Role::Initiator, PeerKey::Unknown)), 1);
        let responder = start(config(Role::Responder, keys(Role::Responder, peer)), 2);
        let (here, there) = agree(initiator, responder);
        assert_eq!(here.peer_key, Some(own(Role::Responder)));
        assert_eq!(there.peer_key, Some(own(Role::Initiator)));
        assert_eq!(here.check, there.check);
    }
}

#[test]
fn every_handshake_is_another_one() {
    let mut ids = Vec::new();
    for mode in [Mode::Code, Mode::Keys] {
        for seed in [1, 100] {
            let (here, _) = established(mode, seed);
            ids.push((here.session.id(), here.check.to_string()));
        }
    }
    for (i, a) in ids.iter().enumerate() {
        for b in &ids[i + 1..] {
            assert_ne!(a.0, b.0);
            assert_ne!(a.1, b.1);
        }
    }
}

#[test]
fn halves_and_sessions_go_to_other_threads() {
    fn send<T: Send>(_: &T) {}
    fn share<T: Send + Sync>(_: &T) {}
    let (here, _) = established(Mode::Code, 1);
    send(&here.send);
    send(&here.recv);
    share(&here.session);
}
