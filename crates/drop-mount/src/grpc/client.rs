//! The tree at the other end of a connection.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::Handle;
use tonic::codegen::{Service, http::Uri};
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Response, Status, Streaming};

use super::io::{End, Watched};
use super::proto::drop_client::DropClient;
use super::{Aborted, CONNECTION_WINDOW, FRAME, KEEPALIVE, MAX_MESSAGE, MAX_PIECE, STREAM_WINDOW, convert, proto};
use crate::tree::{
    Attr, Call, Cancel, Chunk, Event, EventSink, Extent, MAX_PAGE, MAX_READ, Opened, Page, ReadDone, ReadRequest,
    RemoteTree, Space, Subscription, TreeError, TreePath,
};
use sealway_drop::lock;

/// A tree that a peer serves by [`super::serve`].
///
/// The calls of [`RemoteTree`] block, so they must not be made on threads of a tokio runtime.
pub struct GrpcTree {
    client: DropClient<Channel>,
    runtime: Handle,
    end: Arc<End>,
}

impl GrpcTree {
    /// Begins HTTP/2 on a stream. What waits and what sends runs on the runtime this is called on, which must go on.
    ///
    /// # Errors
    /// [`TreeError::Lost`] if the other end does not take part.
    pub async fn connect<S>(stream: S) -> Result<Self, TreeError>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        Self::connect_with(stream, KEEPALIVE).await
    }

    /// The same with another time after which a silent end is asked whether it is there, and in which it is to say so.
    ///
    /// # Errors
    /// As [`GrpcTree::connect`].
    pub async fn connect_with<S>(stream: S, keepalive: Duration) -> Result<Self, TreeError>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let end: Arc<End> = Arc::default();
        let connector = Connector(Arc::new(Mutex::new(Some(Watched::new(stream, Arc::clone(&end))))));
        let channel = Endpoint::from_static("http://drop.sealway")
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_frame_size(FRAME)
            .http2_max_header_list_size(16 << 10)
            .http2_keep_alive_interval(keepalive)
            .keep_alive_timeout(keepalive)
            .keep_alive_while_idle(true)
            .buffer_size(256)
            .connect_with_connector(connector)
            .await
            .map_err(|_| TreeError::Lost)?;
        let client = DropClient::new(channel).max_decoding_message_size(MAX_MESSAGE);
        Ok(Self {
            client,
            runtime: Handle::current(),
            end,
        })
    }

    /// Asks whether the other end is there; the time it took.
    pub async fn ping(&self) -> Result<Duration, TreeError> {
        let start = Instant::now();
        let mut client = self.client.clone();
        let number = 0x5ea1_0001;
        let reply = client
            .ping(proto::PingRequest { number })
            .await
            .map_err(|status| self.error(&status))?;
        if reply.get_ref().number != number {
            return Err(TreeError::Protocol("a ping came back as another"));
        }
        Ok(start.elapsed())
    }

    /// A file from `offset` on, given to `take` piece by piece in order. Ends with [`TreeError::Stale`] if the file changes
    /// meanwhile. The bytes taken are exactly those up to the file's end.
    pub async fn stream_file(
        &self,
        path: &TreePath,
        offset: u64,
        mut take: impl FnMut(Bytes) -> io::Result<()>,
    ) -> Result<u64, TreeError> {
        let mut client = self.client.clone();
        let path = Bytes::copy_from_slice(path.as_bytes());
        let request = proto::StreamFileRequest { path, offset };
        let mut pieces = client
            .stream_file(request)
            .await
            .map_err(|status| self.error(&status))?
            .into_inner();
        let (mut at, mut known) = (offset, None);
        while let Some(piece) = pieces.message().await.map_err(|status| self.error(&status))? {
            let (size, version) = *known.get_or_insert((piece.size, piece.version));
            let end = at
                .checked_add(piece.data.len() as u64)
                .filter(|end| *end <= size.max(offset));
            let Some(end) = end.filter(|_| (piece.size, piece.version) == (size, version)) else {
                return Err(TreeError::Protocol("pieces that do not belong together"));
            };
            at = end;
            take(piece.data).map_err(|_| TreeError::Cancelled)?;
        }
        match known {
            Some((size, _)) if at == size.max(offset) => Ok(at - offset),
            _ => Err(TreeError::Protocol("a file came short")),
        }
    }

    fn error(&self, status: &Status) -> TreeError {
        if self.end.is_over() {
            TreeError::Lost
        } else {
            convert::error(status)
        }
    }

    /// Runs a call and waits for it, no longer than it may take.
    fn wait<T, F>(&self, call: &Call, make: impl FnOnce(DropClient<Channel>) -> F) -> Result<T, TreeError>
    where
        F: Future<Output = Result<Response<T>, Status>>,
    {
        call.left()?;
        let (cancelled, _hook) = cancelled(&call.cancel);
        let work = async {
            if self.end.is_over() {
                return Err(TreeError::Lost);
            }
            tokio::select! {
                reply = make(self.client.clone()) => {
                    reply.map(Response::into_inner).map_err(|status| self.error(&status))
                }
                () = cancelled => Err(TreeError::Cancelled),
                () = tokio::time::sleep_until(call.deadline.into()) => Err(TreeError::Timeout),
                () = self.end.wait() => Err(TreeError::Lost),
            }
        };
        self.runtime.block_on(work)
    }
}

/// Ready when the token fires.
fn cancelled(token: &Cancel) -> (impl Future<Output = ()> + use<>, crate::tree::Hook) {
    let (fire, fired) = tokio::sync::oneshot::channel::<()>();
    let hook = token.on_cancel(move || {
        let _ = fire.send(());
    });
    let wait = async move {
        if fired.await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    (wait, hook)
}

fn request(path: &TreePath) -> proto::PathRequest {
    proto::PathRequest {
        path: Bytes::copy_from_slice(path.as_bytes()),
    }
}

impl RemoteTree for GrpcTree {
    fn attr(&self, path: &TreePath, call: &Call) -> Result<Attr, TreeError> {
        let request = request(path);
        convert::attr_in(&self.wait(call, |mut client| async move { client.get_attr(request).await })?)
    }

    fn list(&self, path: &TreePath, cursor: u64, limit: usize, call: &Call) -> Result<Page, TreeError> {
        let limit = limit.clamp(1, MAX_PAGE);
        let path = Bytes::copy_from_slice(path.as_bytes());
        let request = proto::ReadDirRequest {
            path,
            cursor,
            limit: limit as u32,
        };
        convert::page_in(
            &self.wait(call, |mut client| async move { client.read_dir(request).await })?,
            limit,
        )
    }

    fn read_link(&self, path: &TreePath, call: &Call) -> Result<Vec<u8>, TreeError> {
        let request = request(path);
        convert::link_in(&self.wait(call, |mut client| async move { client.read_link(request).await })?)
    }

    fn open(&self, path: &TreePath, call: &Call) -> Result<Opened, TreeError> {
        let request = request(path);
        convert::opened_in(&self.wait(call, |mut client| async move { client.open(request).await })?)
    }

    fn extent(&self, handle: u64, offset: u64, call: &Call) -> Result<Extent, TreeError> {
        let request = proto::SeekRequest { handle, offset };
        let told = self.wait(call, |mut client| async move { client.seek(request).await })?;
        convert::extent_in(&told, offset)
    }

    fn space(&self, call: &Call) -> Result<Space, TreeError> {
        let request = proto::SpaceRequest {};
        let told = self.wait(call, |mut client| async move { client.space(request).await })?;
        let proto::SpaceReply { total, free, available } = told;
        Ok(Space { total, free, available })
    }

    fn submit(&self, request: ReadRequest, done: ReadDone) {
        if self.end.is_over() {
            return done(Err(TreeError::Lost));
        }
        if request.len > MAX_READ {
            return done(Err(TreeError::Invalid("too long a read")));
        }
        let (client, end) = (self.client.clone(), Arc::clone(&self.end));
        self.runtime.spawn(async move {
            let (cancelled, _hook) = cancelled(&request.cancel);
            let result = tokio::select! {
                result = read(client, &request) => match result {
                    Ok(chunk) => chunk.checked(request.offset, request.len),
                    Err(_) if end.is_over() => Err(TreeError::Lost),
                    Err(error) => Err(error),
                },
                () = cancelled => Err(TreeError::Cancelled),
                () = tokio::time::sleep_until(request.deadline.into()) => Err(TreeError::Timeout),
                () = end.wait() => Err(TreeError::Lost),
            };
            done(result);
        });
    }

    fn close(&self, handle: u64) {
        let mut client = self.client.clone();
        let end = Arc::clone(&self.end);
        self.runtime.spawn(async move {
            tokio::select! {
                // A handle that could not be closed is closed with the connection.
                _ = client.close(proto::CloseRequest { handle }) => {}
                () = end.wait() => {}
            }
        });
    }

    fn subscribe(&self, sink: EventSink) -> Result<Subscription, TreeError> {
        let call = Call::within(KEEPALIVE);
        let mut events = self.wait(&call, |mut client| async move {
            client.events(proto::EventsRequest {}).await
        })?;
        let end = Arc::clone(&self.end);
        let task = self.runtime.spawn(async move {
            loop {
                let event = tokio::select! {
                    event = events.message() => event,
                    () = end.wait() => Err(Status::unavailable("")),
                };
                match event {
                    Ok(Some(event)) => {
                        if let Some(event) = convert::event_in(&event) {
                            sink(event);
                        }
                    }
                    // Nothing is told from here on, so nothing known before may be relied on.
                    Ok(None) | Err(_) => {
                        return sink(if end.is_over() { Event::Lost } else { Event::Everything });
                    }
                }
            }
        });
        Ok(Subscription::new(Aborted(task)))
    }

    fn is_alive(&self) -> bool {
        !self.end.is_over()
    }
}

async fn read(mut client: DropClient<Channel>, request: &ReadRequest) -> Result<Chunk, TreeError> {
    let (handle, offset, length) = (request.handle, request.offset, request.len);
    let reply = client
        .read(Request::new(proto::ReadRequest { handle, offset, length }))
        .await;
    let mut pieces: Streaming<proto::Piece> = reply.map_err(|status| convert::error(&status))?.into_inner();
    let mut next = async || pieces.message().await.map_err(|status| convert::error(&status));
    let first = next().await?.ok_or(TreeError::Protocol("a read without an answer"))?;
    let proto::Piece { data, size, version } = first;
    let mut second = next().await?;
    if second.is_none() && data.len() <= MAX_PIECE {
        return Ok(Chunk { data, size, version });
    }
    let first = data;
    let mut data = BytesMut::with_capacity(length as usize);
    data.extend_from_slice(&first);
    while let Some(piece) = second {
        let same = (piece.size, piece.version) == (size, version);
        if !same || piece.data.len() > MAX_PIECE || data.len() + piece.data.len() > length as usize {
            return Err(TreeError::Protocol("pieces that do not belong together"));
        }
        data.extend_from_slice(&piece.data);
        second = next().await?;
    }
    let data = data.freeze();
    Ok(Chunk { data, size, version })
}

/// Gives out the one stream there is; when that has ended, there is no other.
struct Connector<S>(Arc<Mutex<Option<Watched<S>>>>);

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> Service<Uri> for Connector<S> {
    type Response = TokioIo<Watched<S>>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _uri: Uri) -> Self::Future {
        let stream = lock(&self.0).take();
        Box::pin(async move {
            let stream = stream.ok_or(io::ErrorKind::NotConnected)?;
            Ok(TokioIo::new(stream))
        })
    }
}
