//! Folders shown to the other end, and its folder mounted here; both at once if wanted.
//!
//! The first connection of the session says who shares and who mounts, and ends the sharing when it ends. Each folder that is
//! shown has a data connection of its own, on which it is a gRPC service, and one for what its files hold
//! ([`crate::bulk`]): numbers 1 and 3 are served by the responder of the session, 2 and 4 by the initiator.

use std::collections::BTreeMap;
use std::net::{Shutdown, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use sealway_session::handshake::Role as End;

use crate::bulk::{self, BulkTree};
use crate::cancel::Cancel;
use crate::fuse::{CopiesBy, Mount, MountOptions};
use crate::grpc::stream::SealedStream;
use crate::grpc::{GrpcTree, Handles, ServeOptions, serve_with};
use crate::link::{Connected, Connection, Connections, Reader, Writer};
use crate::local::{LocalOptions, LocalTree};
use crate::tree::RemoteTree;
use crate::wire::control::{self, Hello, Role};
use crate::wire::kind;
use crate::wire::talk::{Pulse, greet, hear};
use crate::{Error, lock};

/// What this end shows and what it mounts; at least one of them.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The folder that the other end may mount.
    pub share: Option<PathBuf>,
    /// Where the folder of the other end is mounted.
    pub mount: Option<PathBuf>,
    /// How it is mounted.
    pub mounting: MountOptions,
}

/// Data connections on which the folder of an end of the session is served: its service, and what its files hold.
fn indexes(server: End) -> (u32, u32) {
    match server {
        End::Responder => (1, 3),
        End::Initiator => (2, 4),
    }
}

/// What is told of a sharing that stands.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Ready {
    /// Who reads the local copies of the mount, if any are kept.
    pub copies: Option<CopiesBy>,
}

/// Shares and mounts until the other end is done, the mount is taken away, or `cancel` says so. `ready` is told once what
/// was asked for stands. Local copies of the mount are kept under the key of the other end, if it has proved one.
///
/// # Errors
/// [`Error::Usage`] if the ends do not fit each other or a folder cannot be used, [`Error::Mount`], [`Error::Network`] if the
/// connection broke.
pub fn share(options: &Options, connected: Connected, cancel: &Cancel, ready: &dyn Fn(Ready)) -> Result<(), Error> {
    let Connected { peered, data } = connected;
    let (mut reader, mut writer) = (peered.connection.reader, peered.connection.writer);
    let here = peered.session.role();
    let there = match here {
        End::Initiator => End::Responder,
        End::Responder => End::Initiator,
    };
    // Opened before the other end is told of it.
    let local: Option<Arc<dyn RemoteTree>> = match &options.share {
        None => None,
        Some(path) => {
            let tree = LocalTree::open(path, LocalOptions::default()).map_err(|source| Error::Storage {
                path: path.display().to_string(),
                doing: "opening what is shared",
                source,
            })?;
            Some(Arc::new(tree))
        }
    };
    let theirs = meet(options, &mut reader, &mut writer)?;
    let serves = options.share.is_some() && theirs.mounts;
    let mounts = options.mount.is_some() && theirs.shares;
    let (ours, others) = (indexes(here), indexes(there));
    let used =
        |of: bool, (service, content): (u32, u32)| [of.then_some(service), (of && theirs.bulk).then_some(content)];
    let wanted: Vec<u32> = [used(serves, ours), used(mounts, others)]
        .into_iter()
        .flatten()
        .flatten()
        .collect();
    let connections = data.open_only(&wanted, cancel);
    let mut came = collect(&connections, &wanted, cancel)?;
    let missing = || Error::Protocol("a connection did not come up");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .thread_name("sealway-share")
        .enable_all()
        .build()
        .map_err(Error::network("starting threads"))?;
    let _inside = runtime.enter();
    let mut served = HangUp(None);
    if let (true, Some(tree)) = (serves, local) {
        let stream = sealed(came.remove(&ours.0).ok_or_else(missing)?)?;
        let handles: Arc<Handles> = Arc::default();
        if let Some(connection) = came.remove(&ours.1) {
            served.0 = Some(connection.stream()?);
            serve_content(connection, tree.clone(), handles.clone())?;
        }
        runtime.spawn(async move {
            if let Err(error) = serve_with(stream, tree, ServeOptions::default(), handles).await {
                tracing::debug!(%error, "the service of the shared folder ended");
            }
        });
    }
    let mut mounted = None;
    if let (true, Some(path)) = (mounts, &options.mount) {
        let stream = sealed(came.remove(&others.0).ok_or_else(missing)?)?;
        let tree = runtime.block_on(GrpcTree::connect(stream)).map_err(Error::Tree)?;
        let tree: Arc<dyn RemoteTree> = match came.remove(&others.1) {
            Some(connection) => Arc::new(BulkTree::new(tree, connection)?),
            None => Arc::new(tree),
        };
        let mut mounting = options.mounting.clone();
        if let Some(cache) = &mut mounting.cache {
            cache.peer = peered.peer_key;
        }
        mounted = Some(Mount::start(tree, path, mounting).map_err(Error::Mount)?);
    }
    ready(Ready {
        copies: mounted.as_ref().and_then(Mount::copies),
    });
    let result = until_over(mounted, reader, writer, cancel);
    runtime.shutdown_background();
    result
}

/// All connections that are wanted, by their numbers.
fn collect(connections: &Connections, wanted: &[u32], cancel: &Cancel) -> Result<BTreeMap<u32, Connection>, Error> {
    let mut came = BTreeMap::new();
    while came.len() < wanted.len() {
        let connection = match connections.next() {
            Some(connection) => connection?,
            None if cancel.is_set() => return Err(Error::Cancelled),
            None => return Err(Error::Protocol("a connection did not come up")),
        };
        let index = connection.index;
        if !wanted.contains(&index) || came.insert(index, connection).is_some() {
            return Err(Error::Protocol("a connection of the other kind"));
        }
    }
    Ok(came)
}

/// A connection that a thread of ours serves, shut down at the end.
struct HangUp(Option<TcpStream>);

impl Drop for HangUp {
    fn drop(&mut self) {
        if let Some(stream) = &self.0 {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

fn serve_content(connection: Connection, tree: Arc<dyn RemoteTree>, handles: Arc<Handles>) -> Result<(), Error> {
    let serving = move || {
        if let Err(error) = bulk::serve(connection, &*tree, &handles) {
            tracing::debug!(%error, "serving content ended");
        }
    };
    let thread = std::thread::Builder::new().name("bulk-serve".into()).spawn(serving);
    thread.map(drop).map_err(Error::network("starting threads"))
}

/// What the other end does.
struct Theirs {
    shares: bool,
    mounts: bool,
    bulk: bool,
}

fn meet(options: &Options, reader: &mut Reader, writer: &mut Writer) -> Result<Theirs, Error> {
    let (shares, mounts) = (options.share.is_some(), options.mount.is_some());
    let ours = Hello {
        version: control::VERSION,
        role: Role::Share as i32,
        shares,
        mounts,
        bulk: true,
    };
    let hello = greet(writer, reader, ours)?;
    if hello.role != Role::Share as i32 {
        return Err(Error::Usage(
            "the other end sends or receives files: share and mount go together".into(),
        ));
    }
    if mounts && !hello.shares {
        return Err(Error::Usage(
            "the other end shares nothing that could be mounted".into(),
        ));
    }
    if !mounts && !hello.mounts {
        return Err(Error::Usage("the other end does not mount what is shared".into()));
    }
    Ok(Theirs {
        shares: hello.shares,
        mounts: hello.mounts,
        bulk: hello.bulk,
    })
}

/// For use inside a runtime.
fn sealed(connection: Connection) -> Result<SealedStream<tokio::net::TcpStream>, Error> {
    let doing = "opening a connection";
    let (stream, send, recv, _, watch) = connection.into_parts();
    stream.set_nonblocking(true).map_err(Error::network(doing))?;
    let stream = tokio::net::TcpStream::from_std(stream).map_err(Error::network(doing))?;
    // The runtime ends with the sharing, and its streams with it.
    drop(watch);
    Ok(SealedStream::new(stream, send, recv, kind::TUNNEL, 0))
}

/// Waits for the first of: the other end is done, the mount was taken away, this end was told to stop.
fn until_over(mounted: Option<Mount>, mut reader: Reader, writer: Writer, cancel: &Cancel) -> Result<(), Error> {
    let writer = Mutex::new(writer);
    let pulse = Pulse::default();
    let unmounter = mounted.as_ref().map(Mount::unmounter);
    let heard: Mutex<Option<Error>> = Mutex::new(None);
    let result = std::thread::scope(|scope| {
        scope.spawn(|| pulse.beat(&writer));
        let listening = scope.spawn(|| {
            let result = hear(&mut reader);
            if let (Err(error), false) = (result, cancel.is_set()) {
                *lock(&heard) = Some(error);
            }
            if let Some(unmounter) = &unmounter
                && let Err(error) = unmounter.unmount()
            {
                tracing::debug!(%error, "unmounting");
            }
        });
        let waited = match &mounted {
            Some(mount) => mount.wait().map_err(Error::Mount),
            None => Ok(()),
        };
        if mounted.is_some() {
            // Taken away at this end: the other one is told, and answers by its own end.
            let _ = lock(&writer).close();
        }
        let _ = listening.join();
        pulse.stop();
        waited
    });
    let _ = lock(&writer).close();
    match heard.into_inner().unwrap_or_default() {
        Some(error) => Err(error),
        None => result,
    }
}
