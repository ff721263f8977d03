//! How a sharing ends, seen from the end that shows its folder; nothing is mounted.

use std::io::ErrorKind;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use prost::Message as _;
use sealway_drop::cancel::Cancel;
use sealway_drop::link::{Connected, Connection, Connections, DataConnections, Place, connect};
use sealway_drop::testing::{listen, setup};
use sealway_drop::wire::control::{Body, Hello, Message, Role, Stop};
use sealway_drop::wire::kind;
use sealway_drop::{Error, Fault};
use sealway_drop_mount::sharing::{Options, share};

/// How long anything may take.
const LIMIT: Duration = Duration::from_secs(120);

/// The end that listens and shares, and one that dials and says that it mounts.
struct Case {
    control: Connection,
    data: DataConnections,
    cancel: Cancel,
    ready: Receiver<()>,
    ended: JoinHandle<Result<(), Error>>,
}

impl Case {
    fn start(gather: Duration) -> Self {
        let mut case = Self::unmet(gather);
        case.say(Body::Hello(Hello {
            version: 1,
            role: Role::Share as i32,
            mounts: true,
            ..Hello::default()
        }));
        assert!(matches!(case.hear(), Some(Body::Hello(_))));
        case
    }

    /// The end that dials has said nothing yet.
    fn unmet(gather: Duration) -> Self {
        let (listener, address) = listen();
        let cancel = Cancel::new();
        let (of, (tell, ready)) = (cancel.clone(), channel());
        let ended = std::thread::spawn(move || {
            let folder = tempfile::tempdir().unwrap();
            let options = Options {
                share: Some(folder.path().to_owned()),
                gather,
                ..Options::default()
            };
            let connected = connect(Place::Listen(listener), &setup(1), 1, &of)?;
            share(&options, connected, &of, &|_| tell.send(()).unwrap())
        });
        let place = Place::Dial {
            addresses: vec![address],
            patience: LIMIT,
        };
        let Connected { peered, data } = connect(place, &setup(2), 1, &Cancel::new()).unwrap();
        let stream = peered.connection.stream().unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        Self {
            control: peered.connection,
            data,
            cancel,
            ready,
            ended,
        }
    }

    fn say(&mut self, body: Body) {
        let message = Message { body: Some(body) }.encode_to_vec();
        self.control.writer.push(kind::CONTROL, 0, &message).unwrap();
        self.control.writer.flush().unwrap();
    }

    /// What the other end says next; `None` for an end in good order.
    fn hear(&mut self) -> Option<Body> {
        let record = self.control.reader.next().unwrap()?;
        Message::decode(record.payload).unwrap().body
    }

    /// Brings up the connection that is wanted; the sharing stands.
    fn stand(self) -> Standing {
        let cancel = Cancel::new();
        let connections = self.data.open_only(&[1], &cancel);
        let service = connections.next().unwrap().unwrap();
        self.ready.recv_timeout(LIMIT).unwrap();
        Standing {
            control: self.control,
            cancel: self.cancel,
            ended: self.ended,
            service: (service, connections),
        }
    }
}

struct Standing {
    control: Connection,
    cancel: Cancel,
    ended: JoinHandle<Result<(), Error>>,
    service: (Connection, Connections),
}

fn is(error: &Result<(), Error>, kind: ErrorKind) -> bool {
    matches!(error, Err(Error::Network { source, .. }) if source.kind() == kind)
}

#[test]
fn connections_that_do_not_come_are_not_waited_for_without_end() {
    let mut case = Case::start(Duration::from_millis(300));
    // The first connection is alive all the time, and is told why it ends.
    assert!(matches!(case.hear(), Some(Body::Stop(_))));
    drop(case.control);
    let ended = case.ended.join().unwrap();
    assert!(is(&ended, ErrorKind::TimedOut), "{ended:?}");
    assert_eq!(ended.unwrap_err().fault(), Fault::Network);
}

#[test]
fn an_end_that_dies_before_its_connections_come_is_noticed() {
    // At once, not when the limit is reached.
    let case = Case::start(Duration::from_secs(3600));
    drop(case.control);
    let ended = case.ended.join().unwrap();
    assert!(is(&ended, ErrorKind::UnexpectedEof), "{ended:?}");
}

#[test]
fn an_end_that_says_goodbye_is_no_error() {
    let mut case = Case::start(Duration::from_secs(3600));
    case.control.writer.close().unwrap();
    assert!(case.hear().is_none());
    assert!(case.ended.join().unwrap().is_ok());

    let mut standing = Case::start(Duration::from_secs(3600)).stand();
    standing.control.writer.close().unwrap();
    assert!(standing.control.reader.next().unwrap().is_none());
    assert!(standing.ended.join().unwrap().is_ok());
}

#[test]
fn a_goodbye_before_anybody_has_met_is_one() {
    // Of this end.
    let mut case = Case::unmet(LIMIT);
    assert!(matches!(case.hear(), Some(Body::Hello(_))));
    case.cancel.cancel();
    assert!(case.hear().is_none());
    assert!(case.ended.join().unwrap().is_ok());
    // Of the other one.
    let mut case = Case::unmet(LIMIT);
    case.control.writer.close().unwrap();
    assert!(matches!(case.hear(), Some(Body::Hello(_))));
    assert!(case.hear().is_none());
    assert!(case.ended.join().unwrap().is_ok());
}

#[test]
fn there_may_be_no_limit() {
    let mut standing = Case::start(Duration::MAX).stand();
    standing.control.writer.close().unwrap();
    assert!(standing.ended.join().unwrap().is_ok());
}

#[test]
fn an_end_that_vanishes_or_gives_up_is_one() {
    let standing = Case::start(LIMIT).stand();
    drop(standing.control);
    let ended = standing.ended.join().unwrap();
    assert!(is(&ended, ErrorKind::UnexpectedEof), "{ended:?}");

    let mut case = Case::start(LIMIT);
    case.say(Body::Stop(Stop {
        reason: "no room\u{1b}[2J".into(),
        ..Stop::default()
    }));
    let ended = case.ended.join().unwrap();
    assert!(
        matches!(&ended, Err(Error::Remote(reason)) if reason.contains("no room") && !reason.contains('\u{1b}')),
        "{ended:?}"
    );
}

#[test]
fn an_end_that_is_told_to_stop_says_goodbye_first() {
    let mut case = Case::start(Duration::from_secs(3600));
    case.cancel.cancel();
    assert!(case.hear().is_none(), "while it waits for connections");
    drop(case.control);
    assert!(case.ended.join().unwrap().is_ok());

    let Standing {
        mut control,
        cancel,
        ended,
        service: (mut service, _connections),
    } = Case::start(LIMIT).stand();
    // What the service says when it begins.
    assert_eq!(service.reader.next().unwrap().unwrap().kind, kind::TUNNEL);
    cancel.cancel();
    assert!(control.reader.next().unwrap().is_none(), "while it stands");
    // It keeps what this end may have mounted until this end has let go.
    control.writer.close().unwrap();
    assert!(ended.join().unwrap().is_ok());
}
