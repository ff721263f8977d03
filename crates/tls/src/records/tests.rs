//! Two record layers of ours against each other: key updates, padding, limits, ends of directions. Against other libraries: the
//! proxy's tests, and those of the handshakes.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::schedule::Handshake;
use crate::suite::CipherSuite;

/// Both ends of a connection: the client's first, which may get tickets.
fn ends(suite: CipherSuite) -> (Records, Records) {
    let digest = suite.hash().digest(b"said");
    let secrets = || Handshake::new(suite, &[7; 32], &digest, None).application(&digest, None);
    let (here, there) = (secrets(), secrets());
    (
        Records::after(here.client, here.server, true).unwrap(),
        Records::after(there.server, there.client, false).unwrap(),
    )
}

fn seal(records: &mut Records, payload: &[u8]) -> Vec<u8> {
    let mut wire = vec![0; records.front()];
    wire.extend_from_slice(payload);
    records.seal(&mut wire, 0).unwrap();
    wire
}

/// What comes out, all input being done with.
fn open(records: &mut Records, wire: &[u8]) -> Result<Vec<u8>, Error> {
    let mut buffer = wire.to_vec();
    let opened = records.open(&mut buffer, 0, 0..wire.len())?;
    assert_eq!(opened.consumed, wire.len());
    buffer.truncate(opened.produced);
    Ok(buffer)
}

#[test]
fn bytes_go_both_ways_through_changes_of_keys() {
    for suite in CipherSuite::ALL {
        let (mut here, mut there) = ends(suite);
        for round in 0..4_u8 {
            for len in [1, 2, MAX_PLAIN] {
                let payload = vec![round; len];
                let wire = seal(&mut here, &payload);
                assert_eq!(open(&mut there, &wire).unwrap(), payload);
                let wire = seal(&mut there, &payload);
                assert_eq!(open(&mut here, &wire).unwrap(), payload);
            }
            let mut wire = Vec::new();
            here.key_update(&mut wire, round % 2 == 0).unwrap();
            assert_eq!(open(&mut there, &wire).unwrap(), b"");
            let reply = std::mem::take(&mut there.reply);
            assert_eq!(reply.is_empty(), round % 2 == 1);
            assert_eq!(open(&mut here, &reply).unwrap(), b"");
        }
        let mut wire = Vec::new();
        here.push_close(&mut wire).unwrap();
        let opened = there.open(&mut wire.clone(), 0, 0..wire.len()).unwrap();
        assert!(opened.end && opened.produced == 0);
    }
}

#[test]
fn a_changed_bit_anywhere_gives_no_payload() {
    let (mut here, _) = ends(CipherSuite::Aes128GcmSha256);
    let wire = seal(&mut here, b"payload");
    for at in 0..8 * wire.len() {
        let (_, mut there) = ends(CipherSuite::Aes128GcmSha256);
        let mut changed = wire.clone();
        changed[at / 8] ^= 1 << (at % 8);
        let opened = there.open(&mut changed.clone(), 0, 0..wire.len());
        // A record that says it is longer waits for the rest.
        assert!(
            opened.as_ref().is_err() || opened.is_ok_and(|opened| opened.consumed == 0),
            "bit {at}"
        );
    }
    let (_, mut there) = ends(CipherSuite::Aes128GcmSha256);
    open(&mut there, &wire).unwrap();
    assert_eq!(
        open(&mut there, &wire).unwrap_err(),
        Error::Unauthentic,
        "the same record again"
    );
}

/// Whatever the pieces, the same payload.
#[test]
fn input_may_be_cut_anywhere() {
    let (mut here, _) = ends(CipherSuite::ChaCha20Poly1305Sha256);
    let mut wire = seal(&mut here, b"one");
    here.key_update(&mut wire, true).unwrap();
    here.push_nothing(100, &mut wire).unwrap();
    wire.extend(seal(&mut here, b"two"));
    here.push_close(&mut wire).unwrap();
    for step in [1, 2, 7, wire.len()] {
        let (_, mut there) = ends(CipherSuite::ChaCha20Poly1305Sha256);
        let (mut buffer, mut got, mut end) = (Vec::new(), Vec::new(), false);
        for piece in wire.chunks(step) {
            buffer.extend_from_slice(piece);
            let len = buffer.len();
            let opened = there.open(&mut buffer, 0, 0..len).unwrap();
            got.extend_from_slice(&buffer[..opened.produced]);
            buffer.drain(..opened.consumed);
            end = opened.end;
        }
        assert_eq!((&got[..], end), (&b"onetwo"[..], true), "pieces of {step}");
    }
}

#[test]
fn a_record_has_the_length_that_is_asked_for() {
    let (mut here, mut there) = ends(CipherSuite::Aes256GcmSha384);
    for length in [17, 18, 255, 16_401] {
        let mut wire = Vec::new();
        here.push_nothing(length, &mut wire).unwrap();
        assert_eq!(wire.len(), HEADER + length);
        assert_eq!(wire[..HEADER], [23, 3, 3, (length >> 8) as u8, length as u8]);
        assert_eq!(open(&mut there, &wire).unwrap(), b"");
    }
    for length in [0, 16, 16_402] {
        let mut wire = Vec::new();
        assert!(
            matches!(here.push_nothing(length, &mut wire), Err(Error::Given(_))),
            "{length}"
        );
        assert!(wire.is_empty());
    }
}

#[test]
fn records_without_payload_are_few_in_a_row_and_fewer_from_strangers() {
    for (trusted, payload_every, count, fits) in [
        (false, u32::MAX, MAX_EMPTY, true),
        (false, u32::MAX, MAX_EMPTY + 1, false),
        (false, 2, MAX_EMPTY + 1, false),
        (true, u32::MAX, MAX_EMPTY, true),
        (true, u32::MAX, MAX_EMPTY + 1, false),
        (true, 30, 1000, true),
    ] {
        let (mut here, mut there) = ends(CipherSuite::Aes128GcmSha256);
        if trusted {
            there.trust();
        }
        let mut wire = Vec::new();
        for at in 0..count {
            if at % payload_every == payload_every - 1 {
                wire.extend(seal(&mut here, b"x"));
            }
            here.push_nothing(17, &mut wire).unwrap();
        }
        here.push_close(&mut wire).unwrap();
        assert_eq!(
            open(&mut there, &wire).is_ok(),
            fits,
            "{trusted} {payload_every} {count}"
        );
    }
}

#[test]
fn what_no_peer_sends_after_a_handshake_is_refused() {
    let update = |answer| vec![KEY_UPDATE, 0, 0, 1, answer];
    let ticket = vec![NEW_SESSION_TICKET, 0, 0, 1, 0];
    let long = [&[NEW_SESSION_TICKET, 0, 0x40, 0][..], &[0; MAX_HANDSHAKE - 4]].concat();
    // To the server; to the client.
    for (kind, message, by_server, by_client) in [
        (HANDSHAKE, update(0), true, true),
        (HANDSHAKE, update(1), true, true),
        (HANDSHAKE, update(2), false, false),
        (HANDSHAKE, vec![KEY_UPDATE, 0, 0, 0], false, false),
        (HANDSHAKE, [update(0), update(0)].concat(), false, false),
        (HANDSHAKE, ticket, false, true),
        // Not whole yet.
        (HANDSHAKE, long.clone(), false, true),
        (HANDSHAKE, vec![NEW_SESSION_TICKET], false, true),
        (HANDSHAKE, vec![KEY_UPDATE, 0, 0], true, true),
        // Refused before they are whole.
        (HANDSHAKE, vec![NEW_SESSION_TICKET, 0, 0x40, 1], false, false),
        (HANDSHAKE, vec![KEY_UPDATE, 0, 0, 2], false, false),
        (HANDSHAKE, vec![1], false, false),
        (HANDSHAKE, vec![], false, false),
        (HANDSHAKE, vec![1, 0, 0, 0], false, false),
        (ALERT, vec![2, 90], true, true),
        (ALERT, vec![2, 40], false, false),
        (ALERT, vec![2], false, false),
        (20, vec![1], false, false),
    ] {
        let (mut here, mut there) = ends(CipherSuite::Aes128GcmSha256);
        let (mut up, mut down) = (Vec::new(), Vec::new());
        here.push(kind, &message, &mut up).unwrap();
        there.push(kind, &message, &mut down).unwrap();
        assert_eq!(open(&mut there, &up).is_ok(), by_server, "{kind} {message:?}");
        assert_eq!(open(&mut here, &down).is_ok(), by_client, "{kind} {message:?}");
    }
    let (_, mut there) = ends(CipherSuite::Aes128GcmSha256);
    let refused = open(&mut there, &[23, 3, 3, 0x41, 0x01]).unwrap_err();
    assert_eq!(refused.alert(), Some(Alert::RecordOverflow));
    // The first failure is the last: what is good by itself is not taken behind it.
    assert!(open(&mut there, &seal(&mut ends(CipherSuite::Aes128GcmSha256).0, b"good")).is_err());
    let (_, mut there) = ends(CipherSuite::Aes128GcmSha256);
    let refused = open(&mut there, &[23, 2, 3, 0, 17]).unwrap_err();
    assert_eq!(refused.alert(), Some(Alert::ProtocolVersion));
}

/// RFC 8446 section 5.1: between the parts of a message stands nothing else.
#[test]
fn nothing_stands_inside_of_a_message() {
    let parts: [(&str, Option<(u8, &[u8])>); 5] = [
        ("nothing", None),
        ("payload", Some((APPLICATION, b"x"))),
        ("no payload", Some((APPLICATION, b""))),
        ("the end", Some((ALERT, &[1, 0]))),
        ("a warning", Some((ALERT, &[1, 90]))),
    ];
    for (name, between) in parts {
        let (mut here, mut there) = ends(CipherSuite::Aes128GcmSha256);
        let mut wire = Vec::new();
        there
            .push(HANDSHAKE, &[NEW_SESSION_TICKET, 0, 0, 2, 1], &mut wire)
            .unwrap();
        if let Some((kind, bytes)) = between {
            there.push(kind, bytes, &mut wire).unwrap();
        }
        there.push(HANDSHAKE, &[2], &mut wire).unwrap();
        wire.extend(seal(&mut there, b"payload"));
        let came = open(&mut here, &wire);
        assert_eq!(came.is_ok(), between.is_none(), "{name}");
        if let Err(error) = came {
            assert_eq!(error.alert(), Some(Alert::UnexpectedMessage), "{name}");
        }
    }
}

#[test]
fn more_in_a_record_than_it_may_hold_is_refused() {
    let keys = counted(1, 0);
    for (version, len, zeros, fits) in [
        (Version::Tls13, MAX_PLAIN, 0, true),
        (Version::Tls13, MAX_PLAIN + 1, 0, false),
        (Version::Tls13, MAX_PLAIN - 1, 1, true),
        (Version::Tls13, MAX_PLAIN, 1, false),
        (Version::Tls13, 1, MAX_PLAIN - 1, true),
        (Version::Tls13, 1, MAX_PLAIN, false),
        (Version::Tls12, MAX_PLAIN, 0, true),
        (Version::Tls12, MAX_PLAIN + 1, 0, false),
    ] {
        let mut plain = vec![b'x'; len];
        if version == Version::Tls13 {
            plain.push(APPLICATION);
            plain.resize(plain.len() + zeros, 0);
        }
        let mut sealing = Sealing::new(version, &keys).unwrap();
        let wire = sealing.seal_any(APPLICATION, &plain);
        let mut there = Records::new(version, &keys, &keys, Box::new(Counted(Some(1)))).unwrap();
        match open(&mut there, &wire) {
            Ok(came) => assert!(fits && came.len() == len, "{version:?} {len} {zeros}"),
            Err(error) => assert!(
                !fits && error.alert() == Some(Alert::RecordOverflow),
                "{error} {len} {zeros}"
            ),
        }
    }
}

#[test]
fn what_could_not_be_sealed_is_not_in_the_output() {
    let payload = b"payload that nobody but the peer may read";
    let before = b"records before it";
    let end = |version, next| {
        let keys = counted(1, next);
        Records::new(version, &keys, &keys, Box::new(Counted(None))).unwrap()
    };
    let ended = || {
        let mut records = end(Version::Tls13, 0);
        records.end_sealing();
        records
    };
    let long = &[b'x'; MAX_PLAIN + 1][..];
    for (name, mut records, payload) in [
        (
            "too many records",
            end(Version::Tls12, half::LAST_RECORD - 1),
            &payload[..],
        ),
        ("no new key", end(Version::Tls13, UPDATE_AFTER), payload),
        ("too long", end(Version::Tls13, 0), long),
        ("too long for TLS 1.2", end(Version::Tls12, 0), long),
        ("no TLS any more", ended(), payload),
    ] {
        let mut wire = before.to_vec();
        wire.resize(wire.len() + records.front(), 0);
        wire.extend_from_slice(payload);
        records.seal(&mut wire, before.len()).unwrap_err();
        assert_eq!(wire, before, "{name}");
    }
    let (mut here, _) = ends(CipherSuite::Aes128GcmSha256);
    let mut wire = before.to_vec();
    here.push(APPLICATION, long, &mut wire).unwrap_err();
    assert_eq!(wire, before);
}

/// What Vision does: the last record of TLS is followed by bytes that are none.
#[test]
fn a_direction_ends_and_leaves_what_follows_as_it_is() {
    let (mut here, mut there) = ends(CipherSuite::Aes128GcmSha256);
    let mut wire = seal(&mut here, b"first");
    wire.extend(seal(&mut here, b"last"));
    let sealed = wire.len();
    here.end_sealing();
    assert_eq!(
        (here.front(), here.has_ended_sealing(), here.has_ended_opening()),
        (0, true, false)
    );
    assert!(matches!(here.seal(&mut Vec::new(), 0), Err(Error::Given(_))));
    assert!(matches!(here.push_close(&mut Vec::new()), Err(Error::Given(_))));
    wire.extend_from_slice(b"bytes that are no TLS at all");

    let (len, mut at) = (wire.len(), 0);
    for payload in [&b"first"[..], b"last"] {
        let opened = there.open_some(&mut wire, 0, at..len, 1).unwrap();
        assert_eq!(&wire[..opened.produced], payload);
        at += opened.consumed;
    }
    assert_eq!(at, sealed);
    there.end_opening().unwrap();
    assert!(matches!(there.open(&mut wire, 0, 0..sealed), Err(Error::Given(_))));

    // The other direction is TLS still. A wish for new keys cannot be answered any more, and need not be.
    let mut wire = Vec::new();
    there.key_update(&mut wire, true).unwrap();
    wire.extend(seal(&mut there, b"back"));
    assert_eq!(open(&mut here, &wire).unwrap(), b"back");
    assert!(here.reply.is_empty());

    // Half a message before the end is no end.
    let mut wire = Vec::new();
    there.push(HANDSHAKE, &[NEW_SESSION_TICKET, 0], &mut wire).unwrap();
    open(&mut here, &wire).unwrap();
    assert!(here.end_opening().is_err());
}

/// Keys that are always the same but for their first byte; or none.
struct Counted(Option<u8>);

fn counted(first: u8, next: u64) -> Keys {
    Keys::new(sealway_aead::Suite::Aes128Gcm, &[first; 16], [2; 12], next).unwrap()
}

impl Schedule for Counted {
    fn next_sending(&mut self) -> Result<Keys, Error> {
        let first = self.0.as_mut().ok_or(Error::Library("no further keys"))?;
        *first += 1;
        Ok(counted(*first, 0))
    }

    fn next_receiving(&mut self) -> Result<Keys, Error> {
        self.next_sending()
    }

    fn takes_tickets(&self) -> bool {
        true
    }

    fn ticket(&mut self, _: &[u8]) -> Result<(), Error> {
        Ok(())
    }
}

#[test]
fn a_key_is_replaced_before_it_has_sealed_too_much() {
    let end = |version, next| {
        let keys = counted(1, next);
        Records::new(version, &keys, &keys, Box::new(Counted(Some(1)))).unwrap()
    };
    let (mut here, mut there) = (
        end(Version::Tls13, UPDATE_AFTER - 1),
        end(Version::Tls13, UPDATE_AFTER - 1),
    );
    let (one, two) = (seal(&mut here, b"one"), seal(&mut here, b"two"));
    assert_eq!(
        two.len() - one.len(),
        HEADER + 5 + 17,
        "a message that announces the new key"
    );
    assert_eq!(open(&mut there, &[one, two].concat()).unwrap(), b"onetwo");

    // TLS 1.2 has no further keys. The last record is kept for saying so.
    let mut here = end(Version::Tls12, half::LAST_RECORD - 2);
    let mut there = end(Version::Tls12, half::LAST_RECORD - 2);
    let last = seal(&mut here, b"last");
    assert_eq!(open(&mut there, &last).unwrap(), b"last");
    let mut wire = vec![0; here.front()];
    assert!(matches!(here.seal(&mut wire, 0), Err(Error::Given(_))));
    here.push_close(&mut wire).unwrap();
    let len = wire.len();
    assert!(there.open(&mut wire, 0, 0..len).unwrap().end);
    assert!(here.push_close(&mut wire).is_err());
    assert_eq!(wire.len(), len);
    assert!(Keys::new(sealway_aead::Suite::Aes256Gcm, &[1; 16], [2; 12], 0).is_err());
}

#[test]
fn many_wishes_for_a_key_have_one_answer() {
    let (mut here, mut there) = ends(CipherSuite::Aes128GcmSha256);
    let mut wire = Vec::new();
    for _ in 0..3 {
        here.key_update(&mut wire, true).unwrap();
    }
    open(&mut there, &wire).unwrap();
    let mut reply = std::mem::take(&mut there.reply);
    assert_eq!(reply.len(), HEADER + 5 + 17);
    reply.extend(seal(&mut there, b"payload"));
    assert_eq!(open(&mut here, &reply).unwrap(), b"payload");
}
