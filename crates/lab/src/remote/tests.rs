#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::*;

/// Long enough for anything here on a busy machine.
const AMPLE: Duration = Duration::from_secs(60);

/// What the job below panics at.
const PANIC: &str = "panic";

/// Says back what it is told, and counts how many of it there are.
struct Echo(Arc<AtomicUsize>);

impl Job for Echo {
    fn answer(&mut self, message: &[u8]) -> Vec<u8> {
        assert_ne!(message, serde_json::to_vec(PANIC).unwrap());
        message.to_vec()
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A responder in threads of its own, which ends when dropped.
struct Responding {
    address: SocketAddr,
    jobs: Arc<AtomicUsize>,
    events: Arc<Mutex<Vec<String>>>,
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<Result<(), RemoteError>>>,
}

fn token() -> Token {
    Token::parse("a token of nobody".replace(' ', "-").as_str()).unwrap()
}

fn responding() -> Responding {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (jobs, stop): (Arc<AtomicUsize>, Arc<AtomicBool>) = Default::default();
    let events: Arc<Mutex<Vec<String>>> = Arc::default();
    let (counted, asked, told) = (Arc::clone(&jobs), Arc::clone(&stop), Arc::clone(&events));
    let thread = std::thread::spawn(move || {
        let begin = |local: IpAddr, guest: IpAddr| {
            assert_eq!((local, guest), (address.ip(), address.ip()));
            counted.fetch_add(1, Ordering::AcqRel);
            Echo(Arc::clone(&counted))
        };
        let tell = |event| told.lock().unwrap().push(format!("{event:?}"));
        let stopped = || asked.load(Ordering::Acquire);
        serve(&listener, &token(), &Responder::default(), &begin, &tell, &stopped)
    });
    Responding {
        address,
        jobs,
        events,
        stop,
        thread: Some(thread),
    }
}

impl Responding {
    fn connect(&self, token: &Token) -> Result<Arc<Link>, RemoteError> {
        Link::connect(&self.address.to_string(), token)
    }

    /// As soon as it serves nobody else.
    fn connect_in_turn(&self) -> Arc<Link> {
        let mut link = self.connect(&token());
        wait(|| {
            if link.is_err() {
                link = self.connect(&token());
            }
            link.is_ok()
        });
        link.unwrap()
    }

    fn heard(&self, word: &str) -> usize {
        let events = self.events.lock().unwrap();
        events.iter().filter(|event| event.starts_with(word)).count()
    }
}

impl Drop for Responding {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(std::thread::panicking() || ended.unwrap().is_ok());
        }
    }
}

fn wait(mut done: impl FnMut() -> bool) {
    let until = Instant::now() + AMPLE;
    while !done() {
        assert!(Instant::now() < until, "it did not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn questions_are_answered_and_the_end_is_heard() {
    let responding = responding();
    let link = responding.connect(&token()).unwrap();
    assert!(link.responder().rtt_s.get() > 0.0);
    let said: Vec<u64> = vec![1, u64::MAX];
    assert_eq!(link.ask::<Vec<u64>>(&said).unwrap(), said);
    // It is heard of without being asked.
    std::thread::sleep(SILENCE + HEARTBEAT);
    assert_eq!(link.ask::<Vec<u64>>(&said).unwrap(), said);
    drop(link);
    wait(|| responding.jobs.load(Ordering::Acquire) == 0);
    wait(|| responding.heard("Left") == 1);
    assert!(responding.events.lock().unwrap()[1].ends_with("None)"), "it said so");
    responding.connect_in_turn();
}

#[test]
fn what_is_no_answer_or_too_long_ends_the_link() {
    let responding = responding();
    let text_for_number = |link: &Link| link.ask::<u8>(&"a text").unwrap_err();
    // With its quotes it is too long.
    let too_long = |link: &Link| link.ask::<String>(&"x".repeat(MAX_MESSAGE)).unwrap_err();
    for wrong in [&text_for_number as &dyn Fn(&Link) -> RemoteError, &too_long] {
        let link = responding.connect_in_turn();
        let error = wrong(&link);
        assert!(matches!(error, RemoteError::Malformed { .. }), "{error}");
        assert!(link.is_lost());
        assert!(matches!(link.ask::<String>(&"again"), Err(RemoteError::Lost { .. })));
        wait(|| responding.jobs.load(Ordering::Acquire) == 0);
    }
}

#[test]
fn a_responder_of_another_version_is_parted_from() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let responder = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let role = sealway_session::handshake::Role::Responder;
        let mut channel = channel::Channel::establish(stream, &token(), role).unwrap();
        let greeting = Greeting {
            version: VERSION + 1,
            responder: Responder::default(),
        };
        let greeting = serde_json::to_vec(&greeting).unwrap();
        channel.send(channel::MESSAGE, &greeting, AMPLE).unwrap();
        // Until the other end has gone.
        assert!(channel.receive(AMPLE).is_err());
    });
    let error = Link::connect(&address.to_string(), &token()).unwrap_err();
    assert!(
        matches!(error, RemoteError::OtherVersion { theirs } if theirs == VERSION + 1),
        "{error}"
    );
    assert_eq!(error.ending(), Ending::RemoteLost);
    responder.join().unwrap();
}

#[test]
fn a_second_client_is_turned_away() {
    let responding = responding();
    let link = responding.connect(&token()).unwrap();
    assert!(matches!(responding.connect(&token()), Err(RemoteError::Busy)));
    assert_eq!(link.ask::<u8>(&7).unwrap(), 7);
}

#[test]
fn strangers_end_nothing() {
    let responding = responding();
    let wrong = Token::generate().unwrap();
    for _ in 0..12 {
        let error = responding.connect(&wrong).unwrap_err();
        assert!(matches!(error, RemoteError::Refused), "{error}");
    }
    for garbage in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0; 4096], &[0xff; 10_000], b""] {
        let mut stream = TcpStream::connect(responding.address).unwrap();
        let _ = stream.write_all(garbage);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        // Not a word comes back.
        let mut back = Vec::new();
        let _ = stream.read_to_end(&mut back);
        assert!(back.is_empty());
    }
    wait(|| responding.heard("Stranger") == 16);
    assert_eq!(responding.heard("Joined"), 0);
    responding.connect(&token()).unwrap();
}

#[test]
fn strangers_who_say_nothing_take_no_turn() {
    let responding = responding();
    let silent = || TcpStream::connect(responding.address).unwrap();
    let _silent = [silent(), silent(), silent()];
    let link = responding.connect(&token()).unwrap();
    assert_eq!(link.ask::<u8>(&7).unwrap(), 7);
    assert_eq!(responding.heard("Stranger"), 0, "they are still there");
}

#[test]
fn a_job_that_panics_takes_only_its_client_with_it() {
    let responding = responding();
    let link = responding.connect(&token()).unwrap();
    assert!(matches!(link.ask::<String>(&PANIC), Err(RemoteError::Lost { .. })));
    assert_eq!(responding.connect_in_turn().ask::<u8>(&7).unwrap(), 7);
}

#[test]
fn a_client_that_vanishes_or_lies_takes_its_job_with_it() {
    for bytes in [
        &[][..],
        &[0x01],
        &[0xff; 8],
        &[0x01, 0x0f, 0xff, 0xff, 0, 0, 0, 0],
        &[0; 300],
    ] {
        let responding = responding();
        let stream = TcpStream::connect(responding.address).unwrap();
        let mut raw = stream.try_clone().unwrap();
        let _channel =
            channel::Channel::establish(stream, &token(), sealway_session::handshake::Role::Initiator).unwrap();
        wait(|| responding.jobs.load(Ordering::Acquire) == 1);
        raw.write_all(bytes).unwrap();
        // Who lies may be cut off before.
        let _ = raw.shutdown(std::net::Shutdown::Write);
        wait(|| responding.heard("Left") == 1);
        assert_eq!(responding.jobs.load(Ordering::Acquire), 0, "{bytes:?}");
    }
}

#[test]
fn tokens_are_long_enough_and_hidden() {
    let made = Token::generate().unwrap();
    assert_eq!(made.reveal().len(), 32);
    assert_ne!(made.reveal(), Token::generate().unwrap().reveal());
    assert_eq!(format!("{made:?}"), "Token");
    assert_eq!(
        Token::parse(&format!(" {}\n", made.reveal())).unwrap().reveal(),
        made.reveal()
    );
    assert!(matches!(Token::parse("short"), Err(TokenError::Length { got: 5 })));
    assert!(matches!(Token::parse(&"x".repeat(257)), Err(TokenError::Length { .. })));
    assert!(matches!(
        Token::parse("sixteen letters\u{e9}"),
        Err(TokenError::Characters)
    ));
    assert!(matches!(
        Token::parse("with a space in it"),
        Err(TokenError::Characters)
    ));
}

#[test]
fn a_file_that_others_may_read_is_no_secret() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    let allow = |mode| std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
    std::fs::write(&file, "0123456789abcdef\n").unwrap();
    allow(0o600);
    assert_eq!(Token::read(&file).unwrap().reveal(), "0123456789abcdef");
    allow(0o640);
    assert!(matches!(Token::read(&file), Err(TokenError::Exposed)));
    assert!(matches!(
        Token::read(folder.path()),
        Err(TokenError::Exposed | TokenError::File(_))
    ));
}
