//! One connection: HTTP/2 without TLS, and the services on it under both cores' names.

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use sealway_proxy::Control;
use tokio::net::UnixStream;
use tokio::sync::Semaphore;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::{Service, http};
use tonic::server::NamedService;

use crate::options::{Options, Service as ApiService};
use crate::proto::xray::app::log::command::logger_service_server::LoggerServiceServer;
use crate::proto::xray::core::app::observatory::command::observatory_service_server::ObservatoryServiceServer;
use crate::proto::{self, canonical, handler, routing, stats};
use crate::services::{Handler, Logger, Observatory, Routing, Stats};

/// Longest message taken, as Go's servers have it. An inbound of 10,000 users is a quarter of it.
pub(crate) const MAX_MESSAGE: usize = 4 << 20;
/// Calls at once on a connection. More wait.
pub(crate) const MAX_CALLS: u32 = 16;
/// Calls at once of all connections of the process, each with a message of its own. More wait.
pub(crate) const MAX_CALLS_OF_ALL: usize = 64;
/// Bytes of a call that are received before it is looked at. Those of all that a connection may have leave room for the one that is
/// read.
const STREAM_WINDOW: u32 = 64 << 10;
const CONNECTION_WINDOW: u32 = 2 << 20;
const _: () = assert!(MAX_CALLS * STREAM_WINDOW < CONNECTION_WINDOW);
/// Longest text of a refusal, which may quote what was asked, in bytes as they are sent.
const MAX_TOLD: usize = 4 << 10;
/// Longest head of a call.
const MAX_HEADERS: u32 = 16 << 10;
/// How long a call may wait, come in and be done.
const CALL: Duration = Duration::from_secs(60);
/// How long a client may take to begin its first call.
const PATIENCE: Duration = Duration::from_secs(10);
/// Silence after which a client is asked whether it is there, and how long it may take to say so.
const KEEPALIVE: Duration = Duration::from_secs(60);

type Request = http::Request<Incoming>;
type Response = http::Response<Body>;
type Call = Box<dyn Fn(Request) -> Pin<Box<dyn Future<Output = Response> + Send>> + Send + Sync>;

/// The services of an API, by the names in the definitions.
#[derive(Clone)]
pub(crate) struct Services {
    calls: Arc<HashMap<&'static str, Call>>,
    places: Arc<Semaphore>,
}

/// Makes the services that an API has. `began`: since when there is one.
pub(crate) fn services(control: &Control, options: &Arc<Options>, began: Instant) -> Services {
    let mut calls: HashMap<&'static str, Call> = HashMap::new();
    let mut names = Vec::new();
    for service in &options.services {
        let control = control.clone();
        match service {
            ApiService::StatsService => {
                let server = stats::stats_service_server::StatsServiceServer::new(Stats::new(control, options, began));
                names.push(add(&mut calls, server.max_decoding_message_size(MAX_MESSAGE)));
            }
            ApiService::LoggerService => {
                let server = LoggerServiceServer::new(Logger);
                names.push(add(&mut calls, server.max_decoding_message_size(MAX_MESSAGE)));
            }
            ApiService::ObservatoryService => {
                let server = ObservatoryServiceServer::new(Observatory(control));
                names.push(add(&mut calls, server.max_decoding_message_size(MAX_MESSAGE)));
            }
            ApiService::HandlerService => {
                let server = handler::handler_service_server::HandlerServiceServer::new(Handler::new(control, options));
                names.push(add(&mut calls, server.max_decoding_message_size(MAX_MESSAGE)));
            }
            ApiService::RoutingService => {
                let server = routing::routing_service_server::RoutingServiceServer::new(Routing::new(control, options));
                names.push(add(&mut calls, server.max_decoding_message_size(MAX_MESSAGE)));
            }
            ApiService::ReflectionService => {}
        }
    }
    if options.services.contains(&ApiService::ReflectionService) {
        let builder = || {
            let builder = tonic_reflection::server::Builder::configure();
            let builder = builder.register_encoded_file_descriptor_set(proto::DESCRIPTORS);
            names
                .iter()
                .fold(builder, |builder, name| builder.with_service_name(*name))
        };
        // Only definitions that are not what they say could be refused.
        if let (Ok(v1), Ok(alpha)) = (builder().build_v1(), builder().build_v1alpha()) {
            add(&mut calls, v1.max_decoding_message_size(MAX_MESSAGE));
            add(&mut calls, alpha.max_decoding_message_size(MAX_MESSAGE));
        }
    }
    Services {
        calls: Arc::new(calls),
        places: Arc::new(Semaphore::new(MAX_CALLS_OF_ALL)),
    }
}

fn add<S>(calls: &mut HashMap<&'static str, Call>, service: S) -> &'static str
where
    S: Service<Request, Response = Response, Error = Infallible> + NamedService + Clone + Send + Sync + 'static,
    S::Future: Send,
{
    let call = move |request| -> Pin<Box<dyn Future<Output = Response> + Send>> {
        let mut service = service.clone();
        Box::pin(async move {
            match service.call(request).await {
                Ok(response) => response,
                Err(never) => match never {},
            }
        })
    };
    calls.insert(S::NAME, Box::new(call));
    S::NAME
}

impl Services {
    async fn answer(&self, mut request: Request) -> Response {
        let path = request.uri().path().to_owned();
        let Some((service, method)) = path.strip_prefix('/').and_then(|path| path.rsplit_once('/')) else {
            return Status::unimplemented(format!("malformed method name: {path:?}")).into_http();
        };
        let name = canonical(service);
        let Some(call) = self.calls.get(&*name) else {
            return Status::unimplemented(format!("unknown service {service}")).into_http();
        };
        if name != service
            && let Ok(path) = format!("/{name}/{method}").parse()
        {
            *request.uri_mut() = path;
        }
        let answer = async {
            // It is never closed.
            let _place = self.places.acquire().await;
            call(request).await
        };
        let mut response = match tokio::time::timeout(CALL, answer).await {
            Ok(response) => response,
            Err(_) => Status::deadline_exceeded("the call takes too long").into_http(),
        };
        cut(&mut response);
        response
    }
}

/// Cuts a refusal that is too long.
fn cut(response: &mut Response) {
    const TOLD: &str = "grpc-message";
    let told = response
        .headers()
        .get(TOLD)
        .and_then(|told| told.as_bytes().get(..MAX_TOLD));
    let Some(told) = told.filter(|_| response.headers()[TOLD].len() > MAX_TOLD) else {
        return;
    };
    // Other characters than those of ASCII are a percent sign and two digits, which stay together.
    let whole = told.iter().rposition(|b| *b == b'%').filter(|at| at + 3 > MAX_TOLD);
    if let Ok(told) = http::HeaderValue::from_bytes(&told[..whole.unwrap_or(MAX_TOLD)]) {
        response.headers_mut().insert(TOLD, told);
    }
}

/// Answers on a connection until the other end is gone.
pub(crate) async fn connection(stream: UnixStream, services: Services) {
    let spoke = Arc::new(AtomicBool::new(false));
    let service = {
        let spoke = Arc::clone(&spoke);
        service_fn(move |request| {
            spoke.store(true, Ordering::Relaxed);
            let services = services.clone();
            async move { Ok::<_, Infallible>(services.answer(request).await) }
        })
    };
    let connection = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_concurrent_streams(MAX_CALLS)
        .max_header_list_size(MAX_HEADERS)
        .keep_alive_interval(KEEPALIVE)
        .keep_alive_timeout(KEEPALIVE)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    // What breaks a connection is for the other end to say.
    if let Err(_late) = tokio::time::timeout(PATIENCE, connection.as_mut()).await
        && spoke.load(Ordering::Relaxed)
    {
        let _ = connection.await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_not_endless() {
        let told = |text: &str| {
            let mut response = Status::unknown(text).into_http();
            cut(&mut response);
            response.headers()["grpc-message"].to_str().unwrap().to_owned()
        };
        assert_eq!(told("short"), "short");
        for length in MAX_TOLD - 1..MAX_TOLD + 4 {
            assert_eq!(told(&"x".repeat(length)).len(), length.min(MAX_TOLD));
        }
        // Each of these is six bytes on the wire, and stays whole or goes half, but not within its three.
        for before in 0..6 {
            let told = told(&format!("{}{}", "x".repeat(before), "\u{e9}".repeat(1 << 20)));
            assert!(told.len() > MAX_TOLD - 3 && told.len() <= MAX_TOLD);
            assert_eq!((told.len() - before) % 3, 0, "{before}");
        }
    }
}
