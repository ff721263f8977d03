//! Mounts that outlive their connections.

use std::fs;
use std::io::{Read, Seek, SeekFrom, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use rustix::io::Errno;
use sealway_aead::choose::Offer;
use sealway_aead::cpu::Cpu;
use sealway_drop::Error;
use sealway_drop::link::Place;
use sealway_drop::testing::{code, listen, setup};
use sealway_drop_mount::sharing::Options;
use sealway_session::handshake::{Auth, Config, Handshake, Kem, PeerKey, Role, StaticKey};

use super::ends::{End, Folders, LIMIT, Told, Wire, mounts, shares};
use super::sharing::assert_not_mounted;
use super::support::can_mount;

#[test]
fn a_mount_by_a_code_outlives_a_silence_and_a_cut() {
    if !can_mount() {
        return;
    }
    let folders = Folders::new();
    let (listener, address) = listen();
    let (wire, between) = Wire::start(address);
    let mut share = End::start(
        shares(folders.source.path()),
        Place::Listen(listener),
        code("one-two-three"),
    );
    let mut mount = End::dial(mounts(folders.at.path()), between, code("one-two-three"));
    mount.until(&Told::Ready);
    let mut open = folders.open();
    folders.go_on(&mut open);
    // Longer than the ends take to find each other silent.
    wire.hold(true);
    let reading = std::thread::spawn({
        let mut open = open.try_clone().unwrap();
        move || {
            let mut part = vec![0; 6 << 20];
            open.read_exact(&mut part).map(|()| part)
        }
    });
    mount.until(&Told::Lost);
    share.until(&Told::Lost);
    wire.hold(false);
    mount.until(&Told::Again);
    share.until(&Told::Again);
    let part = reading.join().unwrap().expect("the read has waited");
    assert!(part == folders.data[6 << 20..12 << 20]);
    wire.cut();
    folders.go_on(&mut open);
    mount.until(&Told::Again);
    share.until(&Told::Again);
    folders.go_on(&mut open);
    // The code is spent: nobody else gets in with it, right or wrong.
    for words in ["one-two-three", "four-five-six"] {
        let other = tempfile::tempdir().unwrap();
        let ended = End::dial(mounts(other.path()), address, code(words)).ended();
        assert!(ended.is_err(), "{ended:?}");
    }
    open.rewind().unwrap();
    folders.go_on(&mut open);
    mount.cancel.cancel();
    assert!(mount.ended().is_ok());
    let ended = share.ended();
    assert!(ended.is_ok(), "{ended:?}");
}

#[test]
fn a_file_that_changed_while_the_way_was_lost_is_stale_where_it_is_open() {
    if !can_mount() {
        return;
    }
    let folders = Folders::new();
    let (listener, address) = listen();
    let (wire, between) = Wire::start(address);
    let share = End::start(shares(folders.source.path()), Place::Listen(listener), setup(1));
    let mount = End::dial(mounts(folders.at.path()), between, setup(2));
    mount.until(&Told::Ready);
    let mut open = folders.open();
    folders.go_on(&mut open);
    wire.hold(true);
    mount.until(&Told::Lost);
    let source = folders.source.path().join("file");
    let mut changing = fs::OpenOptions::new().write(true).open(&source).unwrap();
    changing.write_all(b"changed").unwrap();
    changing.sync_all().unwrap();
    wire.hold(false);
    mount.until(&Told::Again);
    open.seek(SeekFrom::Start(20 << 20)).unwrap();
    let error = open.read(&mut [0; 4096]).unwrap_err();
    assert_eq!(Errno::from_io_error(&error), Some(Errno::STALE), "{error}");
    let now = fs::read(folders.at.path().join("file")).unwrap();
    assert!(now == fs::read(&source).unwrap());
    drop((mount, share));
}

#[test]
fn a_sharer_with_keys_serves_several_at_once_and_after_each_other() {
    if !can_mount() {
        return;
    }
    let folders = Folders::new();
    let (listener, address) = listen();
    let mut share = End::start(shares(folders.source.path()), Place::Listen(listener), setup(1));
    let others = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let mut mounted: Vec<End> = others
        .iter()
        .map(|at| End::dial(mounts(at.path()), address, setup(2)))
        .collect();
    for (end, at) in mounted.iter().zip(&others) {
        end.until(&Told::Ready);
        assert!(fs::read(at.path().join("file")).unwrap() == folders.data);
    }
    let mut first = mounted.remove(0);
    first.cancel.cancel();
    assert!(first.ended().is_ok());
    share.until(&Told::Left(true));
    assert!(fs::read(others[1].path().join("file")).unwrap() == folders.data);
    let third = End::dial(mounts(others[0].path()), address, setup(3));
    third.until(&Told::Ready);
    assert!(fs::read(others[0].path().join("file")).unwrap() == folders.data);
    share.cancel.cancel();
    assert!(share.ended().is_ok());
    for mut end in mounted.into_iter().chain([third]) {
        let ended = end.ended();
        assert!(ended.is_ok(), "the goodbye of the sharer: {ended:?}");
    }
}

#[test]
fn an_end_with_keys_is_found_again_when_its_program_was_started_again() {
    if !can_mount() {
        return;
    }
    let folders = Folders::new();
    let (listener, address) = listen();
    let again = listener.try_clone().unwrap();
    let (wire, between) = Wire::start(address);
    let share = End::start(shares(folders.source.path()), Place::Listen(listener), setup(1));
    let mount = End::dial(mounts(folders.at.path()), between, setup(2));
    mount.until(&Told::Ready);
    // Without a goodbye.
    wire.hold(true);
    wire.cut();
    drop(share);
    let _share = End::start(shares(folders.source.path()), Place::Listen(again), setup(1));
    wire.hold(false);
    mount.until(&Told::Again);
    assert!(fs::read(folders.at.path().join("file")).unwrap() == folders.data);
}

#[test]
fn who_is_not_found_again_is_given_up_and_reads_wait_no_longer_than_they_may() {
    if !can_mount() {
        return;
    }
    let folders = Folders::new();
    let (listener, address) = listen();
    let (wire, between) = Wire::start(address);
    let short = |options: Options| Options {
        again: Duration::from_secs(4),
        ..options
    };
    let sharing = short(shares(folders.source.path()));
    let mut share = End::start(sharing, Place::Listen(listener), code("one-two-three"));
    let mut options = short(mounts(folders.at.path()));
    options.mounting.timeout = Duration::from_secs(1);
    let mut mount = End::dial(options, between, code("one-two-three"));
    mount.until(&Told::Ready);
    let mut open = folders.open();
    wire.hold(true);
    mount.until(&Told::Lost);
    open.seek(SeekFrom::Start(20 << 20)).unwrap();
    let error = open.read(&mut [0; 4096]).unwrap_err();
    assert_eq!(Errno::from_io_error(&error), Some(Errno::TIMEDOUT), "{error}");
    mount.until(&Told::GaveUp);
    share.until(&Told::GaveUp);
    for end in [&mut mount, &mut share] {
        let ended = end.ended();
        assert!(matches!(ended, Err(Error::Network { .. })), "{ended:?}");
    }
    assert_not_mounted(folders.at.path());
    wire.cut();
}

/// Somebody who has heard the name under which an end comes back, and has a key of their own.
fn impostor(address: SocketAddr, name: &[u8]) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    let mut random = |out: &mut [u8]| getrandom::fill(out).unwrap();
    let config = Config {
        role: Role::Initiator,
        auth: Auth::Keys {
            own: StaticKey::from_bytes(&[9; 32]),
            peer: PeerKey::Unknown,
        },
        offer: Offer::of(Cpu::get()),
        kem: Kem::MlKem768,
        prologue: b"sealway drop 1".to_vec(),
    };
    let mut handshake = Handshake::new(config, &mut random).unwrap();
    stream.write_all(b"R").unwrap();
    stream.write_all(name).unwrap();
    let mut buffer = [0; 4096];
    loop {
        while let Some(flight) = handshake.write() {
            stream.write_all(&flight).unwrap();
        }
        match stream.read(&mut buffer) {
            Ok(0) => return,
            Ok(read) if !handshake.is_done() => drop(handshake.read(&buffer[..read]).unwrap()),
            // Why it is refused. Who is let in is not left at once, so there would be no end.
            Ok(_) => {}
            Err(error) => return assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset),
        }
    }
}

#[test]
fn who_only_knows_the_name_gets_nowhere_and_disturbs_nobody() {
    if !can_mount() {
        return;
    }
    let folders = Folders::new();
    let (listener, address) = listen();
    let (wire, between) = Wire::start(address);
    let share = End::start(
        shares(folders.source.path()),
        Place::Listen(listener),
        code("one-two-three"),
    );
    let mount = End::dial(mounts(folders.at.path()), between, code("one-two-three"));
    mount.until(&Told::Ready);
    wire.cut();
    mount.until(&Told::Again);
    share.until(&Told::Again);
    let name = wire.names.lock().unwrap()[0].clone();
    impostor(address, &name);
    impostor(address, &[7; 32]);
    let mut open = folders.open();
    folders.go_on(&mut open);
    for end in [&mount, &share] {
        assert!(end.told.try_recv().is_err(), "the session that stands is left alone");
    }
}

#[test]
fn the_end_that_mounts_may_be_the_one_that_listens() {
    if !can_mount() {
        return;
    }
    let folders = Folders::new();
    let (listener, address): (TcpListener, _) = listen();
    let (wire, between) = Wire::start(address);
    let mount = End::start(mounts(folders.at.path()), Place::Listen(listener), setup(1));
    let share = End::dial(shares(folders.source.path()), between, setup(2));
    mount.until(&Told::Ready);
    let mut open = folders.open();
    folders.go_on(&mut open);
    wire.cut();
    folders.go_on(&mut open);
    share.until(&Told::Again);
}
