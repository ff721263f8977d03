//! Transports that carry each stream by a request of HTTP/2, many of them on one connection: what gRPC and V2Ray's HTTP/2 share.

mod pool;

use std::net::IpAddr;
use std::sync::Arc;

use http::HeaderMap;

use super::http2::{Exchange, Options, Server};
use super::{Accepted, Arrival, Many};
use crate::error::{Error, Pending};
use crate::stream::Stream;

pub(super) use pool::Pool;

/// What a server does with requests.
pub(super) trait Requests: Send + Sync {
    /// Headers of which one must be present for `X-Forwarded-For` to be believed.
    fn trusted(&self) -> &[String];

    /// The stream that a request carries. `None`: it was refused, or the client has taken it back.
    fn serve(&self, exchange: Exchange) -> Option<Stream>;
}

/// Begins as the server of a connection.
pub(super) async fn accept(
    requests: Arc<dyn Requests>,
    accepted: Accepted,
    options: Options,
) -> Result<Arrival, Error> {
    let Accepted {
        stream,
        source,
        local,
        forwarded,
        agreed,
    } = accepted;
    let server = Server::begin(stream, options).await?;
    let like = move |stream| Accepted {
        stream,
        source,
        local,
        forwarded,
        agreed: agreed.clone(),
    };
    Ok(Arrival::Many(Box::new(Connection {
        server,
        requests,
        like: Box::new(like),
    })))
}

/// A client's connection.
struct Connection {
    server: Server,
    requests: Arc<dyn Requests>,
    /// An arrival like that of the connection, over another stream.
    like: Box<dyn Fn(Stream) -> Accepted + Send>,
}

impl Many for Connection {
    fn next(&mut self) -> Pending<'_, Option<Accepted>> {
        Box::pin(async move {
            while let Some(exchange) = self.server.next().await? {
                let client = client_address(&exchange.request.headers, self.requests.trusted());
                if let Some(stream) = self.requests.serve(exchange) {
                    let mut accepted = (self.like)(stream);
                    accepted.forwarded_for(client);
                    return Ok(Some(accepted));
                }
            }
            Ok(None)
        })
    }
}

/// The client's address, as a server in front tells it, if one of `trusted` is present.
fn client_address(headers: &HeaderMap, trusted: &[String]) -> Option<IpAddr> {
    if !trusted.iter().any(|name| headers.contains_key(name.as_str())) {
        return None;
    }
    let first = headers.get("x-forwarded-for")?.to_str().ok()?;
    first.split(',').next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn only_a_trusted_header_says_who_the_client_is() {
        let mut headers = HeaderMap::new();
        headers.insert("x-forwarded-for", HeaderValue::from_static("192.0.2.7, 10.0.0.1"));
        let told = |headers: &HeaderMap, trusted: &[&str]| {
            let trusted: Vec<String> = trusted.iter().map(|&name| name.to_owned()).collect();
            client_address(headers, &trusted)
        };
        assert_eq!(told(&headers, &[]), None);
        assert_eq!(told(&headers, &["X-Front"]), None);
        headers.insert("x-front", HeaderValue::from_static(""));
        assert_eq!(told(&headers, &["X-Front"]), Some([192, 0, 2, 7].into()));
        assert_eq!(told(&headers, &["X-Forwarded-For"]), Some([192, 0, 2, 7].into()));
        headers.insert("x-forwarded-for", HeaderValue::from_static("nonsense"));
        assert_eq!(told(&headers, &["X-Front"]), None);
    }
}
