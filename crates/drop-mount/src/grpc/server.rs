//! The serving side.

use std::collections::HashSet;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Semaphore, mpsc};
use tonic::codegen::Service as _;
use tonic::codegen::tokio_stream::wrappers::ReceiverStream;
use tonic::codegen::tokio_stream::{self, Stream, StreamExt as _};
use tonic::{Request, Response, Status};

use super::io::{End, Watched};
use super::proto::drop_server::{Drop as Service, DropServer};
use super::{KEEPALIVE, MAX_MESSAGE, MAX_PIECE, PIECE, convert, proto};
use crate::local::Own;
use crate::tree::{
    Call, Cancel, Chunk, Event, EventSink, Extent, MAX_PAGE, MAX_READ, ReadRequest, RemoteTree, Space, TreeError,
    TreePath,
};
use sealway_drop::lock;

/// Bounds of what one connection may have at once.
#[derive(Debug, Clone, Copy)]
pub struct ServeOptions {
    /// Open files. Default 1024.
    pub handles: usize,
    /// Calls under way; more have to wait. Default 128.
    pub calls: u32,
    /// How long one call may take. Default 60 s.
    pub timeout: Duration,
    /// Silence after which the other end is asked whether it is there, and how long it may take to say so. Default 15 s.
    pub keepalive: Duration,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self {
            handles: 1024,
            calls: 128,
            timeout: Duration::from_secs(60),
            keepalive: KEEPALIVE,
        }
    }
}

/// Handles that a peer has open by the service, for those who read or change for it by another way.
#[derive(Default)]
pub struct Handles {
    open: Mutex<HashSet<u64>>,
    own: OnceLock<Arc<Own>>,
}

impl Handles {
    /// Whether the peer has opened this handle and not closed it.
    pub fn contains(&self, handle: u64) -> bool {
        lock(&self.open).contains(&handle)
    }

    /// [`TreeError::Stale`] unless it has.
    pub(crate) fn check(&self, handle: u64) -> Result<(), TreeError> {
        match self.contains(handle) {
            true => Ok(()),
            false => Err(TreeError::Stale),
        }
    }

    /// What the peer changes by another way: it gets no news of that.
    pub(crate) fn set_own(&self, own: Arc<Own>) {
        let _ = self.own.set(own);
    }

    /// Takes in what was opened, unless there are so many.
    pub(crate) fn add(&self, handle: u64, most: usize) -> bool {
        let mut open = lock(&self.open);
        open.len() < most && open.insert(handle)
    }

    /// One that was closed. Whether it was the peer's.
    pub(crate) fn remove(&self, handle: u64) -> bool {
        lock(&self.open).remove(&handle)
    }

    /// All of them, which are then nobody's.
    pub(crate) fn take(&self) -> Vec<u64> {
        lock(&self.open).drain().collect()
    }
}

/// Answers for `tree` on this stream until the other end is gone. Files that were left open are closed then.
///
/// Must run on a multi-threaded tokio runtime with time; calls on the tree run on its blocking threads.
///
/// # Errors
/// When the stream breaks in a way that HTTP/2 does not end by itself.
pub async fn serve<S>(stream: S, tree: Arc<dyn RemoteTree>, options: ServeOptions) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    serve_with(stream, tree, options, Arc::default()).await
}

/// As [`serve`]; what the peer has open is also kept in `handles`, which belong to this one stream.
///
/// # Errors
/// As [`serve`].
pub async fn serve_with<S>(
    stream: S,
    tree: Arc<dyn RemoteTree>,
    options: ServeOptions,
    handles: Arc<Handles>,
) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let end: Arc<End> = Arc::default();
    let keepalive = options.keepalive;
    let service = Server {
        shared: Arc::new(Shared { tree, options, handles }),
        // Reads hold memory: each of them at most MAX_READ.
        reads: Arc::new(Semaphore::new(16)),
        events: Arc::new(Semaphore::new(4)),
    };
    let service = DropServer::new(service)
        .max_decoding_message_size(64 << 10)
        .max_encoding_message_size(MAX_MESSAGE);
    let service = service_fn(move |request| DropServer::call(&mut service.clone(), request));
    let connection = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        // Nothing large comes in.
        .initial_stream_window_size(1 << 20)
        .initial_connection_window_size(4 << 20)
        .max_concurrent_streams(options.calls)
        .max_header_list_size(16 << 10)
        .max_send_buf_size(SEND_BUFFER)
        .keep_alive_interval(keepalive)
        .keep_alive_timeout(keepalive)
        .serve_connection(TokioIo::new(Watched::new(stream, Arc::clone(&end))), service);
    connection.await.map_err(io::Error::other)
}

/// Bytes of one answer that may wait for the connection.
const SEND_BUFFER: usize = 2 << 20;

#[derive(Clone)]
struct Server {
    shared: Arc<Shared>,
    reads: Arc<Semaphore>,
    events: Arc<Semaphore>,
}

struct Shared {
    tree: Arc<dyn RemoteTree>,
    options: ServeOptions,
    /// Handles of this connection; no other is taken.
    handles: Arc<Handles>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        for handle in self.handles.take() {
            self.tree.close(handle);
        }
    }
}

/// Calls off a call when its future is dropped, which is what becomes of one that the other end resets.
struct CancelOnDrop(Cancel);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl Shared {
    async fn read(self: &Arc<Self>, handle: u64, offset: u64, len: u32) -> Result<Chunk, TreeError> {
        let (send, receive) = tokio::sync::oneshot::channel();
        let call = Call::within(self.options.timeout);
        let _guard = CancelOnDrop(call.cancel.clone());
        let (shared, deadline) = (Arc::clone(self), call.deadline);
        tokio::task::spawn_blocking(move || {
            let request = ReadRequest {
                handle,
                offset,
                len,
                deadline,
                cancel: call.cancel,
            };
            shared
                .tree
                .submit(request, Box::new(move |result| drop(send.send(result))));
        });
        let result = tokio::time::timeout_at(deadline.into(), receive).await;
        let result = result.map_err(|_| TreeError::Timeout)?.map_err(|_| TreeError::Failed)?;
        result.and_then(|chunk| chunk.checked(offset, len))
    }
}

impl Server {
    /// Has a call on the tree done, on a blocking thread.
    async fn ask<T: Send + 'static>(
        &self,
        call: impl FnOnce(&dyn RemoteTree, &Call) -> Result<T, TreeError> + Send + 'static,
    ) -> Result<T, Status> {
        let of = Call::within(self.shared.options.timeout);
        let _guard = CancelOnDrop(of.cancel.clone());
        let tree = Arc::clone(&self.shared.tree);
        let result = tokio::task::spawn_blocking(move || call(&*tree, &of)).await;
        result
            .map_err(|_| Status::internal("the call broke"))?
            .map_err(convert::status)
    }

    async fn attr(&self, path: TreePath) -> Result<Response<proto::Attr>, Status> {
        let attr = self.ask(move |tree, call| tree.attr(&path, call)).await?;
        Ok(Response::new(convert::attr_out(&attr)))
    }
}

type Pieces = Pin<Box<dyn Stream<Item = Result<proto::Piece, Status>> + Send>>;
type Events = Pin<Box<dyn Stream<Item = Result<proto::Event, Status>> + Send>>;

#[tonic::async_trait]
impl Service for Server {
    async fn get_attr(&self, request: Request<proto::PathRequest>) -> Result<Response<proto::Attr>, Status> {
        self.attr(convert::path(&request.get_ref().path)?).await
    }

    async fn lookup(&self, request: Request<proto::LookupRequest>) -> Result<Response<proto::Attr>, Status> {
        let proto::LookupRequest { path, name } = request.into_inner();
        let path = convert::path(&path)?.join(&name).map_err(convert::status)?;
        self.attr(path).await
    }

    async fn read_dir(&self, request: Request<proto::ReadDirRequest>) -> Result<Response<proto::ReadDirReply>, Status> {
        let proto::ReadDirRequest { path, cursor, limit } = request.into_inner();
        let path = convert::path(&path)?;
        let limit = (limit as usize).clamp(1, MAX_PAGE);
        let page = self.ask(move |tree, call| tree.list(&path, cursor, limit, call));
        Ok(Response::new(convert::page_out(page.await?)))
    }

    async fn read_link(&self, request: Request<proto::PathRequest>) -> Result<Response<proto::ReadLinkReply>, Status> {
        let path = convert::path(&request.get_ref().path)?;
        let target = self.ask(move |tree, call| tree.read_link(&path, call)).await?;
        Ok(Response::new(proto::ReadLinkReply { target: target.into() }))
    }

    async fn open(&self, request: Request<proto::PathRequest>) -> Result<Response<proto::OpenReply>, Status> {
        let path = convert::path(&request.get_ref().path)?;
        let shared = Arc::clone(&self.shared);
        let opened = self.ask(move |tree, call| {
            let opened = tree.open(&path, call)?;
            if call.cancel.is_cancelled() || !shared.handles.add(opened.handle, shared.options.handles) {
                tree.close(opened.handle);
                return Err(TreeError::Limit);
            }
            Ok(opened)
        });
        let opened = opened.await?;
        Ok(Response::new(proto::OpenReply {
            handle: opened.handle,
            attr: Some(convert::attr_out(&opened.attr)),
        }))
    }

    async fn close(&self, request: Request<proto::CloseRequest>) -> Result<Response<proto::CloseReply>, Status> {
        let handle = request.get_ref().handle;
        if self.shared.handles.remove(handle) {
            self.shared.tree.close(handle);
            if let Some(own) = self.shared.handles.own.get() {
                own.closed(handle);
            }
        }
        Ok(Response::new(proto::CloseReply {}))
    }

    type ReadStream = Pieces;

    async fn read(&self, request: Request<proto::ReadRequest>) -> Result<Response<Pieces>, Status> {
        let proto::ReadRequest { handle, offset, length } = request.into_inner();
        if length > MAX_READ {
            return Err(Status::invalid_argument("too long a read"));
        }
        self.shared.handles.check(handle).map_err(convert::status)?;
        let permit = Arc::clone(&self.reads)
            .acquire_owned()
            .await
            .map_err(|_| Status::unavailable("closing"))?;
        let chunk = self
            .shared
            .read(handle, offset, length)
            .await
            .map_err(convert::status)?;
        let pieces = convert::pieces_out(&chunk, MAX_PIECE).into_iter().map(move |piece| {
            // Held until the last piece is on its way.
            let _permit = &permit;
            Ok(piece)
        });
        Ok(Response::new(Box::pin(tokio_stream::iter(pieces))))
    }

    type StreamFileStream = Pieces;

    async fn stream_file(&self, request: Request<proto::StreamFileRequest>) -> Result<Response<Pieces>, Status> {
        let proto::StreamFileRequest { path, offset } = request.into_inner();
        let path = convert::path(&path)?;
        let opened = self.ask(move |tree, call| tree.open(&path, call)).await?;
        let shared = Arc::clone(&self.shared);
        // Two messages ahead of the connection, so that reading and sending go on together.
        let (send, receive) = mpsc::channel(2);
        tokio::spawn(async move {
            let mut offset = offset;
            let ended = loop {
                // Also ends when the other end has gone.
                let read = tokio::select! {
                    read = shared.read(opened.handle, offset, PIECE as u32) => read,
                    () = send.closed() => break None,
                };
                match read {
                    Ok(chunk) if chunk.version != opened.attr.version => break Some(TreeError::Stale),
                    Ok(chunk) => {
                        let piece = proto::Piece {
                            data: chunk.data,
                            size: chunk.size,
                            version: chunk.version,
                        };
                        offset += piece.data.len() as u64;
                        let last = piece.data.len() < PIECE || offset >= piece.size;
                        if send.send(Ok(piece)).await.is_err() || last {
                            break None;
                        }
                    }
                    Err(error) => break Some(error),
                }
            };
            if let Some(error) = ended {
                let _ = send.send(Err(convert::status(error))).await;
            }
            shared.tree.close(opened.handle);
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(receive))))
    }

    type EventsStream = Events;

    async fn events(&self, _request: Request<proto::EventsRequest>) -> Result<Response<Events>, Status> {
        let permit = Arc::clone(&self.events)
            .try_acquire_owned()
            .map_err(|_| convert::status(TreeError::Limit))?;
        // As many as one may lag behind. Beyond that the last place says that anything may have changed.
        let (send, receive) = mpsc::channel(1024);
        let ready = proto::Event {
            what: proto::event::What::Ready.into(),
            path: Default::default(),
        };
        send.try_send(Ok(ready)).map_err(|_| Status::internal("no room"))?;
        let own = self.shared.handles.own.get().cloned();
        let subscription = self.ask(move |tree, _| {
            let sink: EventSink = Arc::new(move |event| {
                let event = match send.capacity() {
                    0 => return,
                    1 => Event::Everything,
                    _ => event,
                };
                drop(send.try_send(Ok(convert::event_out(&event))));
            });
            tree.subscribe(match own {
                Some(own) => own.filter(sink),
                None => sink,
            })
        });
        let held = (subscription.await?, permit);
        let events = ReceiverStream::new(receive).map(move |event| {
            // Held as long as somebody hears them.
            let _held = &held;
            event
        });
        Ok(Response::new(Box::pin(events)))
    }

    async fn seek(&self, request: Request<proto::SeekRequest>) -> Result<Response<proto::SeekReply>, Status> {
        let proto::SeekRequest { handle, offset } = request.into_inner();
        self.shared.handles.check(handle).map_err(convert::status)?;
        let extent = self.ask(move |tree, call| tree.extent(handle, offset, call));
        let Extent { data, hole } = extent.await?;
        Ok(Response::new(proto::SeekReply { data, hole }))
    }

    async fn space(&self, _request: Request<proto::SpaceRequest>) -> Result<Response<proto::SpaceReply>, Status> {
        let Space { total, free, available } = self.ask(|tree, call| tree.space(call)).await?;
        Ok(Response::new(proto::SpaceReply { total, free, available }))
    }

    async fn ping(&self, request: Request<proto::PingRequest>) -> Result<Response<proto::PingReply>, Status> {
        Ok(Response::new(proto::PingReply {
            number: request.get_ref().number,
        }))
    }
}
