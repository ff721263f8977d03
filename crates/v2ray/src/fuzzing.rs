//! One entry a parser, for the fuzz targets and for the test that replays their corpora. Not part of the public interface.
//!
//! Every entry checks more than that nothing panics: that a message is the same whatever follows it, and that no shorter
//! beginning of it is taken for a message or for an error.

#[cfg(test)]
mod corpora;
mod shadowsocks;

use std::fmt::Debug;

use crate::address::Network;
use crate::config::{File, Options as LoadOptions, load};
use crate::http::body::Body;
use crate::http::{front, head, proxy};
use crate::link::Link;
use crate::vless::fallback::{Fallback, Fallbacks};
use crate::vmess::{self, ChunkOpener, Opened, Options, Security, Session};
use crate::ws::frame::{Decoder, Event, Role};
use crate::ws::handshake::{self, Answer, Early};
use crate::{
    Error, Protocol, Step, UserId, gun, httpupgrade, mux, packet_addr as packets, proxy_protocol, socks, trojan, vless,
};

/// An entry: its name, which is also that of its fuzz target and corpus, and the function.
pub type Entry = (&'static str, fn(&[u8]));

/// All entries.
pub const ENTRIES: &[Entry] = &[
    ("trojan_packet", trojan_packet),
    ("trojan_request", trojan_request),
    ("vless_request", vless_request),
    ("vless_response", vless_response),
    ("vless_packet", vless_packet),
    ("vless_fallback", vless_fallback),
    ("vmess_header", vmess_header),
    ("vmess_wire", vmess_wire),
    ("vmess_response", vmess_response),
    ("vmess_body", vmess_body),
    ("shadowsocks_2022", shadowsocks::edition2022),
    ("shadowsocks_packet", shadowsocks::packet),
    ("shadowsocks_stream", shadowsocks::stream),
    ("socks_server", socks_server),
    ("socks_client", socks_client),
    ("socks_udp", socks_udp),
    ("http_front", http_front),
    ("http_request", http_request),
    ("http_response", http_response),
    ("http_body", http_body),
    ("mux_frames", mux_frames),
    ("packet_addr", packet_addr),
    ("proxy_protocol", proxy_protocol),
    ("ws_accept", ws_accept),
    ("ws_answer", ws_answer),
    ("ws_frames", ws_frames),
    ("httpupgrade", httpupgrade),
    ("gun", gun_messages),
    ("gun_names", gun_names),
    ("user_id", user_id),
    ("config", config),
    ("link", link),
];

/// Runs the entry of this name.
///
/// # Panics
/// If there is none, or if the entry finds a fault.
pub fn run(name: &str, data: &[u8]) {
    match ENTRIES.iter().find(|(entry, _)| *entry == name) {
        Some((_, entry)) => entry(data),
        None => panic!("there is no fuzz entry {name}"),
    }
}

/// Checks a parser of whole messages.
fn whole<T: Debug + PartialEq>(data: &[u8], parse: impl Fn(&[u8]) -> Result<Step<T>, Error>) {
    match parse(data) {
        Ok(Step::Done { value, used }) => {
            assert!(used <= data.len(), "more was used than there is");
            assert_eq!(
                parse(&data[..used]),
                Ok(Step::Done { value, used }),
                "what follows made a difference"
            );
            // All beginnings of short messages, some of long ones.
            for n in (0..used).step_by(1 + used / 64) {
                match parse(&data[..n]) {
                    Ok(Step::More(more)) => assert!(more > 0 && n + more <= used, "{more} more than {n} of {used}"),
                    other => panic!("{n} of {used} bytes gave {other:?}"),
                }
            }
        }
        Ok(Step::More(more)) => assert!(more > 0, "nothing more was asked for"),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn trojan_packet(data: &[u8]) {
    whole(data, trojan::packet::decode);
    if let Ok(Step::Done {
        value: (peer, payload), ..
    }) = trojan::packet::decode(data)
    {
        let mut again = Vec::new();
        if trojan::packet::write_head(&peer, payload.len(), &mut again).is_err() {
            assert!(payload.len() > trojan::packet::MAX_WRITE);
            return;
        }
        let start = again.len();
        again.extend_from_slice(&data[payload]);
        let used = again.len();
        let value = (peer, start..used);
        assert_eq!(trojan::packet::decode(&again), Ok(Step::Done { value, used }));
    }
}

fn trojan_request(data: &[u8]) {
    whole(data, trojan::Request::decode);
    if let Ok(Step::Done { value, .. }) = trojan::Request::decode(data) {
        let mut users = trojan::Users::new();
        assert!(users.insert(value.key.clone(), ()).is_ok());
        assert_eq!(trojan::first::inspect(data, &users), trojan::first::First::User(&()));
        let mut again = Vec::new();
        value.encode(&mut again);
        let used = again.len();
        assert_eq!(trojan::Request::decode(&again), Ok(Step::Done { value, used }));
    }
}

fn vless_request(data: &[u8]) {
    whole(data, vless::Request::decode);
    if let Ok(Step::Done { value, .. }) = vless::Request::decode(data) {
        let mut again = Vec::new();
        value.encode(&mut again);
        let used = again.len();
        assert_eq!(vless::Request::decode(&again), Ok(Step::Done { value, used }));
    }
}

fn vless_response(data: &[u8]) {
    whole(data, vless::decode_response);
}

fn mux_frames(data: &[u8]) {
    whole(data, mux::decode);
    // All frames that follow each other, each written again: what comes back says the same, without padding.
    let mut rest = data;
    while let Ok(Step::Done { value, used }) = mux::decode(rest) {
        let bytes = value.data.clone().map(|range| &rest[range]);
        let (mut out, mut rewritten) = (Vec::new(), true);
        match (&value.status, bytes) {
            (mux::Status::New { to, global }, bytes) => {
                assert!(mux::push_new(&mut out, value.id, to, *global, bytes).is_ok());
            }
            (mux::Status::Keep { peer: Some(peer) }, Some(bytes)) if peer.network == Network::Udp => {
                assert!(mux::push_packet(&mut out, value.id, peer, bytes).is_ok());
            }
            (mux::Status::Keep { peer: None }, Some(bytes)) => {
                assert!(mux::push_keep(&mut out, value.id, bytes).is_ok());
            }
            (mux::Status::End, None) => mux::push_end(&mut out, value.id, value.error),
            _ => rewritten = false,
        }
        if rewritten {
            let again = mux::decode(&out).map(Step::done);
            let Ok(Some(again)) = again else {
                panic!("{value:?} was written as {again:?}");
            };
            assert_eq!((again.id, &again.status), (value.id, &value.status));
            assert_eq!(again.data.map(|range| &out[range]), bytes);
        }
        rest = &rest[used..];
    }
}

fn packet_addr(data: &[u8]) {
    whole(data, packets::decode_stream);
    if let Ok((peer, at)) = packets::decode(data) {
        let mut out = Vec::new();
        packets::push_head(&mut out, peer);
        out.extend_from_slice(&data[at..]);
        assert_eq!(
            packets::decode(&out).map(|(again, at)| (again, out[at..].to_vec())),
            Ok((peer, data[at..].to_vec()))
        );
    }
}

fn vless_packet(data: &[u8]) {
    whole(data, |bytes| Ok(vless::packet::decode(bytes)));
}

fn vless_fallback(data: &[u8]) {
    let entry = |name: &str, alpn: &str, path: &str, target: u8| Fallback {
        name: name.into(),
        alpn: alpn.into(),
        path: path.into(),
        target,
    };
    let fallbacks = Fallbacks::new([
        entry("", "", "", 1),
        entry("", "", "/a", 2),
        entry("a.example", "h2", "/b", 3),
    ]);
    let mut parts = data.splitn(3, |byte| *byte == 0);
    let mut text = || String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
    let (name, alpn) = (text(), text());
    let first = parts.next().unwrap_or_default();
    let choice = fallbacks.choose(&name, &alpn, first);
    assert!(
        choice.is_ok() || alpn.eq_ignore_ascii_case("h2"),
        "there is a default entry for all but one ALPN"
    );
    // Nothing is waited for once 64 bytes have come.
    assert!(first.len() < 64 || !fallbacks.wants_more(&name, &alpn, first));
    let mut users = vless::Users::new();
    assert!(users.insert(UserId::from_bytes([7; 16]), ()).is_ok());
    let _ = vless::first::inspect(first, &users);
}

fn vmess_header(data: &[u8]) {
    let _ = vmess::parse_header(data);
    let mut sealed = data.to_vec();
    sealed.extend_from_slice(&vmess::fnv1a(data).to_be_bytes());
    if let Ok((session, command)) = vmess::parse_header(&sealed) {
        assert_eq!(session.network, command.network());
        for direction in [ChunkOpener::request, ChunkOpener::response] {
            assert_eq!(
                direction(&session).is_ok_and(|opener| opener.is_none()),
                session.is_raw()
            );
        }
    }
}

fn vmess_wire(data: &[u8]) {
    // The id, key and time under which the test vector in the corpus was sealed.
    const NOW: i64 = 1_700_000_000;
    let Ok(id) = UserId::parse("b831381d-6324-4d53-ad4f-8cda48b30811") else {
        return;
    };
    let Ok(users) = vmess::Users::from_list([(id, ())]) else {
        return;
    };
    whole(data, |bytes| {
        let mut opener = vmess::RequestOpener::new();
        let step = opener.handle(bytes, NOW, &users, &mut |_| Ok(()))?;
        Ok(step.map(|accepted| accepted.command))
    });
}

fn session(options: u8, which: u8) -> Option<Session> {
    let mut random = [0x55; 33];
    for (i, byte) in random[..32].iter_mut().enumerate() {
        *byte = 0x10 + i as u8;
    }
    let security = [Security::Aes128Gcm, Security::ChaCha20Poly1305, Security::None][usize::from(which % 3)];
    let network = if which & 0x80 == 0 { Network::Tcp } else { Network::Udp };
    Session::new(&random, security, Options(options), network).ok()
}

fn vmess_response(data: &[u8]) {
    if let Some(session) = session(0x0d, 0) {
        whole(data, |bytes| session.open_response(bytes));
    }
}

fn vmess_body(data: &[u8]) {
    let [options, which, rest @ ..] = data else {
        return;
    };
    let open = |step: usize| -> Option<(Vec<u8>, Result<bool, Error>)> {
        let mut opener = ChunkOpener::request(&session(*options, *which)?).ok()??;
        let (mut held, mut plain) = (Vec::new(), Vec::new());
        for piece in rest.chunks(step) {
            held.extend_from_slice(piece);
            loop {
                match opener.open_next(&mut held) {
                    Ok(Opened::Chunk { payload, used }) => {
                        plain.extend_from_slice(&held[payload]);
                        held.drain(..used);
                    }
                    Ok(Opened::End { .. }) => return Some((plain, Ok(true))),
                    Ok(Opened::More(more)) => {
                        assert!(more > 0);
                        break;
                    }
                    Err(error) => return Some((plain, Err(error))),
                }
            }
        }
        Some((plain, Ok(false)))
    };
    let all = open(rest.len().max(1));
    assert_eq!(open(1), all, "pieces made a difference");
}

fn socks_server(data: &[u8]) {
    let [flags, rest @ ..] = data else {
        return;
    };
    let run = |step: usize| {
        let mut server = socks::Server::new(flags & 1 == 1, flags & 2 == 2);
        let (mut held, mut events) = (Vec::new(), Vec::new());
        for piece in rest.chunks(step) {
            held.extend_from_slice(piece);
            loop {
                match server.handle(&held) {
                    Ok(Step::Done { value, used }) => {
                        held.drain(..used);
                        let over = matches!(value, socks::Event::Request { .. } | socks::Event::Refuse { .. });
                        let asked = matches!(value, socks::Event::Login { .. });
                        events.push(Ok(value));
                        if over || (asked && server.login(true).is_err()) {
                            return events;
                        }
                    }
                    Ok(Step::More(more)) => {
                        assert!(more > 0);
                        break;
                    }
                    Err(error) => {
                        events.push(Err(error));
                        return events;
                    }
                }
            }
        }
        events
    };
    assert_eq!(run(1), run(rest.len().max(1)), "pieces made a difference");
}

fn socks_client(data: &[u8]) {
    let to = crate::Destination::tcp(std::net::IpAddr::from([192, 0, 2, 1]), 80);
    let Ok((mut client, _)) = socks::Client::new(&socks::Command::Connect(to), Some((b"a", b"b"))) else {
        return;
    };
    let mut at = 0;
    while let Ok(Step::Done { used, .. }) = client.handle(&data[at..]) {
        assert!(used > 0);
        at += used;
    }
}

fn socks_udp(data: &[u8]) {
    if let Ok((from, payload)) = socks::udp::decode(data) {
        let mut again = Vec::new();
        socks::udp::write_head(&from.address, from.port, &mut again);
        again.extend_from_slice(&data[payload.clone()]);
        let (to, range) = match socks::udp::decode(&again) {
            Ok(decoded) => decoded,
            Err(error) => panic!("what was written is not read: {error}"),
        };
        assert_eq!((to, &again[range]), (from, &data[payload]));
    }
}

fn http_front(data: &[u8]) {
    whole(data, front::skip_response);
    let request = front::Request::default();
    // Refusals may come early, so only what is let in is held to the rules of whole messages.
    if let Ok(Step::Done { .. }) = request.accept(data) {
        whole(data, |bytes| Ok(request.accept(bytes).unwrap_or(Step::More(1))));
    }
    let again = request.write(&mut |n| data.len() % n);
    let used = again.len();
    assert_eq!(request.accept(&again), Ok(Step::Done { value: (), used }));
}

fn http_request(data: &[u8]) {
    whole(data, |bytes| proxy::decode(bytes, false));
    whole(data, |bytes| proxy::decode(bytes, true));
    if let Ok(Step::Done { value, .. }) = proxy::decode(data, true)
        && let proxy::Command::Forward(forward) = value.command
    {
        // What is sent on is one request with the same border, or the next server would see another. It may have two lines
        // more than what came.
        if forward.head.iter().filter(|byte| **byte == b'\n').count() > head::MAX_HEADERS {
            return;
        }
        match head::parse_request(&forward.head, usize::MAX, Protocol::Http) {
            Ok(Step::Done { value, used }) => {
                assert_eq!(used, forward.head.len());
                assert_eq!(Body::of_request(&value), Ok(forward.body));
            }
            other => panic!("what is sent on is no request: {other:?}"),
        }
    }
}

fn http_response(data: &[u8]) {
    let Ok(Step::Done { value, .. }) = proxy::decode(b"GET http://a/ HTTP/1.1\r\n\r\n", false) else {
        return;
    };
    if let proxy::Command::Forward(request) = value.command {
        whole(data, |bytes| proxy::decode_response(bytes, &request));
    }
    whole(data, crate::http::client::parse_connected);
}

fn http_body(data: &[u8]) {
    let head = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
    let Ok(Step::Done { value, .. }) = head::parse_request(head, 99, Protocol::Http) else {
        return;
    };
    let run = |step: usize| {
        let mut body = Body::of_request(&value)?;
        let mut used = 0;
        for piece in data.chunks(step) {
            used += body.advance(piece)?;
            if body.is_over() {
                break;
            }
        }
        Ok::<_, Error>((used, body.is_over()))
    };
    assert_eq!(run(1), run(data.len().max(1)), "pieces made a difference");
}

fn proxy_protocol(data: &[u8]) {
    whole(data, proxy_protocol::decode);
}

fn servers() -> [handshake::Server; 3] {
    [Early::Protocol, Early::Header("X-Early".into()), Early::Path].map(|early| handshake::Server {
        path: "/ws".into(),
        early,
        trusted: vec!["X-Front".into()],
        ..handshake::Server::default()
    })
}

/// Refusals may come early, so only upgrades are held to the rules of whole messages.
fn upgrades(data: &[u8], accept: impl Fn(&[u8]) -> Step<Answer>) {
    if let Step::Done {
        value: Answer::Upgrade { .. },
        ..
    } = accept(data)
    {
        whole(data, |bytes| Ok(accept(bytes)));
    }
}

fn ws_accept(data: &[u8]) {
    for server in &servers() {
        upgrades(data, |bytes| handshake::accept(bytes, server));
    }
}

fn ws_answer(data: &[u8]) {
    whole(data, |bytes| handshake::parse_answer(bytes, b"the sample nonce"));
    whole(data, httpupgrade::parse_answer);
}

fn ws_frames(data: &[u8]) {
    for role in [Role::Client, Role::Server] {
        let run = |step: usize| {
            let mut decoder = Decoder::new(role);
            let (mut payload, mut events) = (Vec::new(), Vec::new());
            for piece in data.chunks(step) {
                let mut piece = piece.to_vec();
                let mut at = 0;
                loop {
                    match decoder.handle(&mut piece[at..]) {
                        Ok((Event::Data(range), used)) => {
                            payload.extend_from_slice(&piece[at..][range]);
                            at += used;
                        }
                        Ok((Event::More, used)) => {
                            assert_eq!(at + used, piece.len(), "bytes were left");
                            break;
                        }
                        Ok((event, used)) => {
                            let over = matches!(event, Event::Close(_));
                            events.push(Ok(event));
                            at += used;
                            if over {
                                return (payload, events);
                            }
                        }
                        Err(error) => {
                            events.push(Err(error));
                            return (payload, events);
                        }
                    }
                }
            }
            (payload, events)
        };
        assert_eq!(run(1), run(data.len().max(1)), "pieces made a difference");
    }
}

fn httpupgrade(data: &[u8]) {
    for server in &servers() {
        upgrades(data, |bytes| httpupgrade::accept(bytes, server));
    }
}

fn gun_messages(data: &[u8]) {
    for kind in [gun::Kind::Hunk, gun::Kind::MultiHunk] {
        let run = |step: usize| {
            let mut decoder = gun::Decoder::new(kind);
            let mut payload = Vec::new();
            for piece in data.chunks(step) {
                let mut at = 0;
                loop {
                    match decoder.handle(&piece[at..]) {
                        Ok((gun::Event::Data(range), used)) => {
                            assert!(used > 0 && !range.is_empty(), "nothing was read");
                            payload.extend_from_slice(&piece[at..][range]);
                            at += used;
                        }
                        Ok((gun::Event::More, used)) => {
                            assert_eq!(at + used, piece.len(), "bytes were left");
                            break;
                        }
                        Err(error) => return (payload, Err(error)),
                    }
                }
            }
            (payload, Ok(decoder.is_between()))
        };
        let whole = run(data.len().max(1));
        assert_eq!(run(1), whole, "pieces made a difference");
        assert!(whole.0.len() <= data.len());
        if kind == gun::Kind::Hunk && whole.1 == Ok(true) && !whole.0.is_empty() {
            let mut again = Vec::new();
            assert!(gun::write_head(whole.0.len(), &mut again).is_ok());
            again.extend_from_slice(&whole.0);
            let mut decoder = gun::Decoder::new(gun::Kind::MultiHunk);
            let head = gun::head_len(whole.0.len());
            assert_eq!(
                decoder.handle(&again),
                Ok((gun::Event::Data(head..again.len()), again.len()))
            );
        }
    }
}

fn gun_names(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (name, path) = text.split_once('\0').unwrap_or((&text, ""));
    let names = gun::Names::new(name);
    let _ = names.call(path);
    for kind in [gun::Kind::Hunk, gun::Kind::MultiHunk] {
        let path = names.path(kind);
        assert!(path.starts_with('/') && path.bytes().all(|byte| byte.is_ascii_graphic()));
        let one = names.path(gun::Kind::Hunk) == names.path(gun::Kind::MultiHunk);
        let expected = if one { gun::Kind::MultiHunk } else { kind };
        assert_eq!(
            names.call(path),
            gun::Call::Method(expected),
            "a server does not know its own path"
        );
    }
}

fn user_id(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Ok(id) = UserId::parse(&text) {
        assert_eq!(UserId::parse(&id.to_string()), Ok(id));
    }
}

/// A file, or several with zero bytes between them.
fn config(data: &[u8]) {
    let files: Vec<File<'_>> = data
        .split(|b| *b == 0)
        .take(3)
        .map(|text| File { name: "f", text })
        .collect();
    let env = |name: &str| (name == "PORT").then(|| "1".to_owned());
    let errors = [false, true].map(|strict| {
        let loaded = load(&files, &LoadOptions { strict, env: &env });
        assert_eq!(
            loaded.config.is_none(),
            loaded.errors().next().is_some(),
            "a configuration and an error, or neither"
        );
        for problem in &loaded.problems {
            let told = problem.to_string();
            assert!(!told.chars().any(char::is_control), "control characters in {told:?}");
        }
        loaded.config.is_none()
    });
    assert!(errors[1] || !errors[0], "strict reading accepts what the other refuses");
}

fn link(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Link::parse(text) {
        Ok(link) => {
            assert_eq!(
                Link::parse(&link.to_string()).as_ref(),
                Ok(&link),
                "writing a link lost something"
            );
            if let Ok((outbound, _)) = link.to_outbound() {
                assert!(
                    Link::from_outbound(&outbound).is_ok(),
                    "an outbound of a link has no link"
                );
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
