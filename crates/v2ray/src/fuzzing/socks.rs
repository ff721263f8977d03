//! SOCKS: both roles, and its datagrams.

use crate::{Step, socks};

pub(super) fn socks_server(data: &[u8]) {
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

pub(super) fn socks_client(data: &[u8]) {
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

pub(super) fn socks_udp(data: &[u8]) {
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
