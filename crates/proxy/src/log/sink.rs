//! Where the lines of a log go: a bounded queue, and a thread that empties it.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use sealway_v2ray::text;

use super::rotate::{Due, Rotation};

/// Bytes of lines that may wait to be written. What comes beyond is dropped and counted.
const ROOM: usize = 1 << 20;
/// Pause before writing again to something that takes no more and does not block.
const AGAIN: Duration = Duration::from_millis(20);

/// What a log says of lines that were dropped, once they are over.
pub type Lost = Box<dyn Fn(u64) -> Option<String> + Send>;

/// Every log that has a thread.
static ALL: Mutex<Vec<Weak<Shared>>> = Mutex::new(Vec::new());
static STDOUT: Mutex<Option<Sink>> = Mutex::new(None);
static STDERR: Mutex<Option<Sink>> = Mutex::new(None);
/// Two logs may be one file.
static ROTATING: Mutex<()> = Mutex::new(());

fn all() -> Vec<Arc<Shared>> {
    let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    all.retain(|one| one.strong_count() > 0);
    all.iter().filter_map(Weak::upgrade).collect()
}

/// Asks every log with a path to open its file again: after a rotation has moved the old one away, a new one is made.
///
/// Returns at once; each log does it before it writes its next line. One that cannot be opened goes on in its old file and
/// says so.
pub fn reopen() {
    for shared in all() {
        shared.state().reopen = true;
        shared.more.notify_one();
    }
}

/// Waits until every log has been written, but no longer than `most`. True if all were.
pub fn flush(most: Duration) -> bool {
    let until = Instant::now() + most;
    all().iter().all(|shared| shared.flush(until))
}

/// A log. Clones write to the same.
///
/// Lines are written whole, with control characters written out. When the last clone is dropped, its thread writes what
/// still waits and ends; nobody waits for that: see [`Sink::flush`].
#[derive(Clone, Debug)]
pub struct Sink(Arc<Handle>);

#[derive(Debug)]
struct Handle(Arc<Shared>);

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.state().closed = true;
        self.0.more.notify_one();
    }
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// Something waits to be written or done.
    more: Condvar,
    /// Everything has been written.
    written: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: Vec<u8>,
    lines: u64,
    lost: u64,
    reopen: bool,
    writing: bool,
    closed: bool,
}

/// What the thread writes to.
enum Out {
    Open(File),
    /// A pipe with a name, which may have no reader yet: opening it is what the thread does first.
    Later,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn flush(&self, until: Instant) -> bool {
        let mut state = self.state();
        while state.writing || state.reopen || state.lost > 0 || !state.waiting.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            state = match self.written.wait_timeout(state, left) {
                Ok((state, _)) => state,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
        true
    }
}

impl Sink {
    /// The end of a file, which is made if it is not there, for its owner alone. `lost` makes the line that says how many
    /// were dropped, or says it elsewhere.
    ///
    /// # Errors
    /// The file cannot be opened, or there can be no thread.
    pub fn file(path: &Path, lost: Lost) -> io::Result<Sink> {
        Sink::rotated(path, None, lost)
    }

    /// The same, with files that are begun anew when they have become large. Where that fails, lines are dropped until it
    /// succeeds: the disk belongs to others as well.
    ///
    /// # Errors
    /// As [`Sink::file`].
    pub fn rotated(path: &Path, rotation: Option<Rotation>, lost: Lost) -> io::Result<Sink> {
        let pipe = std::fs::metadata(path).is_ok_and(|meta| meta.file_type().is_fifo());
        let out = if pipe { Out::Later } else { Out::Open(open(path)?) };
        Sink::start(out, Some(path.to_owned()), rotation, lost)
    }

    /// Standard output. All who ask for it share one, so that lines stay whole.
    ///
    /// # Errors
    /// It is closed, or there can be no thread.
    pub fn stdout() -> io::Result<Sink> {
        Sink::shared(&STDOUT, io::stdout().as_fd())
    }

    /// Standard error, shared in the same way.
    ///
    /// # Errors
    /// It is closed, or there can be no thread.
    pub fn stderr() -> io::Result<Sink> {
        Sink::shared(&STDERR, io::stderr().as_fd())
    }

    fn shared(of_all: &Mutex<Option<Sink>>, stream: BorrowedFd<'_>) -> io::Result<Sink> {
        let mut of_all = of_all.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sink) = &*of_all {
            return Ok(sink.clone());
        }
        let file = File::from(stream.try_clone_to_owned()?);
        let sink = Sink::start(
            Out::Open(file),
            None,
            None,
            Box::new(|lines| Some(super::dropped(lines))),
        )?;
        Ok(of_all.insert(sink).clone())
    }

    fn start(out: Out, path: Option<PathBuf>, rotation: Option<Rotation>, lost: Lost) -> io::Result<Sink> {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            more: Condvar::new(),
            written: Condvar::new(),
        });
        let writer = Writer {
            shared: Arc::clone(&shared),
            path,
            rotation,
            lost,
            failing: false,
        };
        std::thread::Builder::new()
            .name("log".into())
            .spawn(move || writer.run(out))?;
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|one| one.strong_count() > 0);
        all.push(Arc::downgrade(&shared));
        Ok(Sink(Arc::new(Handle(shared))))
    }

    /// Puts a line into the queue, without its end. Never waits; a line for which there is no room is counted.
    pub fn line(&self, line: &str) {
        let line = text::escape(line);
        let shared = &self.0.0;
        let mut state = shared.state();
        if state.waiting.len() + line.len() >= ROOM {
            state.lost += 1;
            return;
        }
        let idle = state.waiting.is_empty();
        state.waiting.extend_from_slice(line.as_bytes());
        state.waiting.push(b'\n');
        state.lines += 1;
        drop(state);
        if idle {
            shared.more.notify_one();
        }
    }

    /// How many lines were dropped and not yet said to be.
    pub fn lost(&self) -> u64 {
        self.0.0.state().lost
    }

    /// Waits until everything has been written, but no longer than `most`. True if it was.
    pub fn flush(&self, most: Duration) -> bool {
        self.0.0.flush(Instant::now() + most)
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

struct Writer {
    shared: Arc<Shared>,
    path: Option<PathBuf>,
    rotation: Option<Rotation>,
    lost: Lost,
    failing: bool,
}

impl Writer {
    fn run(mut self, out: Out) {
        let mut out = match (out, &self.path) {
            (Out::Open(file), _) => Some(file),
            (Out::Later, Some(path)) => open(path).ok(),
            (Out::Later, None) => None,
        };
        let mut batch = Vec::new();
        loop {
            let (lines, lost, again) = {
                let mut state = self.shared.state();
                state.writing = false;
                loop {
                    if !state.waiting.is_empty() || state.reopen {
                        break;
                    }
                    // Dropped lines are said when there is room for others, or never if this is where it hangs.
                    if state.lost > 0 && !self.failing {
                        break;
                    }
                    self.shared.written.notify_all();
                    if state.closed {
                        return;
                    }
                    state = self.shared.more.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
                state.writing = true;
                std::mem::swap(&mut state.waiting, &mut batch);
                let taken = (
                    std::mem::take(&mut state.lines),
                    std::mem::take(&mut state.lost),
                    std::mem::take(&mut state.reopen),
                );
                // Kept for the next batch, but not for ever at its largest.
                state.waiting.shrink_to(ROOM / 16);
                taken
            };
            if again {
                self.open_again(&mut out);
            }
            let wrote = self.make_room(&mut out, batch.len()).and_then(|()| match &mut out {
                Some(file) => self.write(file, &batch, lost),
                None => Err(ErrorKind::NotFound.into()),
            });
            batch.clear();
            match wrote {
                Ok(()) => self.failing = false,
                Err(error) => {
                    self.shared.state().lost += lines + lost;
                    if !self.failing {
                        self.failing = true;
                        self.complain("cannot be written", &error);
                    }
                }
            }
        }
    }

    /// Begins the file anew if it would become too large. No batch is larger than the smallest file.
    fn make_room(&self, out: &mut Option<File>, more: usize) -> io::Result<()> {
        let (Some(rotation), Some(path), Some(file)) = (self.rotation, &self.path, out.as_ref()) else {
            return Ok(());
        };
        if rotation.due(path, file, more) == Due::Nothing {
            return Ok(());
        }
        let _alone = ROTATING.lock().unwrap_or_else(PoisonError::into_inner);
        // Another log may just have done it.
        match rotation.due(path, file, more) {
            Due::Nothing => return Ok(()),
            Due::Open => {}
            // A link stays where it is, and leads to the new file.
            Due::Rotate => rotation.make_room(std::fs::canonicalize(path).as_deref().unwrap_or(path))?,
        }
        *out = Some(open(path)?);
        Ok(())
    }

    fn write(&self, file: &mut File, batch: &[u8], lost: u64) -> io::Result<()> {
        write_all(file, batch)?;
        if lost > 0
            && let Some(line) = (self.lost)(lost)
        {
            write_all(file, text::escape(&line).as_bytes())?;
            write_all(file, b"\n")?;
        }
        Ok(())
    }

    fn open_again(&mut self, out: &mut Option<File>) {
        let Some(path) = &self.path else { return };
        match open(path) {
            Ok(file) => *out = Some(file),
            Err(error) => self.complain("cannot be opened again, and goes on in the old file", &error),
        }
    }

    /// In the error log, which may be this one: then it goes nowhere if nothing does.
    fn complain(&self, what: &str, error: &io::Error) {
        let path = self
            .path
            .as_ref()
            .map_or("standard output".into(), |path| path.to_string_lossy());
        tracing::error!("the log {path} {what}: {error}");
    }
}

fn write_all(file: &mut File, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(n) => bytes = &bytes[n..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // Standard output that another program made so.
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(AGAIN),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
