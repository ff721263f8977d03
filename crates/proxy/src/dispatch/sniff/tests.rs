use std::task::Waker;

use super::*;
use crate::dispatch::User;
use crate::settings::Settings;
use crate::udp::Waiting;

fn sniffer(members: &str) -> Arc<Sniffer> {
    let text = format!(
        r#"{{"inbounds": [{{"port": 1, "protocol": "socks", "sniffing": {{"enabled": true, {members}}}}}],
            "outbounds": [{{"protocol": "freedom"}}]}}"#
    );
    let settings = Settings::of_text(&text);
    let sniffing = settings.inbounds[0].sniffing.as_ref().unwrap();
    Arc::new(Sniffer::new("inbounds[0]", sniffing, &Lists::default()).unwrap())
}

fn to(text: &str) -> Destination {
    Destination::tcp(Address::parse(text).unwrap(), 443)
}

fn found(kind: Kind, name: &str) -> Sniffed {
    let domain = (!name.is_empty()).then(|| Domain::new(name).unwrap());
    Sniffed::from(Some(Found { kind, domain }))
}

/// What becomes of a target: what is dialled, the name beside it, and the protocol.
fn aims(members: &str, target: &str, fake: Fake, sniffed: Sniffed) -> Result<(String, String, String), Error> {
    let sniffing = Sniffing {
        sniffer: sniffer(members),
        to: to(target),
        fake,
        reads: true,
        with_attributes: false,
    };
    let aim = sniffing.aim(sniffed)?;
    assert_eq!(aim.asked, to(target));
    assert_eq!(aim.dial.port, 443);
    let name = aim.name.map(|name| name.to_string()).unwrap_or_default();
    Ok((
        aim.dial.address.to_string(),
        name,
        aim.protocol.unwrap_or_default().to_owned(),
    ))
}

#[test]
fn a_fake_address_is_always_replaced_by_its_own_name() {
    let own = || Fake::Name("own.example".into());
    for members in [
        r#""destOverride": ["tls"]"#,
        r#""destOverride": ["fakedns"], "routeOnly": true"#,
        r#""destOverride": ["tls"], "domainsExcluded": ["own", "other"], "ipsExcluded": ["198.18.0.0/15"]"#,
        r#""metadataOnly": true"#,
    ] {
        let aim = aims(members, "198.18.0.9", own(), found(Kind::Tls, "other.example")).unwrap();
        assert_eq!(aim, ("own.example".into(), String::new(), "tls".into()), "{members}");
        let aim = aims(members, "198.18.0.9", own(), Sniffed::default()).unwrap();
        assert_eq!(aim, ("own.example".into(), String::new(), String::new()), "{members}");
    }
}

#[test]
fn a_fake_address_that_is_forgotten_leads_to_the_name_that_was_found_or_nowhere() {
    let members = r#""destOverride": ["fakedns"], "routeOnly": true"#;
    let aim = aims(members, "198.18.0.9", Fake::Unknown, found(Kind::Tls, "other.example")).unwrap();
    assert_eq!(aim.0, "other.example");
    for sniffed in [Sniffed::default(), found(Kind::Bittorrent, ""), found(Kind::Tls, "")] {
        let error = aims(members, "198.18.0.9", Fake::Unknown, sniffed).unwrap_err();
        assert!(error.to_string().contains("198.18.0.9"), "{error}");
    }
}

#[test]
fn a_name_replaces_a_name_too() {
    let members = r#""destOverride": ["http"]"#;
    let aim = aims(members, "asked.example", Fake::No, found(Kind::Http, "other.example")).unwrap();
    assert_eq!(aim, ("other.example".into(), String::new(), "http1".into()));
    let aim = aims(members, "192.0.2.1", Fake::No, found(Kind::Tls, "other.example")).unwrap();
    assert_eq!(aim, ("192.0.2.1".into(), String::new(), "tls".into()));
}

#[test]
fn bytes_are_looked_at_where_something_depends_on_them() {
    let (nothing, protocol) = (
        Asked::default(),
        Asked {
            protocol: true,
            ..Asked::default()
        },
    );
    let attributes = Asked {
        attributes: true,
        ..Asked::default()
    };
    for (members, asked, tcp, udp) in [
        (r#""destOverride": ["tls"]"#, nothing, true, false),
        (r#""destOverride": ["http", "tls"]"#, protocol, true, true),
        (r#""destOverride": ["quic"]"#, nothing, false, true),
        (r#""destOverride": ["quic"]"#, attributes, true, true),
        (r#""destOverride": ["fakedns"]"#, nothing, false, false),
        (r#""destOverride": ["fakedns"]"#, attributes, true, false),
        (r#""destOverride": ["fakedns"]"#, protocol, true, true),
        (
            r#""destOverride": ["tls"], "metadataOnly": true"#,
            protocol,
            false,
            false,
        ),
    ] {
        let sniffer = sniffer(members);
        let reads = [Network::Tcp, Network::Udp].map(|network| sniffer.reads(network, asked));
        assert_eq!(reads, [tcp, udp], "{members} {asked:?}");
    }
}

/// A client's first datagram, of which more must follow.
fn first() -> Vec<u8> {
    unhex(include_str!("first.hex"))
}

/// The packet of RFC 9001 appendix A.2, which says all by itself.
fn whole() -> Vec<u8> {
    unhex(include_str!("whole.hex"))
}

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.trim().chars().map(|c| c.to_digit(16).unwrap() as u8).collect();
    digits.chunks(2).map(|two| two[0] << 4 | two[1]).collect()
}

fn look(watch: &mut Watch, waiting: &Waiting) -> std::task::Poll<Option<Kind>> {
    let mut cx = std::task::Context::from_waker(Waker::noop());
    watch.poll(&mut cx, waiting).map(|found| found.map(|found| found.kind))
}

/// A client of which nothing is known.
fn nobody() -> Origin {
    Origin {
        inbound: "in".into(),
        ..Origin::default()
    }
}

fn room_of(held: &Held, user: &str) -> Room {
    let user = User::from(crate::people::People::default().join(user, 0, Arc::default()));
    held.room(&nobody(), &user)
}

/// Those without a name are told apart by their addresses.
#[test]
fn flows_of_one_address_count_together() {
    let held = Held::default();
    let room = |source: &str| {
        let origin = Origin {
            source: Some(source.parse().unwrap()),
            ..nobody()
        };
        held.room(&origin, &User::default())
    };
    let taken: Vec<_> = (0..held::MAX_FLOWS_OF_ONE)
        .map(|port| room(&format!("[2001:db8::{port:x}]:{}", port + 1)).take().unwrap())
        .collect();
    assert!(room("[2001:db8::ffff:ffff]:1").take().is_none());
    assert!(room("[2001:db8:0:1::1]:1").take().is_some());
    assert!(room("192.0.2.1:1").take().is_some());
    drop(taken);
    assert!(room("[2001:db8::1]:1").take().is_some());
}

#[tokio::test(start_paused = true)]
async fn no_more_is_held_than_four_datagrams_eight_kilobytes_or_200_ms() {
    use std::task::Poll;
    let (room, udp) = (room_of(&Held::default(), "a"), to("192.0.2.1"));
    let mut waiting = Waiting::new();
    let mut watch = Watch::new(&room);
    for _ in 0..3 {
        waiting.push_back((first(), udp.clone()));
        assert_eq!(look(&mut watch, &waiting), Poll::Pending);
    }
    waiting.push_back((first(), udp.clone()));
    assert_eq!(look(&mut watch, &waiting), Poll::Ready(Some(Kind::Quic)));
    // A large one.
    let mut large = first();
    large.resize(9000, 0);
    let waiting = Waiting::from([(large, udp.clone())]);
    assert_eq!(look(&mut Watch::new(&room), &waiting), Poll::Ready(Some(Kind::Quic)));
    // The time.
    let waiting = Waiting::from([(first(), udp.clone())]);
    let mut watch = Watch::new(&room);
    assert_eq!(look(&mut watch, &waiting), Poll::Pending);
    tokio::time::advance(Duration::from_millis(201)).await;
    assert_eq!(look(&mut watch, &waiting), Poll::Ready(Some(Kind::Quic)));
    // What is something else does not wait.
    let waiting = Waiting::from([(b"anything".to_vec(), udp)]);
    assert_eq!(look(&mut Watch::new(&room), &waiting), Poll::Ready(None));
}

#[tokio::test(start_paused = true)]
async fn a_thousand_flows_are_held_and_others_are_looked_at_once() {
    use std::task::Poll;
    let (all, udp) = (Held::default(), to("192.0.2.1"));
    let waiting = Waiting::from([(first(), udp.clone())]);
    let mut held = Vec::new();
    for user in ["a", "b", "c", "d"] {
        let room = room_of(&all, user);
        for _ in 0..held::MAX_FLOWS_OF_ONE {
            let mut watch = Watch::new(&room);
            assert_eq!(look(&mut watch, &waiting), Poll::Pending);
            held.push(watch);
        }
        // One user has no more, and leaves the rest to others.
        assert_eq!(
            look(&mut Watch::new(&room), &waiting),
            Poll::Ready(Some(Kind::Quic)),
            "{user}"
        );
    }
    assert_eq!(held.len(), held::MAX_FLOWS);
    let room = room_of(&all, "e");
    assert_eq!(look(&mut Watch::new(&room), &waiting), Poll::Ready(Some(Kind::Quic)));
    // One that is whole needs no room.
    let mut cx = std::task::Context::from_waker(Waker::noop());
    let whole = Waiting::from([(whole(), udp)]);
    let Poll::Ready(Some(found)) = Watch::new(&room).poll(&mut cx, &whole) else {
        panic!("nothing is found");
    };
    assert_eq!(found.domain.unwrap().as_str(), "example.com");
    held.pop();
    assert_eq!(look(&mut Watch::new(&room), &waiting), Poll::Pending);
}
