//! Folders shown to the other end, and its folder mounted here; both at once if wanted.
//!
//! The first connection of the session says who shares and who mounts, and ends the sharing when it ends: in good order if an end
//! closes it, else with an error. Each folder that is
//! shown has a data connection of its own, on which it is a gRPC service, and one for what its files hold
//! ([`crate::bulk`]): numbers 1 and 3 are served by the responder of the session, 2 and 4 by the initiator.

mod ending;

use std::collections::BTreeMap;
use std::net::{Shutdown, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sealway_session::handshake::Role as End;
use tokio::runtime::Runtime;

use self::ending::Ending;
use crate::bulk::{self, BulkTree};
use crate::cancel::{Cancel, Watch};
use crate::fuse::{CopiesBy, Mount, MountOptions};
use crate::grpc::stream::SealedStream;
use crate::grpc::{GrpcTree, Handles, ServeOptions, serve_with};
use crate::link::{Connected, Connection, Connections, GATHER, Reader, Writer};
use crate::local::{LocalOptions, LocalTree};
use crate::tree::RemoteTree;
use crate::wire::control::{self, Body, Hello, Role};
use crate::wire::kind;
use crate::wire::talk::{BEAT, greet_or_part, hear, say};
use crate::{Error, Fault};

/// How long the other end may take to say that it has heard that this one is done.
const FAREWELL: Duration = Duration::from_secs(5);

/// How long to wait for what the other end has to say when its connections end.
const NOTICE: Duration = Duration::from_secs(1);

/// What this end shows and what it mounts; at least one of them.
#[derive(Clone, Debug)]
pub struct Options {
    /// The folder that the other end may mount.
    pub share: Option<PathBuf>,
    /// Where the folder of the other end is mounted.
    pub mount: Option<PathBuf>,
    /// How it is mounted.
    pub mounting: MountOptions,
    /// How long the further connections of the session may take to come up, [`Duration::MAX`] for ever. Default 30 s.
    pub gather: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            share: None,
            mount: None,
            mounting: MountOptions::default(),
            gather: GATHER,
        }
    }
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
/// An end that is told to stop unmounts and says goodbye, so that the other one ends without an error too. What programs
/// still have open in the mount fails from then on and is not waited for.
///
/// # Errors
/// [`Error::Usage`] if the ends do not fit each other or a folder cannot be used, [`Error::Mount`], [`Error::Network`] if the
/// connection broke or the other end does not bring up the connections that it should, [`Error::Remote`] if it gave up.
pub fn share(options: &Options, connected: Connected, cancel: &Cancel, ready: &dyn Fn(Ready)) -> Result<(), Error> {
    let Connected { peered, data } = connected;
    let (mut control, here) = (peered.connection, peered.session.role());
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
    let (line, wakes) = (control.stream()?, Arc::new(control.stream()?));
    // From here on this end hangs up by itself, when it has said goodbye.
    let woken = cancel.on_cancel(move || drop(wakes.shutdown(Shutdown::Read)));
    control.release();
    let met = meet(options, &mut control.reader, &mut control.writer);
    drop(woken);
    let theirs = match met {
        Ok(Some(theirs)) if !cancel.is_set() => theirs,
        Err(error) if !cancel.is_set() => return Err(error),
        // An end is done before anything stands.
        _ => {
            let _ = control.writer.close();
            return Ok(());
        }
    };
    let plan = Plan {
        options,
        local,
        theirs,
        here,
        peer_key: peered.peer_key,
    };
    let ending: Arc<Ending> = Arc::default();
    let told = ending.clone();
    let _told = cancel.on_cancel(move || told.set(Ok(())));
    let Connection {
        mut reader, mut writer, ..
    } = control;
    std::thread::scope(|scope| {
        let line = HangUp(line);
        let hearing = ending.clone();
        scope.spawn(move || {
            let end = match hear(&mut reader) {
                Ok(None) => Ok(()),
                Ok(Some(_)) => Err(Error::Protocol("a message out of place")),
                Err(error) => Err(error),
            };
            hearing.set_heard(if cancel.is_set() { Ok(()) } else { end });
        });
        let (standing, failed) = match plan.stand(|wanted| data.open_only(wanted, cancel), &ending, cancel) {
            Ok(standing) => (Some(standing), None),
            Err(error) => {
                // Perhaps because the other end is done, or gave up, and is about to say so.
                if error.fault() == Fault::Network {
                    ending.wait(NOTICE);
                }
                (None, Some(error))
            }
        };
        if let Some(standing) = &standing {
            ready(Ready {
                copies: standing.mounted.as_ref().and_then(Mount::copies),
            });
            keep(&ending, &mut writer, &line);
        }
        let result = match cancel.is_set() {
            // Whatever else that has brought about meanwhile.
            true => Ok(()),
            false => ending.why().or(failed.map(Err)).unwrap_or(Ok(())),
        };
        // First, so that nobody reads what cannot be answered any more.
        if let Some(Standing {
            mounted: Some(mount), ..
        }) = &standing
            && let Err(error) = mount.unmounter().unmount()
        {
            tracing::debug!(%error, "unmounting");
        }
        if let (Err(error), false) = (&result, ending.has_heard()) {
            let _ = say(&mut writer, Body::Stop(control::Stop::of(error)));
        }
        // The connections of what the other end has mounted stay until it has let go.
        if writer.close().is_ok() && !ending.wait_heard(FAREWELL) {
            tracing::debug!("the other end does not say that it is done");
        }
        drop(standing);
        result
    })
}

/// Shows that this end is alive until it is over.
fn keep(ending: &Ending, writer: &mut Writer, line: &HangUp) {
    while !ending.wait(BEAT) {
        if let Err(error) = writer.push(kind::PULSE, 0, &[0]).and_then(|()| writer.flush()) {
            tracing::debug!(%error, "showing that this end is alive");
            // Who hears gets to know it too.
            line.now();
        }
    }
}

/// What is to stand.
struct Plan<'a> {
    options: &'a Options,
    local: Option<Arc<dyn RemoteTree>>,
    theirs: Theirs,
    here: End,
    peer_key: Option<[u8; 32]>,
}

/// What stands. It falls in this order.
struct Standing {
    mounted: Option<Mount>,
    _served: Option<HangUp>,
    _threads: Threads,
}

/// Threads that end by themselves when this is dropped; nobody waits for them.
struct Threads(Option<Runtime>);

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl Plan<'_> {
    /// What waits for the other end meanwhile is ended by `cancel`.
    fn stand(
        &self,
        open: impl FnOnce(&[u32]) -> Connections,
        ending: &Arc<Ending>,
        cancel: &Cancel,
    ) -> Result<Standing, Error> {
        let Self { options, theirs, .. } = self;
        let there = match self.here {
            End::Initiator => End::Responder,
            End::Responder => End::Initiator,
        };
        let serves = options.share.is_some() && theirs.mounts;
        let mounts = options.mount.is_some() && theirs.shares;
        let (ours, others) = (indexes(self.here), indexes(there));
        let used =
            |of: bool, (service, content): (u32, u32)| [of.then_some(service), (of && theirs.bulk).then_some(content)];
        let wanted: Vec<u32> = [used(serves, ours), used(mounts, others)]
            .into_iter()
            .flatten()
            .flatten()
            .collect();
        let (mut came, _watched) = collect(&open(&wanted), &wanted, options.gather, ending, cancel)?;
        let missing = || Error::Protocol("a connection did not come up");
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .thread_name("sealway-share")
            .enable_all()
            .build()
            .map_err(Error::network("starting threads"))?;
        let handle = runtime.handle().clone();
        let threads = Threads(Some(runtime));
        let _inside = handle.enter();
        let mut served = None;
        if let (true, Some(tree)) = (serves, &self.local) {
            let stream = sealed(came.remove(&ours.0).ok_or_else(missing)?)?;
            let handles: Arc<Handles> = Arc::default();
            if let Some(connection) = came.remove(&ours.1) {
                served = Some(HangUp(connection.stream()?));
                serve_content(connection, tree.clone(), handles.clone())?;
            }
            let tree = tree.clone();
            handle.spawn(async move {
                if let Err(error) = serve_with(stream, tree, ServeOptions::default(), handles).await {
                    tracing::debug!(%error, "the service of the shared folder ended");
                }
            });
        }
        let mut mounted = None;
        if let (true, Some(path)) = (mounts, &options.mount) {
            let stream = sealed(came.remove(&others.0).ok_or_else(missing)?)?;
            let tree = handle.block_on(GrpcTree::connect(stream)).map_err(Error::Tree)?;
            let tree: Arc<dyn RemoteTree> = match came.remove(&others.1) {
                Some(connection) => Arc::new(BulkTree::new(tree, connection)?),
                None => Arc::new(tree),
            };
            let mut mounting = options.mounting.clone();
            if let Some(cache) = &mut mounting.cache {
                cache.peer = self.peer_key;
            }
            let mount = Mount::start(tree, path, mounting).map_err(Error::Mount)?;
            watch(&mount, ending.clone())?;
            mounted = Some(mount);
        }
        Ok(Standing {
            mounted,
            _served: served,
            _threads: threads,
        })
    }
}

/// It is over when the mount is taken away.
fn watch(mount: &Mount, ending: Arc<Ending>) -> Result<(), Error> {
    let mount = mount.unmounter();
    let waiting = move || ending.set(mount.wait().map_err(Error::Mount));
    let thread = std::thread::Builder::new().name("mount-wait".into()).spawn(waiting);
    thread.map(drop).map_err(Error::network("starting threads"))
}

/// All connections that are wanted, by their numbers. Whoever has them now ends them; what is returned beside them lets `cancel`
/// do so too.
fn collect(
    connections: &Connections,
    wanted: &[u32],
    patience: Duration,
    ending: &Ending,
    cancel: &Cancel,
) -> Result<(BTreeMap<u32, Connection>, Vec<Watch>), Error> {
    let (mut came, mut watched) = (BTreeMap::new(), Vec::new());
    let until = Instant::now().checked_add(patience);
    while came.len() < wanted.len() {
        let next = connections.next_until(until, &|| ending.is_over());
        let connection = next.ok_or(Error::Protocol("a connection did not come up"))??;
        watched.push(cancel.watch(&connection.stream()?));
        connection.release();
        let index = connection.index;
        if !wanted.contains(&index) || came.insert(index, connection).is_some() {
            return Err(Error::Protocol("a connection of the other kind"));
        }
    }
    Ok((came, watched))
}

/// A connection on which a thread of ours waits, shut down at the end.
struct HangUp(TcpStream);

impl HangUp {
    fn now(&self) {
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

impl Drop for HangUp {
    fn drop(&mut self) {
        self.now();
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

/// `None` if the other end is done already.
fn meet(options: &Options, reader: &mut Reader, writer: &mut Writer) -> Result<Option<Theirs>, Error> {
    let (shares, mounts) = (options.share.is_some(), options.mount.is_some());
    let ours = Hello {
        version: control::VERSION,
        role: Role::Share as i32,
        shares,
        mounts,
        bulk: true,
    };
    let Some(hello) = greet_or_part(writer, reader, ours)? else {
        return Ok(None);
    };
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
    Ok(Some(Theirs {
        shares: hello.shares,
        mounts: hello.mounts,
        bulk: hello.bulk,
    }))
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
