//! Files through the gRPC service, for comparing it with the records of [`crate::send`]: one end serves what it sends, the other
//! pulls it with `StreamFile`. Regular files only, no resuming.

use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream as TokioStream;
use tokio::runtime::Runtime;

use super::control::{Talk, talking};
use super::stream::SealedStream;
use super::{GrpcTree, ServeOptions, serve};
use crate::Error;
use crate::cancel::{Cancel, Watch};
use crate::dest::{self, Admission, Destination, Placed};
use crate::entry::{self, Entry};
use crate::link::{Connected, DataConnections, GATHER};
use crate::local::{LocalOptions, LocalTree};
use crate::names::{RelPath, Rules};
use crate::progress::Progress;
use crate::receive::{Consent, LISTED_NAMES, Offered};
use crate::send::Summary;
use crate::tree::{
    Attr, Call, EventSink, Kind, Opened, Page, ReadDone, ReadRequest, RemoteTree, Subscription, TreeError, TreePath,
};
use crate::wire::control::{Done, Role};
use crate::wire::kind;

/// How long one call may take.
const CALL: Duration = Duration::from_secs(30);

/// A connection that one end serves on.
pub enum Way {
    /// Sealed: the first data connection of a session.
    Sealed(Box<Connected>),
    /// Not sealed at all: what remains is the service by itself.
    Plain(TcpStream),
}

/// One file of a folder.
struct Only {
    folder: LocalTree,
    name: Vec<u8>,
}

impl Only {
    fn check(&self, path: &TreePath) -> Result<(), TreeError> {
        let mut components = path.components();
        match (components.next(), components.next()) {
            (None, _) => Ok(()),
            (Some(first), None) if first == self.name => Ok(()),
            _ => Err(TreeError::NotFound),
        }
    }
}

impl RemoteTree for Only {
    fn attr(&self, path: &TreePath, call: &Call) -> Result<Attr, TreeError> {
        self.check(path)?;
        self.folder.attr(path, call)
    }

    fn list(&self, path: &TreePath, cursor: u64, limit: usize, call: &Call) -> Result<Page, TreeError> {
        self.check(path)?;
        let mut page = self.folder.list(path, cursor, limit, call)?;
        page.entries.retain(|entry| entry.name == self.name);
        Ok(page)
    }

    fn read_link(&self, path: &TreePath, call: &Call) -> Result<Vec<u8>, TreeError> {
        self.check(path)?;
        self.folder.read_link(path, call)
    }

    fn open(&self, path: &TreePath, call: &Call) -> Result<Opened, TreeError> {
        self.check(path)?;
        self.folder.open(path, call)
    }

    fn submit(&self, request: ReadRequest, done: ReadDone) {
        self.folder.submit(request, done);
    }

    fn close(&self, handle: u64) {
        self.folder.close(handle);
    }

    fn subscribe(&self, _: EventSink) -> Result<Subscription, TreeError> {
        Ok(Subscription::new(()))
    }
}

/// A connection that serves, and what keeps it under its switch.
type Served<S> = (S, Arc<Watch>);

/// The first data connection of a session. For use inside a runtime.
fn tunnel(data: DataConnections, cancel: &Cancel) -> Result<Served<SealedStream<TokioStream>>, Error> {
    let connections = data.open_only(&[1], cancel);
    let until = Instant::now() + GATHER;
    let connection = connections
        .next_until(Some(until), &|| cancel.is_set())
        .ok_or(Error::Protocol("a connection did not come up"))??;
    let (stream, send, recv, _, watch) = connection.into_parts();
    let stream = SealedStream::new(of_tokio(stream)?, send, recv, kind::TUNNEL, 0);
    Ok((stream, watch))
}

/// A connection that is not sealed. For use inside a runtime.
fn plain(stream: TcpStream, cancel: &Cancel) -> Result<Served<TokioStream>, Error> {
    let watch = Arc::new(cancel.watch(&stream));
    Ok((of_tokio(stream)?, watch))
}

fn of_tokio(stream: TcpStream) -> Result<TokioStream, Error> {
    let made = stream
        .set_nonblocking(true)
        .and_then(|()| stream.set_nodelay(true))
        .and_then(|()| TokioStream::from_std(stream));
    made.map_err(Error::network("opening a connection"))
}

fn runtime() -> Result<Runtime, Error> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(Error::network("starting threads"))
}

/// What the other end is told of a connection that broke may still come; of a tree that is gone nothing more would.
fn of_tree(error: TreeError) -> Error {
    match error {
        TreeError::Lost => Error::network("receiving")(std::io::ErrorKind::UnexpectedEof.into()),
        error => Error::Tree(error),
    }
}

/// Serves one file until the other end is done with it.
///
/// # Errors
/// [`Error::Usage`] if it is no regular file; [`Error::Network`] if the connection breaks; why the other end ended; [`Error::Cancelled`].
pub fn send(path: PathBuf, way: Way, cancel: &Cancel) -> Result<(), Error> {
    let usage = |text: &str| Error::Usage(format!("{}: {text}", path.display()));
    let full = std::path::absolute(&path).map_err(|error| usage(&error.to_string()))?;
    let (Some(folder), Some(name)) = (full.parent(), full.file_name()) else {
        return Err(usage("only single files go through gRPC"));
    };
    if !std::fs::symlink_metadata(&full).is_ok_and(|meta| meta.is_file()) {
        return Err(usage("only regular files go through gRPC"));
    }
    let folder = LocalTree::open(folder, LocalOptions::default()).map_err(|error| usage(&error.to_string()))?;
    let tree = Arc::new(Only {
        folder,
        name: name.as_encoded_bytes().to_vec(),
    });
    let runtime = runtime()?;
    let within = runtime.enter();
    let failed = Error::network("serving");
    let sent = match way {
        Way::Plain(stream) => plain(stream, cancel).and_then(|(stream, _watch)| {
            let served = runtime.block_on(serve(stream, tree, ServeOptions::default()));
            match served {
                Err(_) if cancel.is_set() => Err(Error::Cancelled),
                served => served.map_err(failed),
            }
        }),
        Way::Sealed(connected) => {
            let Connected { peered, data } = *connected;
            talking(peered.connection, Role::Sender, cancel, |talk| {
                let (stream, _watch) = tunnel(data, cancel)?;
                let served = runtime.block_on(serve(stream, tree, ServeOptions::default()));
                // What it said counts, however its end of the other connection ended.
                match talk.answered() {
                    Ok(()) => talk.settle(),
                    Err(error) => served.map_err(failed).and(Err(error)),
                }
            })
        }
    };
    drop(within);
    runtime.shutdown_background();
    sent
}

/// Pulls the files that the other end serves into a folder, if `consent` takes them: those that it was shown, as large as they were
/// shown, and nothing else.
///
/// # Errors
/// As [`crate::receive::receive`].
pub fn receive(
    output: &std::path::Path,
    options: dest::Options,
    way: Way,
    progress: &Progress,
    cancel: &Cancel,
    consent: &dyn Consent,
) -> Result<Summary, Error> {
    let runtime = runtime()?;
    let within = runtime.enter();
    let receiving = Receiving {
        runtime: &runtime,
        destination: Destination::open(output, options)?,
        rules: options.rules,
        progress,
        consent,
    };
    let received = match way {
        Way::Plain(stream) => plain(stream, cancel)
            .and_then(|(stream, _watch)| receiving.run(stream, None))
            .map_err(|error| if cancel.is_set() { Error::Cancelled } else { error }),
        Way::Sealed(connected) => {
            let Connected { peered, data } = *connected;
            talking(peered.connection, Role::Receiver, cancel, |talk| {
                let (stream, _watch) = tunnel(data, cancel)?;
                receiving.run(stream, Some(talk))
            })
        }
    };
    drop(within);
    runtime.shutdown_timeout(Duration::from_secs(2));
    received
}

/// The receiving end.
struct Receiving<'a> {
    runtime: &'a Runtime,
    destination: Destination,
    rules: Rules,
    progress: &'a Progress,
    consent: &'a dyn Consent,
}

impl Receiving<'_> {
    fn run<S>(&self, stream: S, talk: Option<&Talk<'_>>) -> Result<Summary, Error>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let tree = self.runtime.block_on(GrpcTree::connect(stream)).map_err(of_tree)?;
        let files = listed(&tree)?;
        let mut offered = Offered::of_files(files.iter().map(|file| (&*file.name, file.attr.size)), self.rules)?;
        offered.free = self.destination.available().ok();
        if let Err(reason) = self.consent.accept(&offered) {
            // Whoever was asked may have been let go because it is over.
            return Err(match talk.is_some_and(Talk::is_over) {
                true => Error::Cancelled,
                false => Error::SaidNo(reason),
            });
        }
        talk.map_or(Ok(()), Talk::accept)?;
        self.progress.begin(offered.bytes, offered.files);
        let mut transfer = [0; 32];
        getrandom::fill(&mut transfer)
            .map_err(|error| Error::Usage(format!("the system gives no random bytes: {error}")))?;
        let pulling = Pulling {
            runtime: self.runtime,
            tree: &tree,
            staging: self.destination.staging(&transfer)?,
            progress: self.progress,
            consent: self.consent,
        };
        let mut summary = Summary::default();
        for (id, found) in (0..).zip(&files) {
            pulling.pull(id, found, &mut summary)?;
        }
        talk.map_or(Ok(()), Talk::settle)?;
        if let Err(error) = pulling.staging.conclude() {
            let Some(talk) = talk else { return Err(error.into()) };
            talk.fail(error.into());
            return Err(Error::Cancelled);
        }
        if let Some(talk) = talk {
            talk.done(Done {
                placed: summary.placed,
                failed: summary.failed,
                notes: summary.notes.clone(),
            });
        }
        Ok(summary)
    }
}

/// The files right in the folder that is served.
fn listed(tree: &GrpcTree) -> Result<Vec<crate::tree::Entry>, Error> {
    let (mut files, mut cursor, mut pages) = (Vec::new(), Some(0), 0);
    while let Some(at) = cursor {
        let page = tree.list(&TreePath::root(), at, LISTED_NAMES, &Call::within(CALL));
        let page = page.map_err(of_tree)?;
        files.extend(page.entries.into_iter().filter(|found| found.attr.kind == Kind::File));
        cursor = page.next;
        pages += 1;
        if files.len() > LISTED_NAMES || pages > LISTED_NAMES {
            return Err(Error::Protocol("more files than can be shown"));
        }
    }
    Ok(files)
}

struct Pulling<'a> {
    runtime: &'a Runtime,
    tree: &'a GrpcTree,
    staging: dest::Staging,
    progress: &'a Progress,
    consent: &'a dyn Consent,
}

impl Pulling<'_> {
    fn pull(&self, id: u32, found: &crate::tree::Entry, summary: &mut Summary) -> Result<(), Error> {
        let path = RelPath::new([found.name.as_slice()], Rules::local())
            .map_err(|_| Error::Protocol("a name that no file has"))?;
        let mtime = entry::Time {
            seconds: found.attr.mtime.seconds,
            nanoseconds: found.attr.mtime.nanoseconds,
        };
        let entry = Entry {
            path,
            kind: entry::Kind::File {
                size: found.attr.size,
                sparse: false,
            },
            mode: found.attr.mode & 0o777,
            mtime,
        };
        let mut admission = self.staging.admit(id, &entry)?;
        if let Admission::Ask { existing } = &admission {
            let answer = self.progress.asking(|| self.consent.conflict(&entry.path, existing));
            admission = self.staging.answer(id, &entry, answer)?;
        }
        let placed = match admission {
            Admission::Fetch { .. } => self.fetch(id, &entry, &found.name)?,
            Admission::Skipped(skip) => Placed::Skipped(skip),
            _ => {
                self.progress.same(found.attr.size);
                summary.placed += 1;
                return Ok(());
            }
        };
        match placed {
            Placed::Skipped(skip) => {
                self.progress.file_failed();
                summary.failed += 1;
                summary.notes.push(format!("{}: {skip}", entry.path));
                return Ok(());
            }
            Placed::Renamed(name) => {
                summary.renamed.count += 1;
                summary.renamed.first.push((entry.path, name));
            }
            Placed::Named => {}
        }
        self.progress.file_done();
        summary.placed += 1;
        Ok(())
    }

    fn fetch(&self, id: u32, entry: &Entry, name: &[u8]) -> Result<Placed, Error> {
        let file = self.staging.open_file(id, entry)?;
        let at = TreePath::root().join(name).map_err(Error::Tree)?;
        let (mut offset, mut failed) = (0, None);
        let taken = self.runtime.block_on(
            self.tree
                .stream_file(&at, 0, |piece| match file.write_at(offset, &piece) {
                    Ok(_) => {
                        offset += piece.len() as u64;
                        self.progress.moved(piece.len() as u64);
                        Ok(())
                    }
                    Err(error) => {
                        failed = Some(error);
                        Err(std::io::ErrorKind::Other.into())
                    }
                }),
        );
        if let Some(error) = failed {
            return Err(error.into());
        }
        taken.map_err(of_tree)?;
        Ok(file.finish(entry.mode, entry.mtime)?)
    }
}
