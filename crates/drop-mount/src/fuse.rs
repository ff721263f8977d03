//! A tree mounted as a file system, read only unless [`MountOptions::writable`] says otherwise.
//!
//! - Read errors are errors: a read gets all its bytes, fewer only at the true end of a file, or `EIO` (`ETIMEDOUT` when
//!   the peer did not answer in time, `EINTR` when the caller was interrupted).
//! - No thread that hears the kernel waits for the peer, so a slow read never holds up `ls`.
//! - What the kernel keeps is bounded by [`MountOptions::ttl`], and invalidated when the tree tells of a change or
//!   another look at a file shows another version. The content of a file is looked at anew at every open.
//! - A program that reads a file while it changes sees old and new bytes, as on any file system, never bytes read before
//!   the version that it was told. Where the kernel reads a local copy by itself ([`CopiesBy::Kernel`]), it sees what it
//!   opened.

mod change;
mod copies;
mod core;
mod dirs;
mod files;
mod fs;
mod invalidate;
mod locks;
mod mountpoint;
mod nodes;
mod notices;
mod pool;
mod retry;
mod show;
mod stream;
#[cfg(test)]
mod stream_tests;
mod waiters;
mod write;
mod writes;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::Duration;

use fuser::{Config, Errno, MountOption, Session, SessionACL, SessionUnmounter};

use sealway_drop::fault::{Failure, Fault};
use sealway_drop::lock;

use self::core::Core;
use crate::cache::{CacheError, CacheOptions, Store};
use crate::tree::{RemoteTree, Subscription, TreeError};
use copies::Copies;
pub use copies::CopiesBy;
use files::Files;
use fs::Fs;
use notices::Notices;

/// How to mount.
#[derive(Debug, Clone)]
pub struct MountOptions {
    /// How long the kernel may keep names and attributes without asking again. Default 2 s.
    pub ttl: Duration,
    /// How long an answer of the peer is waited for, also while the way to it is lost. Default 1 min.
    pub timeout: Duration,
    /// Threads that hear the kernel. Default 2; each has its own queue.
    pub threads: usize,
    /// Calls that may wait for the peer at the same time, reads apart. Default 16.
    pub calls: usize,
    /// Bytes that may be read ahead of all open files together. Default 128 MiB.
    pub memory: u64,
    /// Bytes that may be read ahead of one open file. Default 32 MiB.
    pub window: u64,
    /// Whether other users may look into the mount. Needs `user_allow_other` in `/etc/fuse.conf` unless run by root.
    /// Permission bits are then checked by the kernel. Default no.
    pub allow_other: bool,
    /// Whether to cover a folder that is not empty. Default no.
    pub allow_nonempty: bool,
    /// Where whole files are kept that were read, for the next reading. Default nowhere; not of a mount that can be written.
    pub cache: Option<CacheOptions>,
    /// Whether it can be written, to a tree that takes changes. Default no.
    pub writable: bool,
    /// Bytes that programs may have written that nobody has acknowledged yet. Default 16 MiB.
    pub write_window: u64,
}

impl Default for MountOptions {
    fn default() -> Self {
        Self {
            ttl: Duration::from_secs(2),
            timeout: Duration::from_secs(60),
            threads: 2,
            calls: 16,
            memory: 128 << 20,
            window: 32 << 20,
            allow_other: false,
            allow_nonempty: false,
            cache: None,
            writable: false,
            write_window: 16 << 20,
        }
    }
}

/// Why a tree could not be mounted, or taken away.
#[derive(Debug)]
#[non_exhaustive]
pub enum MountError {
    /// The mount point cannot be used.
    Mountpoint {
        /// As given.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The mount point holds something.
    NotEmpty(PathBuf),
    /// Something is mounted there whose server is gone, and that is not ours to take away.
    Stale(PathBuf),
    /// The system did not mount, or not unmount.
    System(io::Error),
    /// The tree did not let itself be watched.
    Tree(TreeError),
    /// No local copies can be kept.
    Cache(CacheError),
    /// Local copies of what can be written here are not kept.
    CacheOfWritable,
}

impl fmt::Display for MountError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mountpoint { path, error } => write!(f, "cannot mount at {}: {error}", path.display()),
            Self::NotEmpty(path) => write!(f, "cannot mount at {}: the folder is not empty", path.display()),
            Self::Stale(path) => write!(
                f,
                "cannot mount at {}: a dead mount of another program stands there; `fusermount3 -uz` takes it away",
                path.display()
            ),
            Self::System(error) => write!(f, "the system refused: {error}"),
            Self::Tree(error) => write!(f, "the tree cannot be watched: {error}"),
            Self::Cache(error) => write!(f, "no local copies can be kept: {error}"),
            Self::CacheOfWritable => f.write_str("no local copies are kept of what can be written"),
        }
    }
}

impl std::error::Error for MountError {}

impl Failure for MountError {
    fn fault(&self) -> Fault {
        Fault::Storage
    }
}

/// A mounted tree. Dropping it unmounts.
pub struct Mount {
    unmounter: Unmounter,
    /// No news after the mount is gone.
    _news: Option<Subscription>,
}

/// Takes a mount away from wherever it is called, such as from a signal's thread.
#[derive(Clone)]
pub struct Unmounter(Arc<Shared>);

struct Shared {
    path: PathBuf,
    core: Arc<Core>,
    session: Mutex<Option<SessionUnmounter>>,
    over: Arc<Over>,
}

/// Set when the kernel has let go.
#[derive(Default)]
struct Over {
    result: Mutex<Option<io::Result<()>>>,
    told: Condvar,
}

impl Mount {
    /// Mounts `tree` at `path` and serves it until it is unmounted, by us or by somebody else.
    pub fn start(tree: Arc<dyn RemoteTree>, path: &Path, options: MountOptions) -> Result<Self, MountError> {
        let path = mountpoint::prepare(path, options.allow_nonempty)?;
        if options.writable && options.cache.is_some() {
            return Err(MountError::CacheOfWritable);
        }
        let copies = match &options.cache {
            Some(cache) => {
                let store = Store::open(cache).map_err(MountError::Cache)?;
                Some(Arc::new(Copies::new(store, cache.passthrough)))
            }
            None => None,
        };
        let (notices, inbox) = Notices::new();
        let made = Arc::new_cyclic(|core: &Weak<Core>| {
            let (news, core) = (notices.clone(), core.clone());
            let changed = move |ino| {
                if let Some(core) = core.upgrade() {
                    core.nodes().doubt(ino);
                }
                news.content(ino);
            };
            let files = Files::new(tree.clone(), copies.clone(), &options, Box::new(changed));
            Core::new(tree.clone(), files, copies.clone(), notices.clone(), options.clone())
        });

        let session = Session::new(Fs::new(Arc::clone(&made)), &path, &config(&options));
        let mut session = session.map_err(MountError::System)?;
        if let Some(copies) = &copies {
            copies.try_out(&session);
            tracing::info!(by = ?copies.by(), "local copies are kept");
        }
        let notifier = session.notifier();
        let _ = made.notifier.set(session.notifier());
        let unmounter = session.unmount_callable();
        let over: Arc<Over> = Arc::default();
        let shared = Shared {
            path,
            core: made,
            session: Mutex::new(Some(unmounter)),
            over: Arc::clone(&over),
        };
        // From here on a failure unmounts by dropping this.
        let mut mount = Self {
            unmounter: Unmounter(Arc::new(shared)),
            _news: None,
        };
        let shared = &mount.unmounter.0;

        let told = Arc::clone(&over);
        spawn("mount", move || told.set(session.run()))?;
        let weak = Arc::downgrade(&shared.core);
        spawn("mount-notices", move || invalidate::run(&inbox, &weak, &notifier))?;
        let (weak, over) = (Arc::downgrade(&shared.core), Arc::clone(&over));
        spawn("mount-watch", move || watch(&weak, &over))?;
        mountpoint::raise_readahead(&shared.path, 1024);
        let sink = notices.clone();
        mount._news = match tree.subscribe(Arc::new(move |event| sink.event(event))) {
            Ok(news) => Some(news),
            // Without news the time limits stand.
            Err(TreeError::Invalid(_) | TreeError::Limit) => None,
            Err(error) => return Err(MountError::Tree(error)),
        };
        Ok(mount)
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        &self.unmounter.0.path
    }

    /// Who reads local copies; `None` if none are kept. What the kernel refuses later is read by the program.
    pub fn copies(&self) -> Option<CopiesBy> {
        self.unmounter.0.core.copies.as_ref().map(|copies| copies.by())
    }

    /// A second hand on the mount, for a signal's thread.
    pub fn unmounter(&self) -> Unmounter {
        self.unmounter.clone()
    }

    /// Waits until somebody unmounts, here or by `umount`.
    pub fn wait(&self) -> Result<(), MountError> {
        self.unmounter.wait()
    }

    /// Unmounts. Reads under way fail; if files are still open, the mount leaves the tree at once and ends with them.
    pub fn unmount(self) -> Result<(), MountError> {
        self.unmounter.unmount()
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if let Err(error) = self.unmounter.unmount() {
            tracing::warn!(%error, path = %self.path().display(), "cannot unmount");
        }
    }
}

impl Unmounter {
    /// As [`Mount::wait`].
    pub fn wait(&self) -> Result<(), MountError> {
        self.0.over.wait(None).unwrap_or(Ok(())).map_err(MountError::System)
    }

    /// As [`Mount::unmount`].
    pub fn unmount(&self) -> Result<(), MountError> {
        let shared = &self.0;
        let Some(mut session) = lock(&shared.session).take() else {
            return Ok(());
        };
        shared.core.end();
        let mut result = Ok(());
        if shared.over.wait(Some(Duration::ZERO)).is_none() && session.unmount().is_err() {
            result = mountpoint::detach(&shared.path).map_err(MountError::System);
        }
        shared.core.notices.end();
        // The kernel lets go at once unless somebody still has a file open.
        let _ = shared.over.wait(Some(Duration::from_secs(1)));
        if let Some(copies) = &shared.core.copies {
            copies.store().close();
        }
        result
    }
}

impl Over {
    fn set(&self, result: io::Result<()>) {
        *lock(&self.result) = Some(result);
        self.told.notify_all();
    }

    /// `None` if it is not over within `time`.
    fn wait(&self, time: Option<Duration>) -> Option<io::Result<()>> {
        let waiting = |result: &mut Option<io::Result<()>>| result.is_none();
        let time = time.unwrap_or(Duration::MAX);
        let waited = self.told.wait_timeout_while(lock(&self.result), time, waiting);
        let result = waited.unwrap_or_else(PoisonError::into_inner).0;
        result.as_ref().map(|result| match result {
            Ok(()) => Ok(()),
            Err(error) => Err(error.kind().into()),
        })
    }
}

fn config(options: &MountOptions) -> Config {
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName(mountpoint::NAME.into()),
        MountOption::Subtype(mountpoint::NAME.into()),
        MountOption::NoSuid,
        MountOption::NoDev,
        MountOption::NoAtime,
    ];
    config.mount_options.extend(match options.writable {
        // Writes may be longer than reads, which would go by them otherwise.
        true => vec![
            MountOption::RW,
            MountOption::CUSTOM(format!("max_read={}", stream::SEGMENT)),
        ],
        false => vec![MountOption::RO],
    });
    if options.allow_other {
        config.mount_options.push(MountOption::DefaultPermissions);
        config.acl = SessionACL::All;
    }
    config.n_threads = Some(options.threads.clamp(1, 16));
    config.clone_fd = true;
    config
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), MountError> {
    let thread = std::thread::Builder::new().name(name.into()).spawn(work);
    thread.map(drop).map_err(MountError::System)
}

/// Looks after those who wait, until the mount is over.
fn watch(core: &Weak<Core>, over: &Over) {
    let mut pause = waiters::PATIENCE;
    while over.wait(Some(pause)).is_none() {
        let Some(core) = core.upgrade() else { return };
        let ended = core.has_ended();
        pause = waiters::PATIENCE * 3;
        if core.files.is_waiting() || core.calls.is_waiting() {
            core.files.give_up(ended);
            core.calls.give_up(ended);
            pause = waiters::PATIENCE;
        }
    }
}

/// What a program that called the kernel is told.
fn errno(error: TreeError) -> Errno {
    match error {
        TreeError::NotFound => Errno::ENOENT,
        TreeError::NotDirectory => Errno::ENOTDIR,
        TreeError::NotFile => Errno::EISDIR,
        TreeError::NotLink | TreeError::Invalid(_) => Errno::EINVAL,
        TreeError::Denied => Errno::EACCES,
        TreeError::Stale => Errno::ESTALE,
        TreeError::Limit => Errno::ENFILE,
        TreeError::Timeout => Errno::ETIMEDOUT,
        TreeError::Cancelled => Errno::EINTR,
        TreeError::Failed | TreeError::Lost | TreeError::Protocol(_) => Errno::EIO,
        TreeError::ReadOnly => Errno::EROFS,
        TreeError::Exists => Errno::EEXIST,
        TreeError::NotEmpty => Errno::ENOTEMPTY,
        TreeError::Full => Errno::ENOSPC,
        TreeError::TooBig => Errno::EFBIG,
        TreeError::CrossDevice => Errno::EXDEV,
        TreeError::Locked => Errno::EAGAIN,
        TreeError::Refused => Errno::EPERM,
        TreeError::Unsupported => Errno::EOPNOTSUPP,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_other_end_is_told_no_paths_of_this_machine() {
        let path = || PathBuf::from("/home/ann/secret");
        let error = io::ErrorKind::PermissionDenied.into();
        for error in [
            MountError::NotEmpty(path()),
            MountError::Mountpoint { path: path(), error },
        ] {
            let error = sealway_drop::Error::from(error);
            assert!(error.to_string().contains("secret"), "{error}");
            let told = error.for_peer();
            assert!(!told.contains("secret") && told.starts_with("something"), "{told}");
        }
    }
}
