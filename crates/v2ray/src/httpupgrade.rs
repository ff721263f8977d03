//! HTTPUpgrade: the handshake of WebSocket without its key and without its frames. After it, bytes pass as they are.

use crate::http::client::push;
use crate::ws::handshake::{
    Answer, BAD_REQUEST, Client, Early, NOT_FOUND, Server, accept_by, answered, begin, check_target, client_address,
    early_data, end, upgrades,
};
use crate::{Error, Protocol, Step};

/// Longest head of either side, bytes.
pub const MAX_HEAD: usize = 12 * 1024;

const PROTOCOL: Protocol = Protocol::HttpUpgrade;

fn malformed(problem: &'static str) -> Error {
    PROTOCOL.malformed(problem)
}

/// Reads a handshake, as the server. Bytes behind the head are the beginning of the stream and must be kept: see `used`.
pub fn accept(bytes: &[u8], server: &Server) -> Step<Answer> {
    accept_by(bytes, MAX_HEAD, PROTOCOL, |head| {
        let in_path = check_target(head, server, PROTOCOL).map_err(|error| (NOT_FOUND, error))?;
        if head.method != "GET" {
            return Err((BAD_REQUEST, malformed("the handshake is not a GET")));
        }
        if !upgrades(&head.headers) {
            return Err((BAD_REQUEST, malformed("the request asks for no upgrade")));
        }
        let reply = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
        Ok(Answer::Upgrade {
            reply: reply.to_vec(),
            early: early_data(server, &head.headers, in_path).unwrap_or_default(),
            client: client_address(&head.headers, &server.trusted),
        })
    })
}

/// The head of a handshake, as the client. With [`Early::Protocol`], early data is simply sent behind the head, without waiting
/// for the answer, and none is to be given here.
///
/// # Errors
/// [`Error::DoesNotFit`] for a path, host or header that cannot be written, or if the head would be above [`MAX_HEAD`].
pub fn request(client: &Client<'_>) -> Result<Vec<u8>, Error> {
    let (mut head, early) = begin(client)?;
    if let Early::Header(name) = &client.early
        && !early.is_empty()
    {
        push(&mut head, name, &early)?;
    }
    head.push_str("Connection: Upgrade\r\nUpgrade: websocket\r\n");
    end(head, MAX_HEAD, PROTOCOL)
}

/// Reads the server's answer. What follows is the stream.
///
/// # Errors
/// [`Error::Refused`] for another status than 101, [`Error::Malformed`] for an answer that upgrades to something else.
pub fn parse_answer(bytes: &[u8]) -> Result<Step<()>, Error> {
    let problem = "the server upgrades to something else";
    answered(bytes, MAX_HEAD, PROTOCOL, problem, |_| true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::whole;

    fn server() -> Server {
        Server {
            path: "/up".into(),
            host: Some("a.example".into()),
            ..Server::default()
        }
    }

    /// Bytes behind the head were lost (xray-core 3152).
    #[test]
    fn bug_xray_3152_bytes_behind_the_head_are_kept() {
        let client = Client {
            host: "a.example",
            path: "/up",
            ..Client::default()
        };
        let sent = request(&client).unwrap();
        let Answer::Upgrade { reply, early, .. } = whole(&sent, |bytes| Ok(accept(bytes, &server()))) else {
            panic!()
        };
        assert!(early.is_empty());
        whole(&reply, parse_answer);
    }

    #[test]
    fn early_data_in_both_of_v2rays_styles() {
        for early in [Early::Header("X-Early".into()), Early::Path] {
            let client = Client {
                host: "a.example",
                path: "/up",
                early: early.clone(),
                early_data: b"hello",
                ..Client::default()
            };
            let sent = request(&client).unwrap();
            let server = Server { early, ..server() };
            let Some(Answer::Upgrade { early, .. }) = accept(&sent, &server).done() else {
                panic!()
            };
            assert_eq!(early, b"hello");
        }
        // As v2ray pads it.
        let sent = "GET /up HTTP/1.1\r\nHost: a.example\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nX-Early: aGVsbG8=\r\n\r\n";
        let server = Server {
            early: Early::Header("x-early".into()),
            ..server()
        };
        let Some(Answer::Upgrade { early, .. }) = accept(sent.as_bytes(), &server).done() else {
            panic!()
        };
        assert_eq!(early, b"hello");
    }

    #[test]
    fn refusals() {
        let ask = |text: &str| match accept(text.as_bytes(), &server()).done() {
            Some(Answer::Refuse { reply, .. }) => reply,
            other => panic!("{other:?}"),
        };
        assert_eq!(ask("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n"), NOT_FOUND);
        assert_eq!(ask("GET /up HTTP/1.1\r\nHost: b.example\r\n\r\n"), NOT_FOUND);
        assert_eq!(ask("GET /up HTTP/1.1\r\nHost: a.example\r\n\r\n"), BAD_REQUEST);
        assert_eq!(ask("nonsense\r\n\r\n"), BAD_REQUEST);
        assert_eq!(ask(&"x".repeat(MAX_HEAD)), BAD_REQUEST);
        assert!(matches!(
            parse_answer(b"HTTP/1.1 404 x\r\n\r\n"),
            Err(Error::Refused { code: 404, .. })
        ));
        assert!(parse_answer(b"HTTP/1.1 101 x\r\n\r\n").is_err());
    }
}
