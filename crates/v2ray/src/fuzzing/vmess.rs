//! VMess: headers, answers and the chunks of a body.

use super::whole;
use crate::address::Network;
use crate::vmess::{self, ChunkOpener, Opened, Options, Security, Session};
use crate::{Error, UserId};

pub(super) fn vmess_header(data: &[u8]) {
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

pub(super) fn vmess_wire(data: &[u8]) {
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

pub(super) fn vmess_response(data: &[u8]) {
    if let Some(session) = session(0x0d, 0) {
        whole(data, |bytes| session.open_response(bytes));
    }
}

pub(super) fn vmess_body(data: &[u8]) {
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
