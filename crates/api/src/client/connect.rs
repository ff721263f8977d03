//! Calls to a server.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use prost::Message;
use tokio::net::UnixStream;
use tonic::Request;
use tonic::codegen::http::Uri;
use tonic::transport::{Channel, Endpoint};
use tonic_prost::ProstCodec;
use tower_service::Service;

use super::Failed;
use super::flags::Flags;

/// Where to call when nothing is said.
const DEFAULT: &str = "127.0.0.1:8080";

/// Calls a server; each call has a connection of its own.
pub(super) struct Caller {
    server: String,
    timeout: Duration,
}

/// Connects to a unix socket, whatever it is asked for.
struct Unix(String);

impl Service<Uri> for Unix {
    type Response = TokioIo<UnixStream>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let name = self.0.clone();
        Box::pin(async move {
            let name = match name.strip_prefix('@') {
                // A name that begins with NUL is that of an abstract socket.
                Some(name) => format!("\0{name}"),
                None => name,
            };
            UnixStream::connect(name).await.map(TokioIo::new)
        })
    }
}

impl Caller {
    pub(super) fn new(flags: &Flags) -> Result<Caller, Failed> {
        let server = match flags.text("server") {
            "" => DEFAULT,
            server => server,
        };
        Ok(Caller {
            server: server.to_owned(),
            timeout: flags.timeout()?,
        })
    }

    /// Calls a method by its path.
    pub(super) async fn call<Q, A>(&self, path: &'static str, request: Q) -> Result<A, tonic::Status>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let call = async {
            let channel = self.connect().await?;
            let mut grpc = tonic::client::Grpc::new(channel).max_decoding_message_size(usize::MAX);
            let unready = |error: tonic::transport::Error| tonic::Status::unavailable(error.to_string());
            grpc.ready().await.map_err(unready)?;
            let path = tonic::codegen::http::uri::PathAndQuery::from_static(path);
            let answer = grpc
                .unary(Request::new(request), path, ProstCodec::<Q, A>::default())
                .await?;
            Ok(answer.into_inner())
        };
        let late = |_| tonic::Status::deadline_exceeded("the server does not answer in time");
        tokio::time::timeout(self.timeout, call).await.map_err(late)?
    }

    async fn connect(&self) -> Result<Channel, tonic::Status> {
        let failed = |_| tonic::Status::unavailable(format!("failed to dial {}", self.server));
        let name = self.server.strip_prefix("unix:").unwrap_or(&self.server);
        let name = name
            .strip_prefix("unix-abstract:")
            .map_or(name.to_owned(), |name| format!("@{name}"));
        if name.starts_with('/') || name.starts_with('@') {
            let endpoint = Endpoint::from_static("http://localhost");
            return endpoint.connect_with_connector(Unix(name)).await.map_err(failed);
        }
        let endpoint = Endpoint::from_shared(format!("http://{name}")).map_err(failed)?;
        endpoint.connect().await.map_err(failed)
    }
}
