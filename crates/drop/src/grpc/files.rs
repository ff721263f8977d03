//! Files through the gRPC service, for comparing it with the records of [`crate::send`]: one end serves what it sends, the other
//! pulls it with `StreamFile`. Regular files only, no resuming.

use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::stream::SealedStream;
use super::{GrpcTree, ServeOptions, serve};
use crate::cancel::Cancel;
use crate::dest::{self, Admission, Destination, Placed};
use crate::entry::{self, Entry};
use crate::link::{Connected, GATHER};
use crate::local::{LocalOptions, LocalTree};
use crate::names::{Escaped, RelPath, Rules};
use crate::progress::Progress;
use crate::receive::{Consent, LISTED_NAMES, Offered};
use crate::send::Summary;
use crate::tree::{
    Attr, Call, EventSink, Kind, Opened, Page, ReadDone, ReadRequest, RemoteTree, Subscription, TreeError, TreePath,
};
use crate::wire::control::{Accept, Body, Decline, Done, Hello, Role, VERSION};
use crate::wire::kind;
use crate::wire::talk::{greet, hear, say};
use crate::{Error, link};

/// How long the other end may take to say whether it took what it was shown, once it has gone.
const FAREWELL: Duration = Duration::from_secs(5);

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

enum Stream {
    Sealed(Box<SealedStream<tokio::net::TcpStream>>),
    Plain(tokio::net::TcpStream),
}

/// For use inside a runtime. What is returned beside the stream must live as long.
fn stream(way: Way, role: Role, cancel: &Cancel) -> Result<(Stream, Option<link::Connection>), Error> {
    let doing = "opening a connection";
    let (stream, halves, control) = match way {
        Way::Plain(stream) => (stream, None, None),
        Way::Sealed(connected) => {
            let Connected { peered, data } = *connected;
            let mut control = peered.connection;
            control.watch(cancel);
            // Somebody at the other end may be asked before it goes on, so until then there is no limit.
            meet(&mut control, role).map_err(|error| if cancel.is_set() { Error::Cancelled } else { error })?;
            let connections = data.open_only(&[1], cancel);
            let until = Instant::now() + GATHER;
            let connection = connections
                .next_until(Some(until), &|| cancel.is_set())
                .ok_or(Error::Protocol("a connection did not come up"))??;
            let (stream, send, recv, _, _) = connection.into_parts();
            (stream, Some((send, recv)), Some(control))
        }
    };
    stream.set_nonblocking(true).map_err(Error::network(doing))?;
    stream.set_nodelay(true).map_err(Error::network(doing))?;
    let stream = tokio::net::TcpStream::from_std(stream).map_err(Error::network(doing))?;
    let stream = match halves {
        Some((send, recv)) => Stream::Sealed(Box::new(SealedStream::new(stream, send, recv, kind::TUNNEL, 0))),
        None => Stream::Plain(stream),
    };
    Ok((stream, control))
}

/// Each end says what it does.
fn meet(control: &mut link::Connection, role: Role) -> Result<(), Error> {
    let ours = Hello {
        version: VERSION,
        role: role as i32,
        ..Hello::default()
    };
    let theirs = greet(&mut control.writer, &mut control.reader, ours)?.role;
    let fits = match role {
        Role::Sender => theirs == Role::Receiver as i32,
        _ => theirs == Role::Sender as i32,
    };
    match fits {
        true => Ok(()),
        false => Err(Error::Usage(
            "the ends do not fit: one end sends, the other receives".into(),
        )),
    }
}

fn runtime() -> Result<tokio::runtime::Runtime, Error> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(Error::network("starting threads"))
}

/// Serves one file until the other end is done with it.
///
/// # Errors
/// [`Error::Usage`] if it is no regular file; [`Error::Network`] if the connection breaks.
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
    let served = runtime.block_on(async {
        let (stream, control) = stream(way, Role::Sender, cancel)?;
        let served = match stream {
            Stream::Sealed(stream) => serve(*stream, tree, ServeOptions::default()).await,
            Stream::Plain(stream) => serve(stream, tree, ServeOptions::default()).await,
        };
        let served = served.map_err(Error::network("serving"));
        match (control, served) {
            (None, served) => served,
            // What it said counts, however its end of the other connection ended.
            (Some(control), served) => match answered(control) {
                Err(error) if !matches!(error, Error::Declined(_)) => served.and(Err(error)),
                said => said,
            },
        }
    });
    runtime.shutdown_background();
    served
}

/// What the other end said of what it was shown, now that it has gone.
fn answered(mut control: link::Connection) -> Result<(), Error> {
    let _ = control.reader.wait_at_most(Some(FAREWELL));
    loop {
        match hear(&mut control.reader)? {
            Some(Body::Accept(_)) => {}
            Some(Body::Done(_)) => return Ok(()),
            Some(Body::Decline(decline)) => {
                return Err(Error::Declined(Escaped(decline.reason.as_bytes()).to_string()));
            }
            Some(_) => return Err(Error::Protocol("a message out of place")),
            None => return Err(Error::Remote("it closed the connection".into())),
        }
    }
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
    let destination = Destination::open(output, options)?;
    let runtime = runtime()?;
    let (tree, mut control) = runtime.block_on(async {
        let (stream, control) = stream(way, Role::Receiver, cancel)?;
        let tree = match stream {
            Stream::Sealed(stream) => GrpcTree::connect(*stream).await,
            Stream::Plain(stream) => GrpcTree::connect(stream).await,
        };
        Ok::<_, Error>((tree.map_err(Error::Tree)?, control))
    })?;
    let files = listed(&tree)?;
    let mut offered = Offered::of_files(files.iter().map(|file| (&*file.name, file.attr.size)), options.rules)?;
    offered.free = destination.available().ok();
    let taken = consent.accept(&offered);
    if let Some(control) = &mut control {
        let answer = match &taken {
            Ok(()) => Body::Accept(Accept::default()),
            Err(reason) => Body::Decline(Decline { reason: reason.clone() }),
        };
        say(&mut control.writer, answer)?;
    }
    if let Err(reason) = taken {
        drop(tree);
        runtime.shutdown_timeout(Duration::from_secs(2));
        return Err(Error::SaidNo(reason));
    }
    progress.begin(offered.bytes, offered.files);
    let mut transfer = [0; 32];
    getrandom::fill(&mut transfer)
        .map_err(|error| Error::Usage(format!("the system gives no random bytes: {error}")))?;
    let pulling = Pulling {
        runtime: &runtime,
        tree: &tree,
        staging: destination.staging(&transfer)?,
        progress,
        consent,
    };
    let mut summary = Summary::default();
    for (id, found) in (0..).zip(&files) {
        pulling.pull(id, found, &mut summary)?;
    }
    pulling.staging.conclude()?;
    if let Some(control) = &mut control {
        let done = Done {
            placed: summary.placed,
            failed: summary.failed,
            notes: summary.notes.clone(),
        };
        // All is in place: what becomes of the connection from here on changes nothing.
        let _ = say(&mut control.writer, Body::Done(done));
    }
    drop(tree);
    runtime.shutdown_timeout(Duration::from_secs(2));
    Ok(summary)
}

/// The files right in the folder that is served.
fn listed(tree: &GrpcTree) -> Result<Vec<crate::tree::Entry>, Error> {
    let (mut files, mut cursor, mut pages) = (Vec::new(), Some(0), 0);
    while let Some(at) = cursor {
        let page = tree.list(&TreePath::root(), at, LISTED_NAMES, &Call::within(CALL));
        let page = page.map_err(Error::Tree)?;
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
    runtime: &'a tokio::runtime::Runtime,
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
        taken.map_err(Error::Tree)?;
        Ok(file.finish(entry.mode, entry.mtime)?)
    }
}
