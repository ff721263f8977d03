//! What a server must not do, and what it is told then.

use super::*;

fn refused(script: &Script, hello: Hello, judge: Likes) -> Alert {
    match shake(script, hello, judge, 64) {
        Ok(_) => panic!("the handshake went through"),
        Err(error) => error.alert().unwrap(),
    }
}

#[test]
fn a_flight_that_is_not_right_is_refused() {
    let case = |change: fn(&mut Script)| {
        let mut script = Script::default();
        change(&mut script);
        script
    };
    let too_much: Vec<u8> = vec![0; Certificate::MAX_DER];
    let cases: Vec<(Script, Alert)> = vec![
        (case(|s| s.wrong_signature = true), Alert::DecryptError),
        (case(|s| s.wrong_finished = true), Alert::DecryptError),
        (case(|s| s.chain = vec![b"other".to_vec()]), Alert::UnknownCa),
        (case(|s| s.chain = vec![]), Alert::CertificateRequired),
        // RSA with PKCS #1, which the hello has for chains.
        (case(|s| s.scheme = 0x0401), Alert::IllegalParameter),
        (case(|s| s.scheme = 0x0806 + 0x100), Alert::IllegalParameter),
        (case(|s| s.scheme = 0x0804), Alert::DecryptError),
        (case(|s| s.session_id = Some(vec![1; 32])), Alert::DecodeError),
        (case(|s| s.session_id = Some(vec![])), Alert::DecodeError),
        (case(|s| s.encrypted = vec![(99, vec![])]), Alert::UnsupportedExtension),
        (
            case(|s| s.encrypted = vec![(43, vec![3, 4])]),
            Alert::UnsupportedExtension,
        ),
        (case(|s| s.encrypted = vec![(0, vec![1])]), Alert::DecodeError),
        (case(|s| s.entry = vec![(16, vec![])]), Alert::UnsupportedExtension),
        (
            case(|s| s.encrypted = vec![(16, vec![0, 3, 2, b'h', b'3'])]),
            Alert::IllegalParameter,
        ),
        (
            case(|s| s.encrypted = vec![(16, body::names(&["h2", "http/1.1"]).unwrap())]),
            Alert::DecodeError,
        ),
        (case(|s| s.hello_extensions = Some(vec![])), Alert::ProtocolVersion),
        (
            case(|s| s.hello_extensions = Some(vec![(43, vec![3, 3])])),
            Alert::ProtocolVersion,
        ),
        (
            case(|s| s.hello_extensions = Some(vec![(43, vec![3, 4])])),
            Alert::MissingExtension,
        ),
        (
            case(|s| s.hello_extensions = Some(vec![(43, vec![3, 4]), (16, vec![])])),
            Alert::UnsupportedExtension,
        ),
        (
            case(|s| s.hello_extensions = Some(vec![(43, vec![3, 4]), (51, vec![0, 0x17, 0, 1, 4])])),
            Alert::IllegalParameter,
        ),
        (
            case(|s| s.hello_extensions = Some(vec![(43, vec![3, 4]), (51, vec![0, 0x1d, 0, 1, 4])])),
            Alert::IllegalParameter,
        ),
        (
            case(|s| {
                let share = body::key_share(0x1d, &[0; 32]).unwrap();
                s.hello_extensions = Some(vec![(43, vec![3, 4]), (51, share)]);
            }),
            Alert::IllegalParameter,
        ),
        (case(|s| s.changes = MAX_CHANGES + 1), Alert::UnexpectedMessage),
        (case(|s| s.empty_records = 1), Alert::UnexpectedMessage),
        (case(|s| s.compressed = Some(squeezed())), Alert::UnexpectedMessage),
        (case(|s| s.retry = Some((None, None))), Alert::IllegalParameter),
        (case(|s| s.retry = Some((Some(0x001d), None))), Alert::IllegalParameter),
        (case(|s| s.retry = Some((Some(0x0019), None))), Alert::IllegalParameter),
        (
            Script {
                chain: vec![b"mine".to_vec(), too_much],
                ..Script::default()
            },
            Alert::RecordOverflow,
        ),
    ];
    for (at, (script, alert)) in cases.iter().enumerate() {
        assert_eq!(refused(script, plain(), Likes::default()), *alert, "case {at}");
    }
    // A browser offers a group that is none.
    let body = browser().extension(extension::SUPPORTED_GROUPS).unwrap().to_vec();
    let made_up = u16::from_be_bytes([body[2], body[3]]);
    let script = Script {
        retry: Some((Some(made_up), None)),
        ..Script::default()
    };
    assert_eq!(refused(&script, browser(), Likes::default()), Alert::IllegalParameter);
}

/// Longer than any flight may be.
struct Certificate;

impl Certificate {
    const MAX_DER: usize = MAX_MESSAGE;
}

/// The chain "mine", by brotli, as a body of CompressedCertificate.
fn squeezed() -> Vec<u8> {
    let stream = [
        0xc0, 0x00, 0x10, 0x00, 0x00, 0x00, 0x09, 0x00, 0x00, 0x04, 0x6d, 0x69, 0x6e, 0x65, 0x00, 0x00, 0x03,
    ];
    [&[0, 2, 0, 0, 13, 0, 0, stream.len() as u8][..], &stream].concat()
}

#[test]
fn a_compressed_certificate_is_judged_like_a_plain_one() {
    let script = |change: fn(&mut Vec<u8>)| {
        let mut body = squeezed();
        change(&mut body);
        Script {
            compressed: Some(body),
            ..Script::default()
        }
    };
    let (done, _) = shake(&script(|_| {}), browser(), Likes::default(), 64).unwrap();
    assert!(done.judge.hellos.is_some(), "nobody judged");
    for (change, alert) in [
        // Another chain, nobody's stream, another algorithm, and lengths that are wrong or above the limit.
        ((|body| body[18] ^= 1) as fn(&mut Vec<u8>), Alert::UnknownCa),
        (|body| body[8] = 0xff, Alert::DecodeError),
        (|body| body[1] = 1, Alert::IllegalParameter),
        (|body| body[4] = 12, Alert::DecodeError),
        (|body| body[4] = 14, Alert::DecodeError),
        (|body| body[2] = 1, Alert::IllegalParameter),
        (|body| body[7] -= 1, Alert::DecodeError),
        (
            |body| {
                body[7] -= 1;
                body.pop();
            },
            Alert::DecodeError,
        ),
    ] {
        assert_eq!(refused(&script(change), browser(), Likes::default()), alert);
    }
    // And the signature is.
    let mut script = script(|_| {});
    script.wrong_signature = true;
    assert_eq!(refused(&script, browser(), Likes::default()), Alert::DecryptError);
}

#[test]
fn what_a_browser_made_up_is_not_to_be_answered() {
    let made_up: Vec<u16> = browser().extensions.iter().map(|(kind, _)| *kind).collect();
    let (first, last) = (made_up[0], made_up[made_up.len() - 1]);
    let settings = extension::APPLICATION_SETTINGS;
    let http1 = || (extension::ALPN, body::names(&["http/1.1"]).unwrap());
    let encrypted: Vec<(Vec<(u16, Vec<u8>)>, Alert)> = vec![
        (vec![(first, vec![])], Alert::UnsupportedExtension),
        (vec![(last, vec![0])], Alert::UnsupportedExtension),
        // What was offered, but has its place elsewhere, or none in TLS 1.3.
        (
            vec![(extension::PSK_KEY_EXCHANGE_MODES, vec![1, 1])],
            Alert::UnsupportedExtension,
        ),
        (
            vec![(extension::COMPRESS_CERTIFICATE, vec![2, 0, 2])],
            Alert::UnsupportedExtension,
        ),
        (vec![(extension::RENEGOTIATION_INFO, vec![0])], Alert::IllegalParameter),
        (vec![(extension::STATUS_REQUEST, vec![])], Alert::DecodeError),
        (vec![(extension::EXTENDED_MAIN_SECRET, vec![])], Alert::DecodeError),
        (vec![(extension::SESSION_TICKET, vec![])], Alert::DecodeError),
        // Settings without a protocol, and of one that has none.
        (vec![(settings, vec![])], Alert::IllegalParameter),
        (vec![http1(), (settings, vec![])], Alert::IllegalParameter),
    ];
    for (encrypted, alert) in encrypted {
        let script = Script {
            encrypted: encrypted.clone(),
            ..Script::default()
        };
        assert_eq!(refused(&script, browser(), Likes::default()), alert, "{encrypted:?}");
    }
    for entry in [first, last, extension::ALPN] {
        let script = Script {
            entry: vec![(entry, vec![])],
            ..Script::default()
        };
        assert_eq!(
            refused(&script, browser(), Likes::default()),
            Alert::UnsupportedExtension
        );
    }
    let script = Script {
        entry: vec![
            (extension::STATUS_REQUEST, vec![1]),
            (extension::SIGNED_CERTIFICATE_TIMESTAMP, vec![1]),
        ],
        ..Script::default()
    };
    assert!(shake(&script, browser(), Likes::default(), 64).is_ok());
    // The scheme and the group that are made up.
    let hello = browser();
    let number = |kind: u16| {
        let body = hello.extension(kind).unwrap();
        u16::from_be_bytes([body[2], body[3]])
    };
    let script = Script {
        scheme: number(extension::SIGNATURE_ALGORITHMS),
        ..Script::default()
    };
    assert_eq!(refused(&script, browser(), Likes::default()), Alert::IllegalParameter);
    let script = Script {
        retry: Some((Some(number(extension::SUPPORTED_GROUPS)), None)),
        ..Script::default()
    };
    assert_eq!(refused(&script, browser(), Likes::default()), Alert::IllegalParameter);
}

/// What the client has sent last must be this alert; in the clear, or sealed for this server.
fn says(client: &mut Client<Likes>, server: Option<&mut Server>, alert: Alert) {
    let mut out = client.take_output();
    let Some(server) = server else {
        assert!(out.ends_with(&[21, 3, 3, 0, 2, 2, alert as u8]), "{out:02x?}");
        return;
    };
    let (head, content) = out.split_first_chunk_mut().unwrap();
    let (kind, plain) = server.client.open(head, content).unwrap();
    assert_eq!((kind, &content[plain]), (record::ALERT, &alert.message()[..]));
}

#[test]
fn the_server_is_told_why() {
    let begin = || {
        let mut client = Client::start(plain(), Likes::default(), None).unwrap();
        let hello = first_message(&client.take_output());
        (client, hello)
    };
    let (mut client, _) = begin();
    let mut bytes = b"HTTP/1.1 400 Bad Request\r\n".to_vec();
    assert!(client.receive(&mut bytes, &mut fixed(3)).is_err());
    says(&mut client, None, Alert::UnexpectedMessage);
    // It stays over.
    let (flight, _) = Script::default().answer(
        &first_message(&Client::start(plain(), Likes::default(), None).unwrap().take_output()),
        None,
    );
    assert!(client.receive(&mut flight.clone(), &mut fixed(3)).is_err());
    assert!(!client.is_done());

    let (mut client, hello) = begin();
    let script = Script {
        wrong_finished: true,
        ..Script::default()
    };
    let (mut flight, mut server) = script.answer(&hello, None);
    assert!(client.receive(&mut flight, &mut fixed(3)).is_err());
    says(&mut client, Some(&mut server), Alert::DecryptError);

    // A changed byte of a sealed record.
    let (mut client, hello) = begin();
    let (mut flight, mut server) = Script::default().answer(&hello, None);
    *flight.last_mut().unwrap() ^= 1;
    assert_eq!(client.receive(&mut flight, &mut fixed(3)), Err(Error::Unauthentic));
    says(&mut client, Some(&mut server), Alert::BadRecordMac);

    // The first failure is the last: what follows is not looked at, and answered with nothing.
    for follows in [&[20, 3, 3, 0, 1, 1][..], &[22, 3, 3, 0, 4, 0, 0, 0, 0], b""] {
        assert!(client.receive(&mut follows.to_vec(), &mut fixed(3)).is_err());
        assert!(client.take_output().is_empty());
    }

    // Once there are keys, an alert in the clear is nobody's word.
    let (mut client, hello) = begin();
    let (flight, mut server) = Script::default().answer(&hello, None);
    let (first, _) = record::Record::first(&flight)
        .unwrap()
        .map(|first| flight.split_at(first.len()))
        .unwrap();
    let mut bytes = [first, &[21, 3, 3, 0, 2, 2, 40]].concat();
    let error = client.receive(&mut bytes, &mut fixed(3)).unwrap_err();
    assert_eq!(error.alert(), Some(Alert::UnexpectedMessage));
    says(&mut client, Some(&mut server), Alert::UnexpectedMessage);

    // Whoever gives up is told nothing.
    let (mut client, _) = begin();
    let mut alert = vec![21, 3, 3, 0, 2, 2, 40];
    assert_eq!(client.receive(&mut alert, &mut fixed(3)), Err(Error::Alerted(40)));
    assert!(client.take_output().is_empty());
}

/// The sealed messages of a flight.
fn unsealed(flight: &mut [u8], server: &mut Server) -> Vec<u8> {
    let mut opening = Opening::new(Version::Tls13, &server.handshake.keys()).unwrap();
    let (mut at, mut messages) = (0, Vec::new());
    let mut flight = flight.to_vec();
    while let Some(len) = record::Record::first(&flight[at..]).unwrap().map(|record| record.len()) {
        let (head, content) = flight[at..at + len].split_first_chunk_mut().unwrap();
        if head[0] == record::APPLICATION {
            let (_, plain) = opening.open(head, content).unwrap();
            messages.extend_from_slice(&content[plain]);
        }
        at += len;
    }
    messages
}

#[test]
fn messages_come_in_their_order_and_whole_where_keys_change() {
    for (records, alert) in [
        // A message that is no ServerHello; one of no kind at all; a hello of a client.
        (&[22, 3, 3, 0, 4, 20, 0, 0, 0][..], Alert::UnexpectedMessage),
        (&[22, 3, 3, 0, 4, 0, 0, 0, 0], Alert::UnexpectedMessage),
        // Payload, and a change that means something.
        (&[23, 3, 3, 0, 20], Alert::UnexpectedMessage),
        (&[20, 3, 3, 0, 1, 2], Alert::UnexpectedMessage),
        (&[20, 3, 3, 0, 2, 1, 1], Alert::UnexpectedMessage),
        // Without content, and longer than any hello.
        (&[22, 3, 3, 0, 0], Alert::DecodeError),
        (&[22, 3, 3, 0, 4, 2, 0, 0x40, 0], Alert::RecordOverflow),
        (&[22, 3, 3, 0x40, 1], Alert::RecordOverflow),
    ] {
        let mut client = Client::start(plain(), Likes::default(), None).unwrap();
        client.take_output();
        let mut bytes = records.to_vec();
        bytes.resize(bytes.len().max(25), 0);
        let error = client.receive(&mut bytes, &mut fixed(3)).unwrap_err();
        assert_eq!(error.alert(), Some(alert), "{records:02x?}: {error}");
    }
    // The messages of a flight: EncryptedExtensions, Certificate, CertificateVerify, Finished, each sealed in a record; 8 is one in
    // the clear, and 9 a change_cipher_spec behind a part of the first.
    for order in [
        &[0, 0][..],
        &[1],
        &[2],
        &[3],
        &[0, 2],
        &[0, 3],
        &[0, 1, 1],
        &[0, 1, 3],
        &[0, 1, 0],
        &[0, 1, 2, 2],
        &[0, 1, 2, 1],
        &[8],
        &[0, 8],
        &[0, 1, 2, 8],
        &[9],
    ] {
        let mut client = Client::start(plain(), Likes::default(), None).unwrap();
        let hello = first_message(&client.take_output());
        let (mut flight, mut server) = Script::default().answer(&hello, None);
        let mut messages = Vec::new();
        let mut rest = unsealed(&mut flight, &mut server);
        while !rest.is_empty() {
            let len = 4 + usize::from(u16::from_be_bytes([rest[2], rest[3]]));
            messages.push(rest.drain(..len).collect::<Vec<_>>());
        }
        assert_eq!(messages.len(), 4);
        let first = record::Record::first(&flight).unwrap().unwrap().len();
        let mut bytes = flight[..first].to_vec();
        let mut sealing = Sealing::new(Version::Tls13, &server.handshake.keys()).unwrap();
        for step in order {
            match step {
                8 => record::write(&mut bytes, record::HANDSHAKE, 3, &messages[0]),
                9 => {
                    sealing.push(record::HANDSHAKE, &messages[0][..3], &mut bytes).unwrap();
                    record::write(&mut bytes, record::CHANGE_CIPHER_SPEC, 3, &[1]);
                }
                step => sealing.push(record::HANDSHAKE, &messages[*step], &mut bytes).unwrap(),
            }
        }
        let error = client.receive(&mut bytes, &mut fixed(3)).unwrap_err();
        assert_eq!(error.alert(), Some(Alert::UnexpectedMessage), "{order:?}: {error}");
    }
    // ServerHello, and the beginning of something in the same record.
    let mut client = Client::start(plain(), Likes::default(), None).unwrap();
    let hello = first_message(&client.take_output());
    let (flight, _) = Script::default().answer(&hello, None);
    let first = record::Record::first(&flight).unwrap().unwrap();
    let mut bytes = Vec::new();
    record::write(&mut bytes, record::HANDSHAKE, 3, &[first.content, &[8]].concat());
    let error = client.receive(&mut bytes, &mut fixed(3)).unwrap_err();
    assert_eq!(error.alert(), Some(Alert::UnexpectedMessage));
    assert_eq!(Kind::SERVER_HELLO.0, 2);
}
