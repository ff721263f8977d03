//! Direct connections that stay and carry nothing.

use sealway_drop::testing::listen;

use super::*;
use crate::forwarder::Forwarder;
use crate::lines::{Lines, lines_by, until};

/// The network says nothing of it: what is on its way by the path is asked for again when nothing has come for a while.
#[test]
fn a_direct_path_that_falls_silent_is_left_for_the_relay_and_nothing_is_lost() {
    if !can_mount() {
        return;
    }
    let mut mounted = Mounted::start();
    let (at, source) = (mounted.at.path().to_owned(), mounted.served.folder.path().to_owned());
    let large = content(16 << 20, 7);
    fs::write(source.join("large"), &large).unwrap();
    for end in &mut mounted.beside {
        end.silence = Duration::from_millis(200);
    }
    let (listener, address) = listen();
    let forwarder = Forwarder::to(address);
    let (mut near, mut far) = lines_by(&[DIRECT], listener, forwarder.address);
    let ends = [(0, &mut near), (1, &mut far)]
        .map(|(end, lines): (usize, &mut Lines)| runs(&mounted.beside[end], lines.remove(&DIRECT).unwrap()));
    let load = Load::default();
    let log = std::thread::scope(|scope| {
        let log = scope.spawn(|| appends(&load, &at, &source));
        let others = [
            scope.spawn(|| names(&load, &at)),
            scope.spawn(|| reads(&load, &at, &large)),
        ];
        load.goes_on_by(50);
        forwarder.fall_silent();
        // More than is on its way by then.
        load.goes_on_by(50);
        load.stop.store(true, SeqCst);
        others.into_iter().for_each(|other| other.join().unwrap());
        log.join().unwrap()
    });
    assert!(fs::read(source.join("log")).unwrap() == log, "the log");
    let ours = mounted.beside[0].clone();
    assert!(
        ours.reads.unwrap().left() + ours.asked.unwrap().left() > 0,
        "nothing was left by the path"
    );
    drop(forwarder);
    for (_, running) in ends {
        assert!(matches!(running.join().unwrap(), Err(Error::Network { .. })));
    }
}

/// Two ends that have nothing to say to each other notice it, and one that only serves: it would keep a connection that is of no use.
#[test]
fn a_silent_path_is_noticed_by_an_end_that_waits_for_nothing() {
    let silence = Duration::from_millis(200);
    let mounts = Beside {
        reads: Some(Arc::default()),
        silence,
        ..Beside::default()
    };
    let serves = Beside {
        silence,
        ..Served::new().beside()
    };
    let (listener, address) = listen();
    let forwarder = Forwarder::to(address);
    let (mut near, mut far) = lines_by(&[DIRECT], listener, forwarder.address);
    let before = forwarder.passed();
    let (_near, mounting) = runs(&mounts, near.remove(&DIRECT).unwrap());
    let (_far, serving) = runs(&serves, far.remove(&DIRECT).unwrap());
    // Each has heard the other one.
    until("a sign of life", || {
        forwarder.passed().iter().zip(before).all(|(now, before)| *now > before)
    });
    forwarder.fall_silent();
    for running in [mounting, serving] {
        until("leaving the path", || running.is_finished());
        assert!(matches!(running.join().unwrap(), Err(Error::Network { .. })));
    }
}

/// An end of an older version says nothing while it asks for nothing. It hears all the time that the other one is there.
#[test]
fn a_path_whose_end_has_promised_nothing_may_be_silent() {
    let beside = Beside {
        reads: Some(Arc::default()),
        silence: Duration::from_millis(20),
        ..Served::new().beside()
    };
    let (mut direct, far) = pair(DIRECT);
    let (_stream, running) = runs(&beside, far);
    says(&mut direct, (kind::PULSE, 0), &[0]);
    for _ in 0..40 {
        let record = direct.reader.next().unwrap().unwrap();
        assert_eq!((record.kind, record.payload), (kind::PULSE, &[1][..]));
    }
    let (handle, offset, len) = (1, 0, 5);
    says(&mut direct, (kind::READ, 7), &Read { handle, offset, len }.encode());
    assert_eq!(hears_any(&mut direct).1, 7);
    drop(direct);
    assert!(matches!(running.join().unwrap(), Err(Error::Network { .. })));
}

/// It may have fallen silent before anything was promised, or be of an older version.
#[test]
fn an_end_that_only_serves_leaves_a_path_that_has_promised_nothing_too() {
    let beside = Beside {
        silence: Duration::from_millis(20),
        ..Served::new().beside()
    };
    let (_silent, far) = pair(DIRECT);
    let (_stream, running) = runs(&beside, far);
    until("leaving the path", || running.is_finished());
    assert!(matches!(running.join().unwrap(), Err(Error::Network { .. })));
}
