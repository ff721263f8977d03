use super::*;
use crate::{Domain, Error, Protocol, Step};

/// Feeds `bytes` to a server, `step` at a time, logging in as told, and returns the events.
fn serve(password: bool, right: bool, bytes: &[u8], step: usize) -> Result<(Vec<Event>, usize), Error> {
    let mut server = Server::new(password, true);
    let (mut held, mut events, mut total) = (Vec::new(), Vec::new(), 0);
    for piece in bytes.chunks(step) {
        held.extend_from_slice(piece);
        while let Step::Done { value, used } = server.handle(&held)? {
            held.drain(..used);
            total += used;
            let over = matches!(value, Event::Request { .. } | Event::Refuse { .. });
            let asked = matches!(value, Event::Login { .. });
            events.push(value);
            if asked {
                events.push(Event::Send(server.login(right)?.to_vec()));
                if !right {
                    return Ok((events, total));
                }
            }
            if over {
                assert!(matches!(server.handle(&held), Err(Error::OutOfOrder { .. })));
                return Ok((events, total));
            }
        }
    }
    Ok((events, total))
}

fn to(host: &str, port: u16) -> Destination {
    Destination::tcp(Address::parse(host).unwrap(), port)
}

#[test]
fn connect_with_and_without_login_at_every_boundary() {
    let request = b"\x05\x01\x00\x03\x0bexample.com\x01\xbb";
    let done = Event::Request {
        command: Command::Connect(to("example.com", 443)),
        version: Version::V5,
    };
    let mut open = b"\x05\x02\x00\x02".to_vec();
    open.extend_from_slice(request);
    let mut login = b"\x05\x02\x00\x02\x01\x02me\x03pwd".to_vec();
    login.extend_from_slice(request);
    for step in 1..open.len() + 3 {
        let (events, used) = serve(false, true, &[&open[..], b"pay"].concat(), step).unwrap();
        assert_eq!(events, [Event::Send(vec![5, 0]), done.clone()]);
        assert_eq!(used, open.len());
    }
    for step in 1..login.len() + 1 {
        let (events, used) = serve(true, true, &login, step).unwrap();
        let who = Event::Login {
            user: b"me".to_vec(),
            password: b"pwd".to_vec(),
        };
        assert_eq!(
            events,
            [
                Event::Send(vec![5, 2]),
                who.clone(),
                Event::Send(vec![1, 0]),
                done.clone()
            ]
        );
        assert_eq!(used, login.len());
        let (events, _) = serve(true, false, &login, step).unwrap();
        assert_eq!(events, [Event::Send(vec![5, 2]), who, Event::Send(vec![1, 0xff])]);
    }
}

#[test]
fn socks_4_and_4a_at_every_boundary() {
    let four = b"\x04\x01\x00\x50\xc0\x00\x02\x01user\x00";
    let four_a = b"\x04\x01\x00\x50\x00\x00\x00\x09\x00example.com\x00";
    for (bytes, host) in [(&four[..], "192.0.2.1"), (&four_a[..], "example.com")] {
        for step in 1..=bytes.len() {
            let (events, used) = serve(false, true, bytes, step).unwrap();
            assert_eq!(
                events,
                [Event::Request {
                    command: Command::Connect(to(host, 80)),
                    version: Version::V4
                }]
            );
            assert_eq!(used, bytes.len());
        }
    }
    let (events, _) = serve(true, true, four, 100).unwrap();
    assert!(matches!(&events[..], [Event::Refuse { reply, .. }] if reply[..2] == [0, 0x5b]));
    let bind = b"\x04\x02\x00\x50\xc0\x00\x02\x01\x00";
    assert!(matches!(
        &serve(false, true, bind, 9).unwrap().0[..],
        [Event::Refuse { .. }]
    ));
    for limit in [
        &b"\x04\x01\x00\x50\xc0\x00\x02\x01"[..],
        b"\x04\x01\x00\x50\x00\x00\x00\x01\x00",
    ] {
        let endless = [limit, &[b'a'; 300]].concat();
        assert!(matches!(serve(false, true, &endless, 1), Err(Error::TooLong { .. })));
    }
    let empty = b"\x04\x01\x00\x50\x00\x00\x00\x01\x00\x00";
    assert_eq!(serve(false, true, empty, 1), Err(Error::DomainLength { got: 0 }));
}

#[test]
fn refusals() {
    let (events, _) = serve(true, true, b"\x05\x01\x00", 1).unwrap();
    assert!(matches!(&events[..], [Event::Refuse { reply, .. }] if reply == b"\x05\xff"));
    let (events, _) = serve(false, true, b"\x05\x00", 1).unwrap();
    assert!(matches!(&events[..], [Event::Refuse { reply, .. }] if reply == b"\x05\xff"));
    let bind = b"\x05\x01\x00\x05\x02\x00\x01\x7f\x00\x00\x01\x00\x50";
    let (events, _) = serve(false, true, bind, 1).unwrap();
    assert!(matches!(&events[1], Event::Refuse { reply, .. } if reply[..2] == [5, 7]));
    // A type of address that nobody knows (RFC 1928 section 6).
    for kind in [0, 2, 5, 255] {
        let unknown = [b"\x05\x01\x00\x05\x01\x00", &[kind][..], b"\x7f\x00\x00\x01\x00\x50"].concat();
        let (events, _) = serve(false, true, &unknown, 1).unwrap();
        let Some(Event::Refuse { reply, error }) = events.get(1) else {
            panic!("{events:?}");
        };
        assert_eq!(reply[..], [5, 8, 0, 1, 0, 0, 0, 0, 0, 0]);
        assert!(matches!(error, Error::Field { field: "the address type", got, .. } if *got == u64::from(kind)));
    }
    let mut no_udp = Server::new(false, false);
    no_udp.handle(b"\x05\x01\x00").unwrap();
    let got = no_udp.handle(b"\x05\x03\x00\x01\x00\x00\x00\x00\x00\x00").unwrap();
    assert!(matches!(got.done(), Some(Event::Refuse { reply, .. }) if reply[..2] == [5, 7]));
    assert!(Server::new(false, true).handle(b"GET / HTTP/1.1").is_err());
    assert!(Server::new(false, true).login(true).is_err());
}

#[test]
fn replies() {
    let bound = "192.0.2.7:1080".parse().unwrap();
    assert_eq!(
        Reply::Succeeded.encode(Version::V5, bound),
        b"\x05\x00\x00\x01\xc0\x00\x02\x07\x04\x38"
    );
    assert_eq!(
        Reply::Succeeded.encode(Version::V4, bound),
        b"\x00\x5a\x04\x38\xc0\x00\x02\x07"
    );
    assert_eq!(
        Reply::Failure.encode(Version::V4, "[::1]:1".parse().unwrap()),
        b"\x00\x5b\x00\x01\x00\x00\x00\x00"
    );
    assert_eq!(
        Reply::HostUnreachable.encode(Version::V5, "[::1]:1".parse().unwrap())[..4],
        [5, 4, 0, 4]
    );
}

/// Client and server against each other, one byte at a time.
#[test]
fn the_two_sides_understand_each_other() {
    for password in [false, true] {
        for command in [
            Command::Connect(to("2001:db8::1", 22)),
            Command::UdpAssociate(Destination::udp(Address::parse("0.0.0.0").unwrap(), 0)),
        ] {
            let login = (&b"user"[..], &b"secret"[..]);
            let (mut client, mut up) = Client::new(&command, Some(login)).unwrap();
            let mut server = Server::new(password, true);
            let (mut down, mut ready) = (Vec::new(), false);
            for _ in 0..20 {
                for n in 1..=up.len() {
                    let Step::Done { value, used } = server.handle(&up[..n]).unwrap() else {
                        continue;
                    };
                    assert_eq!(used, n);
                    match value {
                        Event::Send(bytes) => down = bytes,
                        Event::Login { user, password } => {
                            down = server.login((&user[..], &password[..]) == login).unwrap().to_vec();
                        }
                        Event::Request { command: got, version } => {
                            assert_eq!(got, command);
                            down = Reply::Succeeded.encode(version, "127.0.0.1:9".parse().unwrap());
                        }
                        Event::Refuse { error, .. } => panic!("{error}"),
                    }
                }
                up.clear();
                for n in 1..=down.len() {
                    let Step::Done { value, used } = client.handle(&down[..n]).unwrap() else {
                        continue;
                    };
                    assert_eq!(used, n);
                    match value {
                        ClientEvent::Send(bytes) => up = bytes,
                        ClientEvent::Ready { port, .. } => {
                            assert_eq!(port, 9);
                            ready = true;
                        }
                    }
                }
                down.clear();
            }
            assert!(ready, "{password} {command:?}");
        }
    }
}

#[test]
fn the_client_reports_refusals() {
    let command = Command::Connect(to("a.example", 1));
    let client = || Client::new(&command, None).unwrap().0;
    assert_eq!(client().handle(b"\x05\xff"), Err(Protocol::Socks.unknown_user()));
    // A server may not choose what was not offered.
    assert!(matches!(client().handle(b"\x05\x02"), Err(Error::Field { got: 2, .. })));
    let mut c = client();
    c.handle(b"\x05\x00").unwrap();
    assert_eq!(
        c.handle(b"\x05\x05\x00"),
        Err(Error::Refused {
            protocol: Protocol::Socks,
            code: 5
        })
    );
    assert!(matches!(
        Client::new(&command, Some((&[0; 256], b""))),
        Err(Error::DoesNotFit { .. })
    ));
}

/// Datagrams of 0 to 9 bytes once crashed a server.
#[test]
fn bug_socks_udp_of_0_to_9_bytes_is_refused() {
    let whole = b"\x00\x00\x00\x01\x7f\x00\x00\x01\x00\x35data";
    for n in 0..10 {
        assert!(udp::decode(&whole[..n]).is_err(), "{n}");
        assert!(udp::decode(&vec![0xff; n]).is_err(), "{n}");
    }
    for n in 10..=whole.len() {
        let (to, payload) = udp::decode(&whole[..n]).unwrap();
        assert_eq!((to.port, payload), (53, 10..n));
    }
    assert!(matches!(
        udp::decode(b"\x00\x00\x01\x01\x7f\x00\x00\x01\x00\x35"),
        Err(Error::Field { got: 1, .. })
    ));
    let mut out = Vec::new();
    let longest = Address::Domain(Domain::new(&"a".repeat(255)).unwrap());
    udp::write_head(&longest, 53, &mut out);
    assert_eq!(out.len(), udp::MAX_HEAD);
    assert_eq!(
        udp::decode(&out).unwrap(),
        (Destination::udp(longest, 53), out.len()..out.len())
    );
}
