//! Ends that share and mount, and a way between them that can be cut.

use std::fs;
use std::io::{Read, Seek, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use sealway_drop::Error;
use sealway_drop::cancel::Cancel;
use sealway_drop::link::{Connected, Place, Setup};
use sealway_drop::testing::{content, listen};
use sealway_drop_mount::fuse::MountOptions;
use sealway_drop_mount::sharing::{Options, Ready, Telling, keep};

/// Far more than a busy machine needs.
pub(crate) const LIMIT: Duration = Duration::from_secs(90);

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Told {
    Connected,
    Ready,
    /// Whether content goes directly.
    Path(bool),
    Lost,
    Again,
    GaveUp,
    Left(bool),
}

pub(crate) struct Teller(Mutex<Sender<Told>>);

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
    fn path(&self, direct: Option<SocketAddr>) {
        self.tell(Told::Path(direct.is_some()));
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
pub(crate) struct End {
    pub(crate) cancel: Cancel,
    pub(crate) told: Receiver<Told>,
    pub(crate) thread: Option<JoinHandle<Result<(), Error>>>,
}

impl End {
    pub(crate) fn start(options: Options, place: Place, setup: Setup) -> Self {
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

    pub(crate) fn dial(options: Options, to: SocketAddr, setup: Setup) -> Self {
        let place = Place::Dial {
            addresses: vec![to],
            patience: Duration::from_secs(10),
        };
        Self::start(options, place, setup)
    }

    /// Waits until this is told.
    pub(crate) fn until(&self, wanted: &Told) {
        while self
            .told
            .recv_timeout(LIMIT)
            .unwrap_or_else(|_| panic!("{wanted:?} is not told"))
            != *wanted
        {}
    }

    pub(crate) fn ended(&mut self) -> Result<(), Error> {
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
pub(crate) struct Wire {
    /// Under which names ends came back.
    pub(crate) names: Arc<Mutex<Vec<Vec<u8>>>>,
    held: Arc<AtomicBool>,
    carried: Arc<Mutex<Vec<Carried>>>,
    /// Bytes towards the end that dials after which everything is cut.
    left: Arc<AtomicU64>,
}

struct Carried {
    streams: [TcpStream; 2],
    /// Towards the end that dials.
    bytes: Arc<AtomicU64>,
}

impl Carried {
    fn cut(&self) {
        for stream in &self.streams {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Wire {
    pub(crate) fn start(to: SocketAddr) -> (Self, SocketAddr) {
        let (listener, address) = listen();
        let wire = Self::default();
        wire.cut_after(u64::MAX);
        let carrying = wire.clone();
        std::thread::spawn(move || {
            for near in listener.incoming() {
                let (near, far) = (near.unwrap(), TcpStream::connect(to).unwrap());
                let copy = |stream: &TcpStream| stream.try_clone().unwrap();
                let (streams, bytes) = ([copy(&near), copy(&far)], Arc::<AtomicU64>::default());
                let counted = bytes.clone();
                carrying.carried.lock().unwrap().push(Carried { streams, bytes });
                for (from, to, bytes) in [(copy(&near), copy(&far), None), (far, near, Some(counted))] {
                    let wire = carrying.clone();
                    std::thread::spawn(move || wire.carry(from, to, bytes.as_deref()));
                }
            }
        });
        (wire, address)
    }

    pub(crate) fn hold(&self, held: bool) {
        self.held.store(held, SeqCst);
    }

    fn carry(&self, mut from: TcpStream, mut to: TcpStream, bytes: Option<&AtomicU64>) {
        let mut buffer = vec![0; 64 << 10];
        let mut first = true;
        while let Ok(read @ 1..) = from.read(&mut buffer) {
            while self.held.load(SeqCst) {
                std::thread::sleep(Duration::from_millis(5));
            }
            if std::mem::take(&mut first) && buffer[0] == b'R' && read >= 33 {
                self.names.lock().unwrap().push(buffer[1..33].to_vec());
            }
            if let Some(bytes) = bytes {
                bytes.fetch_add(read as u64, SeqCst);
                let enough = |left: u64| left.checked_sub(read as u64);
                if self.left.fetch_update(SeqCst, SeqCst, enough).is_err() {
                    self.cut();
                }
            }
            if to.write_all(&buffer[..read]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Write);
    }

    pub(crate) fn cut(&self) {
        self.carried.lock().unwrap().drain(..).for_each(|one| one.cut());
    }

    /// Cuts everything once so many more bytes have gone towards the end that dials.
    pub(crate) fn cut_after(&self, bytes: u64) {
        self.left.store(bytes, SeqCst);
    }

    /// Cuts the connection that carried the most, and says how much that was.
    pub(crate) fn cut_busiest(&self) -> u64 {
        let carried = self.carried.lock().unwrap();
        let busiest = carried.iter().max_by_key(|one| one.bytes.load(SeqCst)).unwrap();
        busiest.cut();
        busiest.bytes.load(SeqCst)
    }

    /// Connections that were not cut by [`Wire::cut`].
    pub(crate) fn connections(&self) -> usize {
        self.carried.lock().unwrap().len()
    }
}

pub(crate) fn shares(path: &Path) -> Options {
    Options {
        share: Some(path.to_owned()),
        keepalive: Duration::from_millis(500),
        ..Options::default()
    }
}

pub(crate) fn mounts(path: &Path) -> Options {
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
pub(crate) struct Folders {
    pub(crate) source: tempfile::TempDir,
    pub(crate) at: tempfile::TempDir,
    pub(crate) data: Vec<u8>,
}

impl Folders {
    pub(crate) fn new() -> Self {
        let (source, at) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let data = content(24 << 20, 3);
        fs::write(source.path().join("file"), &data).unwrap();
        Self { source, at, data }
    }

    pub(crate) fn open(&self) -> fs::File {
        fs::File::open(self.at.path().join("file")).unwrap()
    }

    /// Reads the next part of a file that is open.
    pub(crate) fn go_on(&self, file: &mut fs::File) {
        let at = file.stream_position().unwrap() as usize;
        let mut part = vec![0; 6 << 20];
        file.read_exact(&mut part).unwrap();
        assert!(part == self.data[at..at + part.len()], "other bytes at {at}");
    }
}
