//! The client against a server that does what it is told, right and wrong.
#![allow(clippy::unwrap_used, reason = "tests")]

mod retry;
mod wrong;

use super::*;
use crate::codec::extension::{self, body};
use crate::codec::{
    ClientHello, HEAD, Kind, Message, RETRY_RANDOM, write_certificate, write_certificate_verify,
    write_encrypted_extensions, write_finished, write_server_hello,
};
use crate::fuzzing::ends::fixed;
use crate::group;
use crate::schedule::{Handshake, TrafficSecret, Transcript};
use crate::template;

/// Accepts the certificate "mine" and a signature that is what was signed.
#[derive(Default)]
struct Likes {
    hellos: Option<(Vec<u8>, Vec<u8>)>,
}

impl Judge for Likes {
    fn certificate(&mut self, shown: &Shown<'_>) -> Result<(), Error> {
        self.hellos = Some((shown.client_hello.to_vec(), shown.server_hello.to_vec()));
        match shown.chain {
            [b"mine", ..] => Ok(()),
            _ => Err(Error::Certificate {
                alert: Alert::UnknownCa,
                why: "not mine".into(),
            }),
        }
    }

    fn signature(&mut self, certificate: &[u8], scheme: u16, message: &[u8], signature: &[u8]) -> Result<(), Error> {
        match (certificate, scheme) {
            (b"mine", 0x0403) if message == signature => Ok(()),
            _ => Err(Error::peer(Alert::DecryptError, "another signature")),
        }
    }
}

/// What a server says, message by message: each may be changed.
struct Script {
    suite: CipherSuite,
    group: Group,
    retry: Option<(Option<u16>, Option<Vec<u8>>)>,
    /// The content of the ServerHello after the handshake's own.
    hello_extensions: Option<Vec<(u16, Vec<u8>)>>,
    session_id: Option<Vec<u8>>,
    encrypted: Vec<(u16, Vec<u8>)>,
    ask: bool,
    chain: Vec<Vec<u8>>,
    /// In place of the certificate: the body of one that comes compressed.
    compressed: Option<Vec<u8>>,
    /// Extensions of the first certificate.
    entry: Vec<(u16, Vec<u8>)>,
    scheme: u16,
    wrong_signature: bool,
    wrong_finished: bool,
    /// Bytes of a record's content.
    cut: usize,
    padded: usize,
    empty_records: u32,
    changes: u32,
}

impl Default for Script {
    fn default() -> Self {
        Script {
            suite: CipherSuite::Aes128GcmSha256,
            group: Group::X25519MlKem768,
            retry: None,
            hello_extensions: None,
            session_id: None,
            encrypted: Vec::new(),
            ask: false,
            chain: vec![b"mine".to_vec()],
            compressed: None,
            entry: Vec::new(),
            scheme: 0x0403,
            wrong_signature: false,
            wrong_finished: false,
            cut: 1 << 14,
            padded: 0,
            empty_records: 0,
            changes: 1,
        }
    }
}

/// A server after its flight.
struct Server {
    handshake: TrafficSecret,
    secrets: Secrets,
    client: Opening,
    transcript: Transcript,
    expects: Vec<u8>,
}

fn first_message(records: &[u8]) -> Vec<u8> {
    let mut rest = records;
    while let Some(found) = record::Record::first(rest).unwrap() {
        if found.kind == record::HANDSHAKE {
            return found.content.to_vec();
        }
        rest = &rest[found.len()..];
    }
    panic!("no hello");
}

fn lists(extensions: &[(u16, Vec<u8>)]) -> Vec<(u16, &[u8])> {
    extensions.iter().map(|(kind, body)| (*kind, &body[..])).collect()
}

impl Script {
    /// What asks for another hello.
    fn retry(&self, hello: &[u8]) -> Option<Vec<u8>> {
        let (group, cookie) = self.retry.as_ref()?;
        let hello = ClientHello::read(Message::first(hello, MAX_HELLO).unwrap().unwrap()).unwrap();
        let mut extensions = vec![(extension::SUPPORTED_VERSIONS, vec![3, 4])];
        if let Some(group) = group {
            extensions.push((extension::KEY_SHARE, group.to_be_bytes().to_vec()));
        }
        if let Some(cookie) = cookie {
            extensions.push((extension::COOKIE, body::cookie(cookie).unwrap()));
        }
        let mut out = Vec::new();
        let id = self.suite.id();
        write_server_hello(&mut out, &RETRY_RANDOM, hello.session_id, id, &lists(&extensions)).unwrap();
        Some(out)
    }

    /// The whole flight.
    fn answer(&self, hello: &[u8], transcript: Option<Transcript>) -> (Vec<u8>, Server) {
        let hash = self.suite.hash();
        let read = ClientHello::read(Message::first(hello, MAX_HELLO).unwrap().unwrap()).unwrap();
        let share = read
            .extensions
            .key_shares()
            .unwrap()
            .unwrap()
            .get(self.group.id())
            .expect("a share");
        let (own, shared) = group::answer(self.group, share, &mut fixed(77)).unwrap();
        let extensions = self.hello_extensions.clone().unwrap_or_else(|| {
            vec![
                (extension::KEY_SHARE, body::key_share(self.group.id(), &own).unwrap()),
                (extension::SUPPORTED_VERSIONS, vec![3, 4]),
            ]
        });
        let id = self.session_id.clone().unwrap_or(read.session_id.to_vec());
        let mut server_hello = Vec::new();
        write_server_hello(&mut server_hello, &[5; 32], &id, self.suite.id(), &lists(&extensions)).unwrap();
        let mut transcript = transcript.unwrap_or_else(|| Transcript::new(hash));
        transcript.add(hello);
        transcript.add(&server_hello);
        let schedule = Handshake::new(self.suite, &shared, &transcript.value(), None);
        let mut sealing = Sealing::new(Version::Tls13, &schedule.secrets.server.keys()).unwrap();

        let (mut flight, mut from) = (Vec::new(), 0);
        let mut add = |flight: &[u8], transcript: &mut Transcript| {
            transcript.add(&flight[from..]);
            from = flight.len();
        };
        write_encrypted_extensions(&mut flight, &lists(&self.encrypted)).unwrap();
        if self.ask {
            flight.extend_from_slice(&[13, 0, 0, 11, 0, 0, 8, 0, 13, 0, 4, 0, 2, 4, 3]);
        }
        if let Some(body) = &self.compressed {
            flight.extend_from_slice(&[25, 0, (body.len() >> 8) as u8, body.len() as u8]);
            flight.extend_from_slice(body);
        } else if !self.entry.is_empty() {
            let list = lists(&self.entry).into_iter();
            let list: Vec<u8> = list
                .flat_map(|(kind, body)| [&kind.to_be_bytes()[..], &(body.len() as u16).to_be_bytes(), body].concat())
                .collect();
            let entry = [&[0, 0, 4][..], b"mine", &[0, list.len() as u8], &list].concat();
            let n = entry.len() as u8;
            flight.extend_from_slice(&[11, 0, 0, n + 4, 0, 0, 0, n]);
            flight.extend_from_slice(&entry);
        } else {
            write_certificate(&mut flight, &self.chain).unwrap();
        }
        add(&flight, &mut transcript);
        let mut signed = vec![b' '; 64];
        signed.extend_from_slice(b"TLS 1.3, server CertificateVerify\0");
        signed.extend_from_slice(transcript.value().as_ref());
        signed[70] ^= u8::from(self.wrong_signature);
        write_certificate_verify(&mut flight, self.scheme, &signed).unwrap();
        add(&flight, &mut transcript);
        let mut finished = schedule.secrets.server.finished(&transcript.value()).as_ref().to_vec();
        finished[31] ^= u8::from(self.wrong_finished);
        write_finished(&mut flight, &finished).unwrap();
        add(&flight, &mut transcript);

        let mut out = Vec::new();
        record::write(&mut out, record::HANDSHAKE, 3, &server_hello);
        for _ in 0..self.changes {
            record::write(&mut out, record::CHANGE_CIPHER_SPEC, 3, &[1]);
        }
        for _ in 0..self.empty_records {
            sealing.push(record::APPLICATION, b"", &mut out).unwrap();
        }
        for part in flight.chunks(self.cut) {
            let length = part.len() + 17 + self.padded;
            sealing
                .push_of_length(record::HANDSHAKE, part, length, &mut out)
                .unwrap();
        }
        // What the client is to send, but for its Finished.
        let mut expects = Vec::new();
        if self
            .encrypted
            .iter()
            .any(|(kind, _)| *kind == extension::APPLICATION_SETTINGS)
        {
            let settings = extension::APPLICATION_SETTINGS;
            write_encrypted_extensions(&mut expects, &[(settings, &[])]).unwrap();
        }
        if self.ask {
            expects.extend_from_slice(&[11, 0, 0, 4, 0, 0, 0, 0]);
        }
        let secrets = schedule.application(&transcript.value(), None);
        transcript.add(&expects);
        let finished = schedule.secrets.client.finished(&transcript.value());
        write_finished(&mut expects, finished.as_ref()).unwrap();
        let client = Opening::new(Version::Tls13, &schedule.secrets.client.keys()).unwrap();
        let server = Server {
            handshake: schedule.secrets.server,
            secrets,
            client,
            transcript,
            expects,
        };
        (out, server)
    }
}

/// Shows `bytes` to the client in pieces of this size.
fn show<J: Judge>(client: &mut Client<J>, bytes: &[u8], size: usize) -> Result<(), Error> {
    let mut held = Vec::new();
    for piece in bytes.chunks(size) {
        held.extend_from_slice(piece);
        let taken = client.receive(&mut held, &mut fixed(3))?;
        held.drain(..taken);
    }
    assert!(held.is_empty() || !client.is_done(), "what came was not taken");
    Ok(())
}

/// A whole handshake.
fn shake(script: &Script, hello: Hello, judge: Likes, size: usize) -> Result<(Finished<Likes>, Vec<u8>), Error> {
    let mut client = Client::start(hello, judge, None)?;
    let mut hello = first_message(&client.take_output());
    let mut transcript = None;
    if let Some(retry) = script.retry(&hello) {
        let mut records = Vec::new();
        record::write(&mut records, record::HANDSHAKE, 3, &retry);
        show(&mut client, &records, size)?;
        let mut so_far = Transcript::after_retry(script.suite.hash(), &hello);
        so_far.add(&retry);
        transcript = Some(so_far);
        let out = client.take_output();
        assert_eq!(out[..6], [20, 3, 3, 0, 1, 1]);
        hello = first_message(&out);
    }
    let (flight, mut server) = script.answer(&hello, transcript);
    show(&mut client, &flight, size)?;
    let mut out = client.take_output();
    if script.retry.is_none() {
        assert_eq!(out.drain(..6).collect::<Vec<_>>(), [20, 3, 3, 0, 1, 1]);
    }
    let (head, content) = out.split_first_chunk_mut().unwrap();
    let (kind, plain) = server.client.open(head, content).unwrap();
    assert_eq!((kind, &content[plain]), (record::HANDSHAKE, &server.expects[..]));
    let done = client.finish().unwrap();
    server.transcript.add(&server.expects);
    for (ours, theirs) in [
        (&done.secrets.client, &server.secrets.client),
        (&done.secrets.server, &server.secrets.server),
    ] {
        assert_eq!(ours.keys().key(), theirs.keys().key());
        assert_eq!(ours.keys().iv(), theirs.keys().iv());
    }
    Ok((done, hello))
}

fn plain() -> Hello {
    crate::fuzzing::client::hello()
}

fn browser() -> Hello {
    template::chrome(Some("a.test"), true, &mut fixed(1)).unwrap()
}

#[test]
fn a_handshake_goes_through_in_every_suite_and_group_however_it_is_cut() {
    for suite in CipherSuite::ALL {
        for group in Group::SHARED {
            for (cut, size) in [(1 << 14, usize::MAX), (1 << 14, 1), (1, 7), (13, 29)] {
                for hello in [plain(), browser()] {
                    let script = Script {
                        suite,
                        group,
                        cut,
                        ..Script::default()
                    };
                    let (done, hello) = shake(&script, hello, Likes::default(), size).unwrap();
                    assert_eq!((done.suite, done.group, &done.alpn), (suite, group, &None));
                    let (client_hello, server_hello) = done.judge.hellos.unwrap();
                    assert_eq!((client_hello, server_hello[0]), (hello, 2));
                }
            }
        }
    }
}

#[test]
fn a_server_may_pad_ask_and_choose() {
    let script = Script {
        encrypted: vec![
            (extension::ALPN, body::names(&["h2"]).unwrap()),
            (extension::SERVER_NAME, Vec::new()),
            (extension::SUPPORTED_GROUPS, vec![0, 2, 0, 0x1d]),
        ],
        ask: true,
        padded: 900,
        changes: MAX_CHANGES,
        ..Script::default()
    };
    let (done, _) = shake(&script, plain(), Likes::default(), 100).unwrap();
    assert_eq!(done.alpn.unwrap(), b"h2");
    // Without a session id to be echoed, and with settings of the application.
    let script = Script {
        encrypted: vec![
            (extension::ALPN, body::names(&["h2"]).unwrap()),
            (extension::APPLICATION_SETTINGS, vec![1, 2, 3]),
        ],
        changes: 0,
        ..Script::default()
    };
    assert!(shake(&script, browser(), Likes::default(), 100).is_ok());
}

#[test]
fn secrets_are_logged_only_where_that_is_asked_for() {
    #[derive(Default)]
    struct Log(std::sync::Mutex<Vec<(&'static str, [u8; 32])>>);
    impl KeyLog for Log {
        fn secret(&self, label: &'static str, random: &[u8; 32], _: &[u8]) {
            self.0.lock().unwrap().push((label, *random));
        }
    }
    let log = Arc::new(Log::default());
    let hello = plain();
    let random = *hello.random();
    let mut client = Client::start(hello, Likes::default(), Some(log.clone() as Arc<dyn KeyLog>)).unwrap();
    let hello = first_message(&client.take_output());
    let (flight, _) = Script::default().answer(&hello, None);
    show(&mut client, &flight, 1000).unwrap();
    let logged = log.0.lock().unwrap();
    assert_eq!(logged.len(), 4);
    assert!(logged.iter().all(|(_, of)| *of == random));
}

#[test]
fn a_session_id_is_sealed_over_the_whole_hello() {
    let mut hello = browser();
    let mut seen = Vec::new();
    hello
        .seal_session_id(|message| {
            assert_eq!(message[39..71], [0; 32]);
            seen = message.to_vec();
            message[39..71].fill(0xab);
            Ok(())
        })
        .unwrap();
    let bytes = hello.to_bytes().unwrap();
    assert_eq!(bytes[39..71], [0xab; 32]);
    assert_eq!((&bytes[..39], &bytes[71..]), (&seen[..39], &seen[71..]));
    // The key that a session id is sealed with is that of the share that stands alone.
    let shares = ClientHello::read(Message::first(&bytes, MAX_HELLO).unwrap().unwrap()).unwrap();
    let shares = shares.extensions.key_shares().unwrap().unwrap();
    assert_eq!(hello.x25519().unwrap().public(), shares.get(0x1d).unwrap());
    assert_ne!(hello.x25519().unwrap().public(), shares.get(0x11ec).unwrap()[1184..]);
    let offer = Offer {
        shares: 1,
        ..Offer::default()
    };
    let hybrid = Hello::plain(&offer, &mut fixed(1)).unwrap();
    let bytes = hybrid.to_bytes().unwrap();
    assert!(bytes.ends_with(&hybrid.x25519().unwrap().public()));
}

/// The flights that the fuzz target begins with are those of this server. `SEALWAY_UPDATE_GOLDEN=1` writes them.
#[test]
fn kept_flights_go_through() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/tls13_server_flight");
    let scripts = [
        ("whole", Script::default()),
        (
            "cut",
            Script {
                cut: 40,
                ask: true,
                encrypted: vec![(extension::ALPN, body::names(&["h2"]).unwrap())],
                ..Script::default()
            },
        ),
        (
            "wrong",
            Script {
                wrong_finished: true,
                ..Script::default()
            },
        ),
    ];
    for (file, script) in scripts {
        let mut client = Client::start(plain(), Likes::default(), None).unwrap();
        let (flight, _) = script.answer(&first_message(&client.take_output()), None);
        if std::env::var_os("SEALWAY_UPDATE_GOLDEN").is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join(file), &flight).unwrap();
        }
        assert!(
            std::fs::read(folder.join(file)).unwrap() == flight,
            "{file} is not what is made now"
        );
        assert_eq!(show(&mut client, &flight, 100).is_err(), script.wrong_finished);
    }
}
