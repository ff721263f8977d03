#![allow(clippy::unwrap_used, reason = "tests")]

pub(crate) mod rfc8448;

use super::extension::{self, body};
use super::*;
use crate::{Alert, Error};

fn message(bytes: &[u8]) -> Message<'_> {
    let message = Message::first(bytes, MAX_MESSAGE).unwrap().unwrap();
    assert_eq!(message.bytes.len(), bytes.len(), "something follows");
    message
}

fn alert<T: std::fmt::Debug>(outcome: Result<T, Error>) -> Alert {
    outcome.unwrap_err().alert().unwrap()
}

/// The extensions of a message, as they are written.
fn listed<'a>(extensions: &Extensions<'a>) -> Vec<(u16, &'a [u8])> {
    extensions.iter().collect()
}

#[test]
fn the_client_hello_of_the_standard_is_read_and_written() {
    let bytes = rfc8448::bytes(rfc8448::CLIENT_HELLO);
    let hello = ClientHello::read(message(&bytes)).unwrap();
    assert_eq!((hello.bytes, hello.legacy_version), (&bytes[..], 0x0303));
    assert_eq!(hello.suites.iter().collect::<Vec<_>>(), [0x1301, 0x1303, 0x1302]);
    assert_eq!((hello.session_id, hello.compression), (&[][..], &[0][..]));
    assert_eq!(hello.session_id_at(), 39..39);
    let extensions = &hello.extensions;
    assert_eq!(extensions.server_name().unwrap(), Some(&b"server"[..]));
    assert!(hello.offers_tls13().unwrap());
    let groups: Vec<u16> = extensions.supported_groups().unwrap().unwrap().iter().collect();
    assert_eq!(groups, [0x1d, 0x17, 0x18, 0x19, 0x100, 0x101, 0x102, 0x103, 0x104]);
    let schemes = extensions.signature_algorithms().unwrap().unwrap();
    assert!(schemes.contains(0x0804) && !schemes.contains(0x0807));
    let shares = extensions.key_shares().unwrap().unwrap();
    assert_eq!(shares.iter().count(), 1);
    assert_eq!(shares.get(0x1d).unwrap()[..3], [0x99, 0x38, 0x1d]);
    assert_eq!(shares.get(0x17), None);
    assert_eq!((extensions.alpn().unwrap(), extensions.cookie().unwrap()), (None, None));

    let mut written = Vec::new();
    let suites: Vec<u16> = hello.suites.iter().collect();
    write_client_hello(
        &mut written,
        hello.random,
        hello.session_id,
        &suites,
        &listed(extensions),
    )
    .unwrap();
    assert_eq!(written, bytes);
}

#[test]
fn the_server_flight_of_the_standard_is_read_and_written() {
    let bytes = rfc8448::bytes(rfc8448::SERVER_HELLO);
    let hello = ServerHello::read(message(&bytes)).unwrap();
    assert_eq!(
        (hello.suite, hello.compression, hello.version().unwrap()),
        (0x1301, 0, extension::TLS13)
    );
    assert!(!hello.is_retry());
    let share = hello.key_share().unwrap().unwrap();
    assert_eq!((share.group, share.key.len()), (0x1d, 32));
    let mut written = Vec::new();
    let extensions = listed(&hello.extensions);
    write_server_hello(&mut written, hello.random, hello.session_id, hello.suite, &extensions).unwrap();
    assert_eq!(written, bytes);

    let bytes = rfc8448::bytes(rfc8448::ENCRYPTED_EXTENSIONS);
    let extensions = EncryptedExtensions::read(message(&bytes).body()).unwrap().0;
    let mut written = Vec::new();
    write_encrypted_extensions(&mut written, &listed(&extensions)).unwrap();
    assert_eq!(written, bytes);

    let bytes = rfc8448::bytes(rfc8448::CERTIFICATE);
    let certificate = Certificate::read(message(&bytes).body()).unwrap();
    assert_eq!((certificate.context, certificate.entries.len()), (&[][..], 1));
    assert!(certificate.entries[0].extensions.is_empty());
    let mut written = Vec::new();
    write_certificate(&mut written, &[certificate.entries[0].der]).unwrap();
    assert_eq!(written, bytes);

    let bytes = rfc8448::bytes(rfc8448::CERTIFICATE_VERIFY);
    let verify = CertificateVerify::read(message(&bytes).body()).unwrap();
    assert_eq!((verify.scheme, verify.signature.len()), (0x0804, 128));
    let mut written = Vec::new();
    write_certificate_verify(&mut written, verify.scheme, verify.signature).unwrap();
    assert_eq!(written, bytes);

    let bytes = rfc8448::bytes(rfc8448::FINISHED);
    let mut written = Vec::new();
    write_finished(&mut written, message(&bytes).body()).unwrap();
    assert_eq!((message(&bytes).kind, written), (Kind::FINISHED, bytes));
}

#[test]
fn every_shorter_body_and_every_longer_one_is_an_error() {
    fn whole<T>(hex: &str, read: impl Fn(Message<'_>) -> Result<T, Error>) {
        let bytes = rfc8448::bytes(hex);
        let message = message(&bytes);
        assert!(read(message).is_ok());
        for n in HEAD..bytes.len() {
            // A hello may end where its extensions begin.
            let bare = matches!(message.kind, Kind::CLIENT_HELLO if n == 49)
                || matches!(message.kind, Kind::SERVER_HELLO if n == 42);
            let cut = Message {
                kind: message.kind,
                bytes: &bytes[..n],
            };
            assert_eq!(read(cut).is_ok(), bare, "{n} of {}", bytes.len());
        }
        let longer = [&bytes[..], &[0]].concat();
        let longer = Message {
            kind: message.kind,
            bytes: &longer,
        };
        assert!(read(longer).is_err());
    }
    whole(rfc8448::CLIENT_HELLO, |message| ClientHello::read(message).map(drop));
    whole(rfc8448::SERVER_HELLO, |message| ServerHello::read(message).map(drop));
    whole(rfc8448::ENCRYPTED_EXTENSIONS, |message| {
        EncryptedExtensions::read(message.body()).map(drop)
    });
    whole(rfc8448::CERTIFICATE, |message| {
        Certificate::read(message.body()).map(drop)
    });
    whole(rfc8448::CERTIFICATE_VERIFY, |message| {
        CertificateVerify::read(message.body()).map(drop)
    });
}

fn hello_with(extensions: &[(u16, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    write_client_hello(&mut out, &[7; 32], &[9; 32], &[0x1301], extensions).unwrap();
    out
}

#[test]
fn what_stands_in_extensions_must_fit() {
    let check = |kind: u16, body: &[u8], read: fn(&Extensions<'_>) -> Option<Error>| {
        let bytes = hello_with(&[(kind, body)]);
        let hello = ClientHello::read(message(&bytes)).unwrap();
        assert_eq!(hello.session_id_at(), 39..71);
        read(&hello.extensions).map(|error| error.alert().unwrap())
    };
    let versions = |e: &Extensions<'_>| e.supported_versions().err();
    let groups = |e: &Extensions<'_>| e.supported_groups().err();
    let schemes = |e: &Extensions<'_>| e.signature_algorithms().err();
    let shares = |e: &Extensions<'_>| e.key_shares().err();
    let name = |e: &Extensions<'_>| e.server_name().err();
    let alpn = |e: &Extensions<'_>| e.alpn().err();
    let cookie = |e: &Extensions<'_>| e.cookie().err();
    type Read = fn(&Extensions<'_>) -> Option<Error>;
    let cases: &[(u16, Read, &[u8], &[&[u8]])] = &[
        (
            43,
            versions,
            &[2, 3, 4],
            &[&[], &[0], &[1, 3], &[2, 3], &[2, 3, 4, 0], &[3, 3, 4, 3]],
        ),
        (
            10,
            groups,
            &[0, 2, 0, 29],
            &[&[], &[0, 0], &[0, 1, 0], &[0, 2, 0, 29, 0]],
        ),
        (13, schemes, &[0, 2, 8, 4], &[&[], &[0, 0], &[0, 4, 8, 4]]),
        (
            51,
            shares,
            &[0, 5, 0, 29, 0, 1, 9],
            &[&[], &[0, 4, 0, 29, 0, 0], &[0, 5, 0, 29, 0, 2, 9]],
        ),
        (51, shares, &[0, 0], &[&[0, 10, 0, 29, 0, 1, 9, 0, 29, 0, 1, 9]]),
        (
            0,
            name,
            &[0, 4, 0, 0, 1, b'a'],
            &[
                &[],
                &[0, 0],
                &[0, 3, 0, 0, 0],
                &[0, 4, 1, 0, 1, b'a'],
                &[0, 4, 0, 0, 2, b'a'],
            ],
        ),
        (
            16,
            alpn,
            &[0, 3, 2, b'h', b'2'],
            &[&[], &[0, 0], &[0, 1, 0], &[0, 3, 3, b'h', b'2']],
        ),
        (44, cookie, &[0, 1, 7], &[&[], &[0, 0], &[0, 2, 7], &[0, 1, 7, 7]]),
    ];
    for (kind, read, good, bad) in cases {
        assert_eq!(check(*kind, good, *read), None, "{kind} {good:?}");
        for body in *bad {
            assert!(check(*kind, body, *read).is_some(), "{kind} {body:?}");
        }
    }
}

#[test]
fn an_extension_counts_once_and_there_are_so_many_at_most() {
    let twice = hello_with(&[(7, &[]), (8, &[1]), (7, &[])]);
    assert_eq!(alert(ClientHello::read(message(&twice))), Alert::IllegalParameter);
    let many: Vec<(u16, &[u8])> = (0..=MAX_EXTENSIONS as u16).map(|kind| (kind, &[][..])).collect();
    assert!(ClientHello::read(message(&hello_with(&many[1..]))).is_ok());
    assert_eq!(
        alert(ClientHello::read(message(&hello_with(&many)))),
        Alert::RecordOverflow
    );
}

#[test]
fn bodies_are_read_as_they_are_written() {
    let name = body::server_name(b"a.test").unwrap();
    let alpn = body::names(&["h2", "http/1.1"]).unwrap();
    let versions = body::numbers(1, &[0x0304, 0x0303]).unwrap();
    let groups = body::numbers(2, &[0x11ec, 0x1d]).unwrap();
    let shares = body::key_shares(&[(0x11ec, &[1; 40][..]), (0x1d, &[2; 32])]).unwrap();
    let cookie = body::cookie(b"crumb").unwrap();
    let bytes = hello_with(&[
        (0, &name),
        (16, &alpn),
        (43, &versions),
        (10, &groups),
        (51, &shares),
        (44, &cookie),
    ]);
    let extensions = ClientHello::read(message(&bytes)).unwrap().extensions;
    assert_eq!(extensions.server_name().unwrap(), Some(&b"a.test"[..]));
    assert_eq!(extensions.alpn().unwrap().unwrap(), [&b"h2"[..], b"http/1.1"]);
    assert!(
        extensions
            .supported_versions()
            .unwrap()
            .unwrap()
            .iter()
            .eq([0x0304, 0x0303])
    );
    assert!(
        extensions
            .supported_groups()
            .unwrap()
            .unwrap()
            .iter()
            .eq([0x11ec, 0x1d])
    );
    let shares: Vec<_> = extensions.key_shares().unwrap().unwrap().iter().collect();
    assert_eq!((shares[0].group, shares[0].key), (0x11ec, &[1; 40][..]));
    assert_eq!((shares[1].group, shares[1].key), (0x1d, &[2; 32][..]));
    assert_eq!(extensions.cookie().unwrap(), Some(&b"crumb"[..]));
    assert!(matches!(body::names(&[[0; 256]]), Err(Error::Given(_))));
    assert!(matches!(body::cookie(&[0; 1 << 16]), Err(Error::Given(_))));
}

#[test]
fn a_server_hello_gets_another_key_and_nothing_else_changes() {
    let share = body::key_share(0x1d, &[5; 32]).unwrap();
    for extensions in [
        &[(43_u16, &[3_u8, 4][..]), (51, &share[..])][..],
        &[(51, &share), (43, &[3, 4])],
        &[(43, &[3, 4]), (51, &share), (99, &[1, 2, 3])],
    ] {
        let (mut old, mut new) = (Vec::new(), Vec::new());
        write_server_hello(&mut old, &[1; 32], &[2; 32], 0x1302, extensions).unwrap();
        let other = body::key_share(0x1d, &[6; 32]).unwrap();
        let changed: Vec<(u16, &[u8])> = extensions
            .iter()
            .map(|(kind, body)| (*kind, if *kind == 51 { &other[..] } else { *body }))
            .collect();
        write_server_hello(&mut new, &[1; 32], &[2; 32], 0x1302, &changed).unwrap();
        let hello = ServerHello::read(message(&old)).unwrap();
        assert_eq!(hello.with_key(&[6; 32]).unwrap(), new);
        assert!(matches!(hello.with_key(&[6; 31]), Err(Error::Given(_))));
    }
    let mut bare = Vec::new();
    write_server_hello(&mut bare, &[1; 32], &[], 0x1302, &[(43, &[3, 4])]).unwrap();
    assert_eq!(
        alert(ServerHello::read(message(&bare)).unwrap().with_key(&[])),
        Alert::MissingExtension
    );
}

#[test]
fn a_wish_for_another_hello_is_told_by_its_random() {
    let mut bytes = Vec::new();
    let cookie = body::cookie(b"crumb").unwrap();
    let extensions: &[(u16, &[u8])] = &[(43, &[3, 4]), (51, &[0, 0x1d]), (44, &cookie)];
    write_server_hello(&mut bytes, &RETRY_RANDOM, &[], 0x1301, extensions).unwrap();
    let hello = ServerHello::read(message(&bytes)).unwrap();
    assert!(hello.is_retry());
    assert_eq!(hello.retry_group().unwrap(), Some(0x1d));
    assert_eq!(hello.extensions.cookie().unwrap(), Some(&b"crumb"[..]));
    assert!(hello.key_share().is_err());
}

#[test]
fn messages_are_put_together_from_records_of_any_size() {
    let flight: Vec<u8> = [rfc8448::ENCRYPTED_EXTENSIONS, rfc8448::CERTIFICATE, rfc8448::FINISHED]
        .iter()
        .flat_map(|hex| rfc8448::bytes(hex))
        .collect();
    let kinds = [Kind::ENCRYPTED_EXTENSIONS, Kind::CERTIFICATE, Kind::FINISHED];
    for size in 1..=flight.len() {
        let mut joiner = Joiner::new(MAX_MESSAGE, flight.len());
        let (mut seen, mut bytes) = (Vec::new(), Vec::new());
        for record in flight.chunks(size) {
            joiner.push(record).unwrap();
            while let Some(message) = joiner.next_message().unwrap() {
                seen.push(message.kind);
                bytes.extend_from_slice(message.bytes);
            }
        }
        assert!(joiner.is_between());
        assert_eq!((&seen[..], &bytes), (&kinds[..], &flight), "records of {size}");
        assert_eq!(alert(joiner.push(&[0])), Alert::RecordOverflow, "the flight is used up");
    }
}

#[test]
fn a_joiner_takes_no_more_than_its_limits() {
    let mut joiner = Joiner::new(64, 1000);
    assert_eq!(alert(joiner.push(&[])), Alert::DecodeError);
    joiner.push(&[11, 0, 0, 60]).unwrap();
    assert_eq!(joiner.next_message(), Ok(None));
    assert!(!joiner.is_between());
    let mut joiner = Joiner::new(64, 1000);
    joiner.push(&[11, 0, 0, 61]).unwrap();
    assert_eq!(alert(joiner.next_message()), Alert::RecordOverflow);
    // The end of one message and the beginning of the next.
    let mut joiner = Joiner::new(64, 1000);
    joiner.push(&[20, 0, 0, 1, 5, 24]).unwrap();
    assert_eq!(joiner.next_message().unwrap().unwrap().bytes, [20, 0, 0, 1, 5]);
    assert!(!joiner.is_between());
    joiner.push(&[0, 0, 1, 0]).unwrap();
    assert_eq!(joiner.next_message().unwrap().unwrap().bytes, [24, 0, 0, 1, 0]);
    assert!(joiner.is_between());
}

#[test]
fn records_in_the_clear_are_read_and_written() {
    let content: Vec<u8> = (0..40_000_u32).map(|n| n as u8).collect();
    let mut out = Vec::new();
    record::write(&mut out, record::HANDSHAKE, 1, &content);
    let (mut rest, mut joined, mut sizes) = (&out[..], Vec::new(), Vec::new());
    while let Some(record) = record::Record::first(rest).unwrap() {
        assert_eq!((record.kind, record.head[..3].to_vec()), (22, vec![22, 3, 1]));
        joined.extend_from_slice(record.content);
        sizes.push(record.content.len());
        rest = &rest[record.len()..];
    }
    assert_eq!(
        (rest, joined, &sizes[..]),
        (&[][..], content, &[16384, 16384, 7232][..])
    );
    for n in 0..5 + 16384 {
        assert_eq!(record::Record::first(&out[..n]), Ok(None));
    }
    for (head, wanted) in [
        ([22, 3, 3, 0x40, 0], None),
        ([22, 3, 3, 0x40, 1], Some(Alert::RecordOverflow)),
        ([23, 3, 3, 0x41, 0], None),
        ([23, 3, 3, 0x41, 1], Some(Alert::RecordOverflow)),
        ([24, 3, 3, 0, 1], Some(Alert::UnexpectedMessage)),
        ([19, 3, 3, 0, 1], Some(Alert::UnexpectedMessage)),
        ([22, 2, 0, 0, 1], Some(Alert::UnexpectedMessage)),
        (*b"HTTP/", Some(Alert::UnexpectedMessage)),
    ] {
        assert_eq!(
            record::length(&head).err().and_then(|error| error.alert()),
            wanted,
            "{head:?}"
        );
    }
}

#[test]
fn later_messages_are_read() {
    let ticket = [0, 0, 14, 16, 1, 2, 3, 4, 2, 9, 9, 0, 3, 7, 7, 7, 0, 0];
    let read = NewSessionTicket::read(&ticket).unwrap();
    assert_eq!(
        (read.lifetime, read.age_add, read.nonce, read.ticket),
        (3600, 0x01020304, &[9, 9][..], &[7; 3][..])
    );
    for n in 0..ticket.len() {
        assert!(NewSessionTicket::read(&ticket[..n]).is_err());
    }
    assert!(
        NewSessionTicket::read(&[0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]).is_err(),
        "no ticket"
    );
    for wanted in [false, true] {
        let mut out = Vec::new();
        write_key_update(&mut out, wanted);
        assert_eq!(KeyUpdate::read(message(&out).body()), Ok(KeyUpdate { wanted }));
    }
    assert_eq!(alert(KeyUpdate::read(&[2])), Alert::IllegalParameter);
    assert_eq!(alert(KeyUpdate::read(&[0, 0])), Alert::DecodeError);
    let chain = [[1_u8; 1]; Certificate::MAX_ENTRIES + 1];
    for (n, good) in [(Certificate::MAX_ENTRIES, true), (Certificate::MAX_ENTRIES + 1, false)] {
        let mut out = Vec::new();
        write_certificate(&mut out, &chain[..n]).unwrap();
        assert_eq!(Certificate::read(message(&out).body()).is_ok(), good);
    }
}

#[test]
fn a_compressed_certificate_is_bounded() {
    // 65,532 zeros, and one more, by brotli.
    let longest = [
        0x1b, 0xfb, 0xff, 0xf8, 0x27, 0x00, 0xe2, 0xb1, 0x40, 0xa0, 0xf6, 0x1e, 0x00,
    ];
    let longer = [
        0x1b, 0xfc, 0xff, 0xf8, 0x27, 0x00, 0xe2, 0xb1, 0x40, 0xc0, 0xf6, 0x1e, 0x00,
    ];
    let body = |length: u32, stream: &[u8]| {
        let length = length.to_be_bytes();
        [&[0, 2][..], &length[1..], &[0, 0, stream.len() as u8], stream].concat()
    };
    let fits = body(65_532, &longest);
    let read = CompressedCertificate::read(&fits).unwrap();
    assert_eq!(read.length, MAX_MESSAGE - HEAD);
    assert!(read.decompress().unwrap().iter().all(|byte| *byte == 0));
    let above = CompressedCertificate::read(&body(65_533, &longer)).unwrap_err();
    assert_eq!(above.alert(), Some(Alert::IllegalParameter));
    // More and less than it says, by what is behind it and by what it says; and any piece of it.
    for (length, stream) in [(65_532, &longer[..]), (65_531, &longest), (0, &longest), (12, &[])] {
        let body = body(length, stream);
        let read = CompressedCertificate::read(&body).unwrap();
        assert_eq!(
            read.decompress().unwrap_err().alert(),
            Some(Alert::DecodeError),
            "{length}"
        );
    }
    for end in 0..longest.len() {
        let body = body(65_532, &longest[..end]);
        assert!(
            CompressedCertificate::read(&body).unwrap().decompress().is_err(),
            "{end}"
        );
    }
    // A window above 16 MiB is of another format.
    let large = [0x11, 0x5e, 0xfc, 0x00, 0xe0, 0x97, 0x38, 0x88, 0x33, 0x02, 0x00, 0x06];
    let body = body(64, &large);
    assert!(CompressedCertificate::read(&body).unwrap().decompress().is_err());
}
