//! Mounts that outlive their connections.

use std::fs;
use std::io::{Read, Seek, SeekFrom, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::io::Errno;
use sealway_aead::choose::Offer;
use sealway_aead::cpu::Cpu;
use sealway_drop::Error;
use sealway_drop::cancel::Cancel;
use sealway_drop::fuse::MountOptions;
use sealway_drop::link::{Connected, Place, Setup};
use sealway_drop::relay::{Limits, Meeting};
use sealway_drop::sharing::{Options, Ready, Telling, keep};

use sealway_session::handshake::{Auth, Config, Handshake, Kem, PeerKey, Role, StaticKey};

use super::relay::Relay;
use super::support::{code, listen, setup};
use super::{bytes, can_mount};

/// Far more than a busy machine needs.
const LIMIT: Duration = Duration::from_secs(90);

#[derive(Clone, Debug, Eq, PartialEq)]
enum Told {
    Connected,
    Ready,
    Lost,
    Again,
    GaveUp,
    Left(bool),
}

struct Teller(Mutex<Sender<Told>>);

impl Teller {
    fn tell(&self, told: Told) {
        let _ = self.0.lock().unwrap().send(told);
    }
}

impl Telling for Teller {
    fn turned_away(&self, _: &Error) {}
    fn connected(&self, _: &mut Connected) -> Result<(), Error> {
        self.tell(Told::Connected);
        Ok(())
    }
    fn ready(&self, _: Ready) {
        self.tell(Told::Ready);
    }
    fn lost(&self, _: &Error, _: Duration) {
        self.tell(Told::Lost);
    }
    fn again(&self) {
        self.tell(Told::Again);
    }
    fn gave_up(&self, _: Duration) {
        self.tell(Told::GaveUp);
    }
    fn left(&self, how: &Result<(), Error>) {
        self.tell(Told::Left(how.is_ok()));
    }
}

/// One end; told to stop when dropped.
struct End {
    cancel: Cancel,
    told: Receiver<Told>,
    thread: Option<JoinHandle<Result<(), Error>>>,
}

impl End {
    fn start(options: Options, place: Place, setup: Setup) -> Self {
        let (cancel, (tell, told)) = (Cancel::new(), channel());
        let of = cancel.clone();
        let teller = Teller(Mutex::new(tell));
        let thread = std::thread::spawn(move || keep(&options, place, &setup, &of, &teller));
        Self {
            cancel,
            told,
            thread: Some(thread),
        }
    }

    fn dial(options: Options, to: SocketAddr, setup: Setup) -> Self {
        let place = Place::Dial {
            addresses: vec![to],
            patience: Duration::from_secs(10),
        };
        Self::start(options, place, setup)
    }

    /// Waits until this is told.
    fn until(&self, wanted: &Told) {
        while self
            .told
            .recv_timeout(LIMIT)
            .unwrap_or_else(|_| panic!("{wanted:?} is not told"))
            != *wanted
        {}
    }

    fn ended(&mut self) -> Result<(), Error> {
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.cancel.cancel();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Stands between two ends. What it carries can be held up, and its connections cut.
#[derive(Clone, Default)]
struct Wire {
    /// Under which names ends came back.
    names: Arc<Mutex<Vec<Vec<u8>>>>,
    held: Arc<AtomicBool>,
    streams: Arc<Mutex<Vec<TcpStream>>>,
}

impl Wire {
    fn start(to: SocketAddr) -> (Self, SocketAddr) {
        let (listener, address) = listen();
        let wire = Self::default();
        let carrying = wire.clone();
        std::thread::spawn(move || {
            for near in listener.incoming() {
                let (near, far) = (near.unwrap(), TcpStream::connect(to).unwrap());
                let copy = |stream: &TcpStream| stream.try_clone().unwrap();
                carrying.streams.lock().unwrap().extend([copy(&near), copy(&far)]);
                for (from, to) in [(copy(&near), copy(&far)), (far, near)] {
                    let wire = carrying.clone();
                    std::thread::spawn(move || wire.carry(from, to));
                }
            }
        });
        (wire, address)
    }

    fn hold(&self, held: bool) {
        self.held.store(held, SeqCst);
    }

    fn carry(&self, mut from: TcpStream, mut to: TcpStream) {
        let mut buffer = vec![0; 64 << 10];
        let mut first = true;
        while let Ok(read @ 1..) = from.read(&mut buffer) {
            while self.held.load(SeqCst) {
                std::thread::sleep(Duration::from_millis(5));
            }
            if std::mem::take(&mut first) && buffer[0] == b'R' && read >= 33 {
                self.names.lock().unwrap().push(buffer[1..33].to_vec());
            }
            if to.write_all(&buffer[..read]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Write);
    }

    fn cut(&self) {
        for stream in self.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

fn shares(path: &Path) -> Options {
    Options {
        share: Some(path.to_owned()),
        keepalive: Duration::from_millis(500),
        ..Options::default()
    }
}

fn mounts(path: &Path) -> Options {
    Options {
        mount: Some(path.to_owned()),
        keepalive: Duration::from_millis(500),
        mounting: MountOptions {
            ttl: Duration::ZERO,
            ..MountOptions::default()
        },
        ..Options::default()
    }
}

/// A folder with a file, and where it is to be mounted.
struct Folders {
    source: tempfile::TempDir,
    at: tempfile::TempDir,
    data: Vec<u8>,
}

impl Folders {
    fn new() -> Self {
        let (source, at) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let data = bytes(24 << 20, 3);
        fs::write(source.path().join("file"), &data).unwrap();
        Self { source, at, data }
    }

    fn open(&self) -> fs::File {
        fs::File::open(self.at.path().join("file")).unwrap()
    }

    /// Reads the next part of a file that is open.
    fn go_on(&self, file: &mut fs::File) {
        let at = file.stream_position().unwrap() as usize;
        let mut part = vec![0; 6 << 20];
        file.read_exact(&mut part).unwrap();
        assert!(part == self.data[at..at + part.len()], "other bytes at {at}");
    }
}

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
    assert_eq!(
        fs::read_dir(folders.at.path()).unwrap().count(),
        0,
        "nothing is mounted any more"
    );
    wire.cut();
}

#[test]
fn ends_that_met_at_a_relay_meet_there_again() {
    if !can_mount() {
        return;
    }
    let folders = Folders::new();
    let relay = Relay::start(Limits::default());
    let (wire, between) = Wire::start(relay.address.parse().unwrap());
    let (tell, told) = channel();
    let tell = Mutex::new(tell);
    let opening = Place::Relay {
        address: relay.address.clone(),
        meeting: Meeting::Open(Arc::new(move |number| tell.lock().unwrap().send(number).unwrap())),
    };
    let share = End::start(shares(folders.source.path()), opening, code("one-two-three"));
    let claiming = Place::Relay {
        address: between.to_string(),
        meeting: Meeting::Claim(told.recv_timeout(LIMIT).unwrap()),
    };
    let mount = End::start(mounts(folders.at.path()), claiming, code("one-two-three"));
    mount.until(&Told::Ready);
    let mut open = folders.open();
    folders.go_on(&mut open);
    wire.cut();
    folders.go_on(&mut open);
    mount.until(&Told::Again);
    share.until(&Told::Again);
    folders.go_on(&mut open);
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
