//! Files through the gRPC service, for comparing it with the records of [`crate::send`]: one end serves what it sends, the other
//! pulls it with `StreamFile`. Regular files only, no resuming.

use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::stream::SealedStream;
use super::{GrpcTree, ServeOptions, serve};
use crate::cancel::Cancel;
use crate::dest::{self, Admission, Destination};
use crate::entry::{self, Entry};
use crate::link::{Connected, GATHER};
use crate::local::{LocalOptions, LocalTree};
use crate::names::{RelPath, Rules};
use crate::progress::Progress;
use crate::send::Summary;
use crate::tree::{
    Attr, Call, EventSink, Kind, Opened, Page, ReadDone, ReadRequest, RemoteTree, Subscription, TreeError, TreePath,
};
use crate::wire::control::{Hello, Role, VERSION};
use crate::wire::kind;
use crate::wire::talk::greet;
use crate::{Error, link};

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
        drop(control);
        served.map_err(Error::network("serving"))
    });
    runtime.shutdown_background();
    served
}

/// Pulls every file that the other end serves into a folder.
///
/// # Errors
/// As [`crate::receive::receive`].
pub fn receive(
    output: &std::path::Path,
    options: dest::Options,
    way: Way,
    progress: &Progress,
    cancel: &Cancel,
) -> Result<Summary, Error> {
    let destination = Destination::open(output, options)?;
    let mut transfer = [0; 32];
    getrandom::fill(&mut transfer)
        .map_err(|error| Error::Usage(format!("the system gives no random bytes: {error}")))?;
    let staging = destination.staging(&transfer)?;
    let runtime = runtime()?;
    let (tree, _control) = runtime.block_on(async {
        let (stream, control) = stream(way, Role::Receiver, cancel)?;
        let tree = match stream {
            Stream::Sealed(stream) => GrpcTree::connect(*stream).await,
            Stream::Plain(stream) => GrpcTree::connect(stream).await,
        };
        Ok::<_, Error>((tree.map_err(Error::Tree)?, control))
    })?;
    let mut summary = Summary::default();
    let (mut id, mut cursor) = (0, Some(0));
    while let Some(at) = cursor {
        let page = tree
            .list(&TreePath::root(), at, 100, &Call::within(CALL))
            .map_err(Error::Tree)?;
        for found in page.entries.iter().filter(|found| found.attr.kind == Kind::File) {
            pull(&runtime, &tree, &staging, id, found, progress)?;
            summary.placed += 1;
            id += 1;
        }
        cursor = page.next;
    }
    staging.conclude()?;
    drop(tree);
    runtime.shutdown_timeout(Duration::from_secs(2));
    Ok(summary)
}

fn pull(
    runtime: &tokio::runtime::Runtime,
    tree: &GrpcTree,
    staging: &dest::Staging,
    id: u32,
    found: &crate::tree::Entry,
    progress: &Progress,
) -> Result<(), Error> {
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
    match staging.admit(id, &entry)? {
        Admission::Fetch { .. } => {}
        Admission::Ask { .. } => {
            staging.answer(id, &entry, dest::Answer::Rename)?;
        }
        _ => return Ok(()),
    }
    progress.expect(found.attr.size, 1);
    let file = staging.open_file(id, &entry)?;
    let at = TreePath::root().join(&found.name).map_err(Error::Tree)?;
    let (mut offset, mut failed) = (0, None);
    let taken = runtime.block_on(tree.stream_file(&at, 0, |piece| match file.write_at(offset, &piece) {
        Ok(_) => {
            offset += piece.len() as u64;
            progress.moved(piece.len() as u64);
            Ok(())
        }
        Err(error) => {
            failed = Some(error);
            Err(std::io::ErrorKind::Other.into())
        }
    }));
    if let Some(error) = failed {
        return Err(error.into());
    }
    taken.map_err(Error::Tree)?;
    file.finish(entry.mode, entry.mtime)?;
    progress.file_done();
    Ok(())
}
