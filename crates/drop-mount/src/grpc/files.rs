//! Files through the gRPC service, for comparing it with the records of a transfer: one end serves what it sends, the other
//! pulls it with `StreamFile`. Regular files only, no resuming.

use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream as TokioStream;
use tokio::runtime::Runtime;

use super::control::{Talk, talking};
use super::stream::{SealedStream, of_tokio};
use super::{GrpcTree, ServeOptions, serve};
use crate::local::{LocalOptions, LocalTree};
use crate::tree::{
    Attr, Call, EventSink, Kind, Opened, Page, ReadDone, ReadRequest, RemoteTree, Subscription, TreeError, TreePath,
};
use sealway_drop::Error;
use sealway_drop::cancel::{Cancel, Watch};
use sealway_drop::link::{Connected, DataConnections, GATHER};
use sealway_drop::pull::{Listed, Remote};
use sealway_drop::wire::control::{Done, Role};

/// How long calls of a connection that is not wanted any more may take to end.
const GOODBYE: Duration = Duration::from_secs(2);

/// How long one call may take.
const CALL: Duration = Duration::from_secs(30);

/// A connection that one end serves on.
pub enum Channel {
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
    let connection = connections.next_until(Some(until), &|| cancel.is_set());
    SealedStream::of(connection.ok_or(Error::Protocol("a connection did not come up"))??)
}

/// A connection that is not sealed. For use inside a runtime.
fn plain(stream: TcpStream, cancel: &Cancel) -> Result<Served<TokioStream>, Error> {
    let watch = Arc::new(cancel.watch(&stream));
    Ok((of_tokio(stream)?, watch))
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
        error => error.into(),
    }
}

/// Serves one file until the other end is done with it.
///
/// # Errors
/// [`Error::Usage`] if it is no regular file; [`Error::Network`] if the connection breaks; why the other end ended; [`Error::Cancelled`].
pub fn send(path: PathBuf, channel: Channel, cancel: &Cancel) -> Result<(), Error> {
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
    let sent = match channel {
        Channel::Plain(stream) => plain(stream, cancel).and_then(|(stream, _watch)| {
            let served = runtime.block_on(serve(stream, tree, ServeOptions::default()));
            match served {
                Err(_) if cancel.is_set() => Err(Error::Cancelled),
                served => served.map_err(failed),
            }
        }),
        Channel::Sealed(connected) => {
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

/// Comes to an end that serves files as [`send`] does, and has `work` pull them.
///
/// # Errors
/// [`Error::Usage`] if the ends do not fit; [`Error::Network`] if the connection breaks; why the other end ended; [`Error::Cancelled`];
/// what `work` fails with.
pub fn receive<T>(
    channel: Channel,
    cancel: &Cancel,
    work: impl FnOnce(&dyn Remote) -> Result<T, Error>,
) -> Result<T, Error> {
    let runtime = runtime()?;
    let within = runtime.enter();
    let received = match channel {
        Channel::Plain(stream) => plain(stream, cancel)
            .and_then(|(stream, _watch)| work(&Serving::connect(&runtime, stream, None)?))
            .map_err(|error| if cancel.is_set() { Error::Cancelled } else { error }),
        Channel::Sealed(connected) => {
            let Connected { peered, data } = *connected;
            talking(peered.connection, Role::Receiver, cancel, |talk| {
                let (stream, _watch) = tunnel(data, cancel)?;
                work(&Serving::connect(&runtime, stream, Some(talk))?)
            })
        }
    };
    drop(within);
    runtime.shutdown_timeout(GOODBYE);
    received
}

/// An end that serves files, and the control connection if there is one.
struct Serving<'a> {
    runtime: &'a Runtime,
    tree: GrpcTree,
    talk: Option<&'a Talk<'a>>,
}

impl<'a> Serving<'a> {
    fn connect<S>(runtime: &'a Runtime, stream: S, talk: Option<&'a Talk<'a>>) -> Result<Self, Error>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let tree = runtime.block_on(GrpcTree::connect(stream)).map_err(of_tree)?;
        Ok(Self { runtime, tree, talk })
    }
}

impl Remote for Serving<'_> {
    /// The files right in the folder that is served.
    fn files(&self, most: usize) -> Result<Vec<Listed>, Error> {
        let (mut files, mut cursor, mut pages) = (Vec::new(), Some(0), 0);
        while let Some(at) = cursor {
            let page = self.tree.list(&TreePath::root(), at, most, &Call::within(CALL));
            let page = page.map_err(of_tree)?;
            let found = page.entries.into_iter().filter(|found| found.attr.kind == Kind::File);
            files.extend(found.map(|found| Listed {
                name: found.name,
                size: found.attr.size,
                mode: found.attr.mode & 0o777,
                mtime: (found.attr.mtime.seconds, found.attr.mtime.nanoseconds),
            }));
            cursor = page.next;
            pages += 1;
            if files.len() > most || pages > most {
                return Err(Error::Protocol("more files than can be shown"));
            }
        }
        Ok(files)
    }

    fn accept(&self) -> Result<(), Error> {
        self.talk.map_or(Ok(()), Talk::accept)
    }

    fn refused(&self, reason: String) -> Error {
        // Whoever was asked may have been let go because it is over.
        match self.talk.is_some_and(Talk::is_over) {
            true => Error::Cancelled,
            false => Error::SaidNo(reason),
        }
    }

    fn fetch(&self, name: &[u8], take: &mut dyn FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
        let at = TreePath::root().join(name)?;
        let mut failed = None;
        let taken = self.runtime.block_on(self.tree.stream_file(&at, 0, |piece| {
            take(&piece).map_err(|error| {
                failed = Some(error);
                std::io::ErrorKind::Other.into()
            })
        }));
        match failed {
            Some(error) => Err(error),
            None => taken.map(drop).map_err(of_tree),
        }
    }

    fn settle(&self) -> Result<(), Error> {
        self.talk.map_or(Ok(()), Talk::settle)
    }

    fn failed(&self, error: Error) -> Error {
        let Some(talk) = self.talk else { return error };
        talk.fail(error);
        Error::Cancelled
    }

    fn done(&self, done: Done) {
        if let Some(talk) = self.talk {
            talk.done(done);
        }
    }
}
