//! WebSocket and HTTPUpgrade: the handshakes and the frames.

use super::whole;
use crate::ws::frame::{Decoder, Event, Role};
use crate::ws::handshake::{self, Answer, Early};
use crate::{Step, httpupgrade};

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

pub(super) fn ws_accept(data: &[u8]) {
    for server in &servers() {
        upgrades(data, |bytes| handshake::accept(bytes, server));
    }
}

pub(super) fn ws_answer(data: &[u8]) {
    whole(data, |bytes| handshake::parse_answer(bytes, b"the sample nonce"));
    whole(data, httpupgrade::parse_answer);
}

pub(super) fn ws_frames(data: &[u8]) {
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

pub(super) fn httpupgrade(data: &[u8]) {
    for server in &servers() {
        upgrades(data, |bytes| httpupgrade::accept(bytes, server));
    }
}
