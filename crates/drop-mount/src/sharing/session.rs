//! One session in the life of what is shared and mounted.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use sealway_session::handshake::Role as End;
use tokio::runtime::Runtime;

use super::ending::Ending;
use super::meeting::{Theirs, meet};
use super::mounting::theirs_by;
use super::paths::{Paths, listen};
use super::serving::{Changing, serve_changes, serve_content};
use super::{FolderError, Options, Ready};
use crate::changes::Serving;
use crate::fuse::Mount;
use crate::grpc::stream::SealedStream;
use crate::grpc::{Aborted, Handles, ServeOptions, serve_with};
use crate::line::spawn;
use crate::local::{LocalOptions, LocalTree, Own};
use crate::tree::{LastingTree, RemoteTree, TreeError};
use sealway_drop::cancel::{Cancel, Watch};
use sealway_drop::link::direct::{Addresses, Direct};
use sealway_drop::link::{Connected, Connection, Connections, Reader, Writer};
use sealway_drop::wire::control::{self, Body};
use sealway_drop::wire::kind;
use sealway_drop::wire::talk::{BEAT, say};
use sealway_drop::{Error, Fault, lock};

/// How long the other end may take to say that it has heard that this one is done.
const FAREWELL: Duration = Duration::from_secs(5);

/// How long what the other end has said may take to be heard.
const LAST_WORD: Duration = Duration::from_millis(250);

/// How long to wait for what the other end has to say when its connections end.
const NOTICE: Duration = Duration::from_secs(1);

/// Data connections on which the folder of an end of the session is served: its service, what its files hold, and changes.
fn indexes(server: End) -> (u32, u32, u32) {
    match server {
        End::Responder => (1, 3, 5),
        End::Initiator => (2, 4, 6),
    }
}

/// The folder that is shared, opened before anybody is told of it.
pub(super) fn folder(options: &Options) -> Result<Option<Arc<LocalTree>>, Error> {
    let Some(path) = &options.share else { return Ok(None) };
    let local = LocalOptions {
        writable: options.writable.is_some(),
        floor: options.writable.map_or(0, |writable| writable.floor),
        hidden: options.writable.is_some_and(|writable| writable.hidden),
        ..LocalOptions::default()
    };
    let failed = |source| FolderError {
        path: path.clone(),
        source,
    };
    let tree = LocalTree::open(path, local).map_err(failed)?;
    Ok(Some(Arc::new(tree)))
}

/// What lives as long as an end is shared with or mounted from, over one session or several. It falls in this order.
pub(super) struct Life<'a> {
    options: &'a Options,
    local: Option<Arc<LocalTree>>,
    mounted: Mutex<Option<Mounted>>,
    /// Thrown when the mount was taken away; an error of that stands in `why`.
    gone: Cancel,
    why: Arc<Mutex<Option<Error>>>,
    /// Whether this end is to come together again with one that it has lost, and whether that one can.
    again: bool,
    both: AtomicBool,
    threads: Threads,
}

struct Mounted {
    mount: Mount,
    tree: Arc<LastingTree>,
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

/// What stands for one session: its connections, which end with it, and what is done for the other end.
#[derive(Default)]
struct Standing {
    connections: Vec<HangUp>,
    /// Direct connections, which end with it too.
    paths: Paths,
    /// Waited for, which needs its connection to have ended: after them.
    changing: Option<Changing>,
    serving: Option<Aborted>,
    ready: Ready,
}

impl<'a> Life<'a> {
    /// `again`: whether a session that is lost is followed by another.
    pub(super) fn new(options: &'a Options, local: Option<Arc<LocalTree>>, again: bool) -> Result<Self, Error> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .thread_name("sealway-share")
            .enable_all()
            .build()
            .map_err(Error::network("starting threads"))?;
        Ok(Self {
            options,
            local,
            mounted: Mutex::default(),
            gone: Cancel::new(),
            why: Arc::default(),
            again,
            both: AtomicBool::new(false),
            threads: Threads(Some(runtime)),
        })
    }

    /// Thrown when the mount was taken away.
    pub(super) fn gone(&self) -> &Cancel {
        &self.gone
    }

    /// Whether another session may follow one that ended like this.
    pub(super) fn goes_on(&self, error: &Error) -> bool {
        let lost = matches!(error, Error::Network { .. }) || error.part::<TreeError>().is_some();
        lost && self.again && self.both.load(Ordering::SeqCst) && !self.gone.is_set()
    }

    /// Takes away what is mounted, so that nobody reads what cannot be answered any more.
    pub(super) fn end(&self) {
        if let Some(Mounted { mount, tree }) = &*lock(&self.mounted) {
            if let Err(error) = mount.unmounter().unmount() {
                tracing::debug!(%error, "unmounting");
            }
            tree.end();
        }
    }

    /// Shares and mounts over this session until it ends. `stands` is given the line on which the ends talk, `ready` told once
    /// everything stands, `path` by what path content goes. What is mounted stays if [`Life::goes_on`] says so of the error.
    pub(super) fn session(
        &self,
        connected: Connected,
        cancel: &Cancel,
        stands: &dyn Fn(TcpStream),
        ready: &dyn Fn(Ready),
        path: &(dyn Fn(Option<SocketAddr>) + Sync),
    ) -> Result<(), Error> {
        let Connected { peered, data } = connected;
        let direct = self.options.direct.clone().and_then(|ways| data.direct(ways));
        let (mut control, here) = (peered.connection, peered.session.role());
        let (line, wakes) = (control.stream()?, Arc::new(control.stream()?));
        stands(control.stream()?);
        // From here on this end hangs up by itself, when it has said goodbye.
        let of_gone = wakes.clone();
        let woken = (
            cancel.on_cancel(move || drop(wakes.shutdown(Shutdown::Read))),
            self.gone.on_cancel(move || drop(of_gone.shutdown(Shutdown::Read))),
        );
        control.release();
        let met = self.meet(direct.is_some(), &mut control.reader, &mut control.writer);
        drop(woken);
        let stopped = || cancel.is_set() || self.gone.is_set();
        let theirs = match met {
            Ok(Some(theirs)) if !stopped() => theirs,
            Err(error) if !stopped() => return Err(error),
            // An end is done before anything stands.
            _ => {
                let _ = control.writer.close();
                self.end();
                return Ok(());
            }
        };
        let ending: Arc<Ending> = Arc::default();
        let (told, of_gone) = (ending.clone(), ending.clone());
        let _told = cancel.on_cancel(move || told.set(Ok(())));
        let _gone = self.gone.on_cancel(move || of_gone.set(Ok(())));
        let direct = direct.filter(|_| theirs.direct);
        let Connection { mut reader, writer, .. } = control;
        let writer = Mutex::new(writer);
        std::thread::scope(|scope| {
            let line = HangUp(line);
            let (hearing, notes) = (ending.clone(), direct.as_ref().map(Direct::notes));
            scope.spawn(move || {
                let end = listen(&mut reader, notes.as_ref());
                hearing.set_heard(if cancel.is_set() { Ok(()) } else { end });
            });
            let open = |wanted: &[u32]| data.open_only_beside(wanted, direct.as_ref(), cancel);
            let (mut standing, failed) = match self.stand(&theirs, (here, peered.peer_key), open, &ending, cancel) {
                Ok(standing) => (Some(standing), None),
                Err(error) => {
                    // Perhaps because the other end is done, or gave up, and is about to say so.
                    if error.fault() == Fault::Network {
                        ending.wait(NOTICE);
                    }
                    (None, Some(error))
                }
            };
            if let Some(standing) = &mut standing {
                ready(standing.ready);
                let looking = direct.map(|direct| {
                    let say = |ours: &Addresses| say(&mut lock(&writer), Body::Paths(ours.into()));
                    let of = ending.clone();
                    // When all ends, so do direct connections: that is no news.
                    let told = move |direct| {
                        if !of.is_over() {
                            path(direct)
                        }
                    };
                    standing.paths.look(direct, cancel, scope, say, told)
                });
                keep(&ending, &writer, &line);
                if let Some(notes) = looking {
                    notes.stop();
                }
            }
            if !stopped() {
                // When everything ends at once, the first connection says why.
                ending.wait_heard(LAST_WORD);
            }
            let result = match stopped() {
                // Whatever else that has brought about meanwhile.
                true => lock(&self.why).take().map_or(Ok(()), Err),
                false => ending.why().or(failed.map(Err)).unwrap_or(Ok(())),
            };
            if let Err(error) = &result
                && self.goes_on(error)
            {
                // There is nobody to talk to.
                if let Some(Mounted { tree, .. }) = &*lock(&self.mounted) {
                    tree.lose();
                }
                return result;
            }
            self.end();
            if let (Err(error), false) = (&result, ending.has_heard()) {
                let _ = say(&mut lock(&writer), Body::Stop(control::Stop::of(error)));
            }
            // The connections of what the other end has mounted stay until it has let go.
            if lock(&writer).close().is_ok() && !ending.wait_heard(FAREWELL) {
                tracing::debug!("the other end does not say that it is done");
            }
            drop(standing);
            result
        })
    }

    /// What waits for the other end meanwhile is ended by `cancel`.
    fn stand(
        &self,
        theirs: &Theirs,
        (here, peer_key): (End, Option<[u8; 32]>),
        open: impl FnOnce(&[u32]) -> Connections,
        ending: &Arc<Ending>,
        cancel: &Cancel,
    ) -> Result<Standing, Error> {
        let options = self.options;
        let serves = options.share.is_some() && theirs.mounts;
        let mounts = options.mount.is_some() && theirs.shares;
        let (ours, others) = (indexes(here), indexes(here.other()));
        let (changed, changes) = (theirs.writes && options.writable.is_some(), options.mounting.writable);
        let wanted = [
            (serves, ours.0),
            (serves && theirs.bulk, ours.1),
            (serves && changed, ours.2),
            (mounts, others.0),
            (mounts && theirs.bulk, others.1),
            (mounts && changes, others.2),
        ];
        let wanted = wanted.into_iter().filter_map(|(used, number)| used.then_some(number));
        let wanted: Vec<u32> = wanted.collect();
        let connections = open(&wanted);
        let (mut came, _watched) = collect(&connections, &wanted, options.gather, ending, cancel)?;
        let missing = || Error::Protocol("a connection did not come up");
        let Some(runtime) = self.threads.0.as_ref().map(|runtime| runtime.handle().clone()) else {
            return Err(Error::Protocol("a thread of this end failed"));
        };
        let _inside = runtime.enter();
        let mut standing = Standing::default();
        if theirs.direct {
            standing.paths.connections = Some(connections);
        }
        for connection in came.values() {
            standing.connections.push(HangUp(connection.stream()?));
        }
        if let (true, Some(tree)) = (serves, &self.local) {
            let stream = sealed(came.remove(&ours.0).ok_or_else(missing)?)?;
            let handles: Arc<Handles> = Arc::default();
            if let Some(connection) = came.remove(&ours.1) {
                serve_content(connection, tree.clone(), handles.clone())?;
            }
            if let Some(connection) = came.remove(&ours.2) {
                let own = Arc::new(Own::new(tree.clone()));
                handles.set_own(own.clone());
                let serving = Arc::new(Serving::new(tree.clone(), own, handles.clone(), theirs.direct));
                standing.paths.beside.changes = Some(serving.clone());
                standing.changing = Some(serve_changes(connection, serving)?);
            }
            standing.paths.beside.content = Some((tree.clone(), handles.clone()));
            let (tree, ending) = (tree.clone(), ending.clone());
            let serving = ServeOptions {
                keepalive: options.keepalive,
                ..ServeOptions::default()
            };
            standing.serving = Some(Aborted(runtime.spawn(async move {
                if let Err(error) = serve_with(stream, tree, serving, handles).await {
                    tracing::debug!(%error, "the service of the shared folder ended");
                    // What the other end has to say on the first connection comes first.
                    tokio::time::sleep(NOTICE).await;
                    ending.set(Err(silent()));
                }
            })));
        }
        if let (true, Some(path)) = (mounts, &options.mount) {
            let stream = sealed(came.remove(&others.0).ok_or_else(missing)?)?;
            let beside = &mut standing.paths.beside;
            let apart = (came.remove(&others.1), came.remove(&others.2));
            let tree = theirs_by(&runtime, stream, options.keepalive, apart, beside)?;
            standing.ready.copies = self.mount(tree, path, peer_key, ending)?;
        }
        Ok(standing)
    }

    /// Mounts the tree of the other end, or gives it to what is mounted already.
    fn mount(
        &self,
        tree: Arc<dyn RemoteTree>,
        path: &std::path::Path,
        peer_key: Option<[u8; 32]>,
        ending: &Arc<Ending>,
    ) -> Result<Option<crate::fuse::CopiesBy>, Error> {
        let ending = ending.clone();
        let lost = Arc::new(move || ending.set(Err(silent())));
        let mut mounted = lock(&self.mounted);
        if let Some(mounted) = &*mounted {
            mounted.tree.set(tree, lost);
            return Ok(mounted.mount.copies());
        }
        let lasting = Arc::new(LastingTree::new().map_err(Error::network("starting threads"))?);
        lasting.set(tree, lost);
        let mut mounting = self.options.mounting.clone();
        if let Some(cache) = &mut mounting.cache {
            cache.peer = peer_key;
        }
        let mount = Mount::start(lasting.clone(), path, mounting)?;
        self.watch(&mount)?;
        let copies = mount.copies();
        *mounted = Some(Mounted { mount, tree: lasting });
        Ok(copies)
    }

    /// It is over when the mount is taken away.
    fn watch(&self, mount: &Mount) -> Result<(), Error> {
        let (mount, gone, why) = (mount.unmounter(), self.gone.clone(), self.why.clone());
        let waiting = move || {
            *lock(&why) = mount.wait().map_err(Error::from).err();
            gone.cancel();
        };
        spawn("mount-wait", waiting)
    }

    /// `None` if the other end is done already.
    fn meet(&self, direct: bool, reader: &mut Reader, writer: &mut Writer) -> Result<Option<Theirs>, Error> {
        let mut theirs = meet(self.options, (self.again, direct), reader, writer)?;
        if let Some(theirs) = &mut theirs {
            theirs.direct &= direct;
            self.both.store(theirs.again, Ordering::SeqCst);
        }
        Ok(theirs)
    }
}

/// The other end says no more.
fn silent() -> Error {
    Error::network("waiting for the other end")(ErrorKind::ConnectionAborted.into())
}

/// Shows that this end is alive until it is over.
fn keep(ending: &Ending, writer: &Mutex<Writer>, line: &HangUp) {
    while !ending.wait(BEAT) {
        let mut writer = lock(writer);
        if let Err(error) = writer.push(kind::PULSE, 0, &[0]).and_then(|()| writer.flush()) {
            tracing::debug!(%error, "showing that this end is alive");
            // Who hears gets to know it too.
            line.now();
        }
    }
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
pub(super) struct HangUp(pub(super) TcpStream);

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

/// For use inside a runtime.
fn sealed(connection: Connection) -> Result<SealedStream<tokio::net::TcpStream>, Error> {
    // The runtime ends with the sharing, and its streams with it.
    SealedStream::of(connection).map(|(stream, _watch)| stream)
}
