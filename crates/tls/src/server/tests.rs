//! What no client that is in order sends: each is refused with its alert, and no limit is passed. Clients that are in order: the tests
//! against other programs.
#![allow(clippy::unwrap_used)]

use crate::codec::{MAX_HELLO, extension, record, write_client_hello};
use crate::error::{Alert, Error};
use crate::fuzzing::ends::{fixed, hello, read_flight, server};
use crate::group::{ClientSecret, Group};
use crate::server::{MAX_CHANGES, Server};
use crate::suite::CipherSuite;

const CHANGE: [u8; 6] = [20, 3, 3, 0, 1, 1];

/// Lets a server read all of it; what it says.
fn feed(server: &mut Server, bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let (mut input, mut out) = (bytes.to_vec(), Vec::new());
    let read = server.read(&mut input, &mut fixed(1), &mut out);
    read.map(|_| out)
}

/// The alert with which a server refuses these bytes, which it sends in the clear.
fn refused(bytes: &[u8]) -> Alert {
    let (mut server, mut input, mut out) = (server(), bytes.to_vec(), Vec::new());
    let error = server.read(&mut input, &mut fixed(1), &mut out).unwrap_err();
    let alert = error.alert().unwrap();
    assert_eq!(out, [&[21, 3, 3, 0, 2][..], &alert.message()].concat());
    assert!(
        matches!(feed(&mut server, b""), Err(Error::Given(_))),
        "an end that failed goes on"
    );
    assert!(server.finish().is_err());
    alert
}

fn framed(message: &[u8]) -> Vec<u8> {
    let mut wire = Vec::new();
    record::write(&mut wire, record::HANDSHAKE, 1, message);
    wire
}

fn good() -> Vec<u8> {
    let secret = ClientSecret::new(&mut fixed(2));
    hello(CipherSuite::Aes128GcmSha256, Group::X25519, &secret)
}

/// A hello with one extension changed, taken away (`None`), or added at the end.
fn with(kind: u16, body: Option<&[u8]>) -> Vec<u8> {
    let whole = good();
    let message = crate::codec::Message::first(&whole, MAX_HELLO).unwrap().unwrap();
    let good = crate::codec::ClientHello::read(message).unwrap();
    let mut extensions: Vec<_> = good.extensions.iter().filter(|(at, _)| *at != kind).collect();
    extensions.extend(body.map(|body| (kind, body)));
    let mut hello = Vec::new();
    write_client_hello(&mut hello, good.random, good.session_id, &[0x1301], &extensions).unwrap();
    hello
}

#[test]
fn what_is_no_hello_is_refused() {
    for (bytes, alert) in [
        (b"GET / HTTP/1.1\r\n".to_vec(), Alert::UnexpectedMessage),
        (CHANGE.to_vec(), Alert::UnexpectedMessage),
        (vec![23, 3, 3, 0, 1, 0], Alert::UnexpectedMessage),
        (vec![22, 3, 1, 0x40, 1], Alert::RecordOverflow),
        (vec![22, 3, 1, 0, 0], Alert::DecodeError),
        (framed(&[2, 0, 0, 0]), Alert::UnexpectedMessage),
        (framed(&[1, 0, 0, 1, 3]), Alert::DecodeError),
        // The head says that it is one byte longer than any may be.
        (framed(&[1, 0, 0x3f, 0xfd]), Alert::RecordOverflow),
        (framed(&[&good()[..], &[1]].concat()), Alert::UnexpectedMessage),
    ] {
        assert_eq!(refused(&bytes), alert, "{bytes:?}");
    }
    let mut server = server();
    assert_eq!(feed(&mut server, &[21, 3, 1, 0, 2, 2, 42]), Err(Error::Alerted(42)));
}

#[test]
fn the_longest_hello_is_taken() {
    let room = MAX_HELLO - with(extension::PADDING, Some(b"")).len();
    let longest = with(extension::PADDING, Some(&vec![0; room]));
    assert_eq!(longest.len(), MAX_HELLO);
    assert!(feed(&mut server(), &framed(&longest)).is_ok_and(|flight| flight.len() > 100));
    let longer = with(extension::PADDING, Some(&vec![0; room + 1]));
    assert_eq!(refused(&framed(&longer)), Alert::RecordOverflow);
}

#[test]
fn a_hello_that_says_what_none_may_is_refused() {
    let numbers = |width, numbers: &[u16]| extension::body::numbers(width, numbers).unwrap();
    let share = |group, len| extension::body::key_shares(&[(group, vec![0xff; len])]).unwrap();
    let mut compressing = good();
    let at = 4 + 2 + 32 + 33 + 4;
    assert_eq!(compressing[at..at + 2], [1, 0]);
    compressing[at + 1] = 1;
    assert_eq!(refused(&framed(&compressing)), Alert::IllegalParameter);
    for (kind, body, alert) in [
        (extension::SUPPORTED_VERSIONS, None, Alert::ProtocolVersion),
        (
            extension::SUPPORTED_VERSIONS,
            Some(numbers(1, &[0x0303])),
            Alert::ProtocolVersion,
        ),
        (
            extension::SUPPORTED_VERSIONS,
            Some(vec![3, 3, 4, 0]),
            Alert::DecodeError,
        ),
        (extension::KEY_SHARE, None, Alert::MissingExtension),
        (extension::KEY_SHARE, Some(share(0x1d, 31)), Alert::IllegalParameter),
        (extension::KEY_SHARE, Some(share(0x11ec, 1216)), Alert::IllegalParameter),
        (extension::SIGNATURE_ALGORITHMS, None, Alert::MissingExtension),
        (
            extension::SIGNATURE_ALGORITHMS,
            Some(numbers(2, &[0x0403])),
            Alert::HandshakeFailure,
        ),
    ] {
        assert_eq!(refused(&framed(&with(kind, body.as_deref()))), alert, "{kind} {body:?}");
    }
    // A share of a small order, whose secret everybody knows.
    let zeros = extension::body::key_shares(&[(0x1d, [0; 32])]).unwrap();
    assert_eq!(
        refused(&framed(&with(extension::KEY_SHARE, Some(&zeros)))),
        Alert::IllegalParameter
    );
    // What resumes stands last.
    let mut early = with(extension::PRE_SHARED_KEY, Some(b"x"));
    assert!(feed(&mut server(), &framed(&early)).is_ok());
    early = {
        let message = crate::codec::Message::first(&early, MAX_HELLO).unwrap().unwrap();
        let hello = crate::codec::ClientHello::read(message).unwrap();
        let turned: Vec<_> = hello.extensions.iter().collect::<Vec<_>>().into_iter().rev().collect();
        let mut other = Vec::new();
        write_client_hello(&mut other, hello.random, hello.session_id, &[0x1301], &turned).unwrap();
        other
    };
    assert_eq!(refused(&framed(&early)), Alert::IllegalParameter);
}

/// A client with no share of our groups is asked once, and for a hello that is the first but for it.
#[test]
fn a_second_hello_is_the_first_with_another_share() {
    let other = extension::body::key_shares(&[(0x19, [4; 133])]).unwrap();
    let first = with(extension::KEY_SHARE, Some(&other));
    let secret = ClientSecret::new(&mut fixed(2));
    let asked = || {
        let mut server = server();
        let request = feed(&mut server, &framed(&first)).unwrap();
        assert_eq!(request[11..43], crate::codec::RETRY_RANDOM);
        assert_eq!(request[request.len() - 6..], CHANGE);
        server
    };
    let both = [
        (0x11ec, secret.share(Group::X25519MlKem768).unwrap()),
        (0x1d, secret.share(Group::X25519).unwrap()),
    ];
    let right = extension::body::key_shares(&both[..1]).unwrap();
    let second = with(extension::KEY_SHARE, Some(&right));
    assert!(feed(&mut asked(), &framed(&second)).is_ok_and(|flight| flight.len() > 1200));
    let again = [&CHANGE[..], &framed(&second)].concat();
    let flight = feed(&mut asked(), &again).unwrap();
    let hello = 5 + usize::from(u16::from_be_bytes([flight[3], flight[4]]));
    assert_eq!((flight[0], flight[hello]), (22, 23), "change_cipher_spec goes out once");

    let mut random = second.clone();
    random[6] ^= 1;
    let mut session_id = second.clone();
    session_id[39] ^= 1;
    let others = [
        first.clone(),
        random,
        session_id,
        with(
            extension::KEY_SHARE,
            Some(&extension::body::key_shares(&both[1..]).unwrap()),
        ),
        with(extension::KEY_SHARE, Some(&extension::body::key_shares(&both).unwrap())),
    ];
    for (at, hello) in others.iter().enumerate() {
        let error = feed(&mut asked(), &framed(hello)).unwrap_err();
        assert_eq!(error.alert(), Some(Alert::IllegalParameter), "{at}");
    }
}

/// A server that has said all it has to say, and its client.
fn answered() -> (Server, crate::fuzzing::ends::Client) {
    let mut server = server();
    let mut flight = feed(&mut server, &framed(&good())).unwrap();
    let secret = ClientSecret::new(&mut fixed(2));
    let client = read_flight(&good(), Group::X25519, &secret, &mut flight);
    (server, client)
}

#[test]
fn so_many_changes_of_ciphers_are_dropped() {
    for (count, fits) in [
        (0, true),
        (1, true),
        (MAX_CHANGES as usize, true),
        (MAX_CHANGES as usize + 1, false),
    ] {
        let (mut server, mut client) = answered();
        let mut wire = CHANGE.repeat(count);
        client
            .sealing
            .push(record::HANDSHAKE, &client.finished, &mut wire)
            .unwrap();
        assert_eq!(feed(&mut server, &wire).is_ok(), fits, "{count}");
        assert_eq!(server.is_done(), fits);
    }
}

#[test]
fn what_is_no_finished_is_refused() {
    let (_, client) = answered();
    let finished = client.finished;
    let mut wrong = finished.clone();
    wrong[10] ^= 1;
    let other = |kind: u8| [&[kind], &finished[1..]].concat();
    for (kind, message, alert) in [
        (record::HANDSHAKE, wrong, Some(Alert::DecryptError)),
        (record::HANDSHAKE, vec![20, 0, 0, 0], Some(Alert::DecryptError)),
        (record::HANDSHAKE, vec![20, 0, 1, 0], Some(Alert::RecordOverflow)),
        (record::HANDSHAKE, other(11), Some(Alert::UnexpectedMessage)),
        (
            record::HANDSHAKE,
            [&finished[..], &[20]].concat(),
            Some(Alert::UnexpectedMessage),
        ),
        (record::HANDSHAKE, Vec::new(), Some(Alert::DecodeError)),
        (record::APPLICATION, b"payload".to_vec(), Some(Alert::UnexpectedMessage)),
        (record::ALERT, vec![2, 48], None),
    ] {
        let (mut server, mut client) = answered();
        let mut wire = Vec::new();
        client.sealing.push(kind, &message, &mut wire).unwrap();
        let error = feed(&mut server, &wire).unwrap_err();
        assert_eq!(error.alert(), alert, "{kind} {message:?}");
        assert!(server.finish().is_err());
    }
    for clear in [
        &[22, 3, 3, 0, 1, 20][..],
        &[20, 3, 3, 0, 1, 2],
        &[20, 3, 3, 0, 2, 1, 1],
        &[21, 3, 3, 0, 2, 2, 50],
    ] {
        let (mut server, _) = answered();
        assert!(feed(&mut server, clear).is_err(), "{clear:?}");
    }
    // Nothing stands inside of a message.
    let (mut server, mut client) = answered();
    let mut wire = Vec::new();
    let (begin, rest) = finished.split_at(5);
    client.sealing.push(record::HANDSHAKE, begin, &mut wire).unwrap();
    wire.extend_from_slice(&CHANGE);
    client.sealing.push(record::HANDSHAKE, rest, &mut wire).unwrap();
    let error = feed(&mut server, &wire).unwrap_err();
    assert_eq!(error.alert(), Some(Alert::UnexpectedMessage));
    // Sealed with other keys.
    let (mut server, _) = answered();
    let mut wire = vec![23, 3, 3, 0, 53];
    wire.extend_from_slice(&[9; 53]);
    assert_eq!(feed(&mut server, &wire), Err(Error::Unauthentic));
}

#[test]
fn payload_behind_finished_is_left_for_the_record_layer() {
    let (mut server, mut client) = answered();
    let mut wire = Vec::new();
    client
        .sealing
        .push(record::HANDSHAKE, &client.finished, &mut wire)
        .unwrap();
    let whole = wire.len();
    wire.extend_from_slice(b"and what follows");
    let used = server.read(&mut wire, &mut fixed(1), &mut Vec::new()).unwrap();
    assert_eq!((used, server.is_done()), (whole, true));
    assert_eq!(server.read(&mut wire[whole..], &mut fixed(1), &mut Vec::new()), Ok(0));
    assert!(server.finish().is_ok());
}
