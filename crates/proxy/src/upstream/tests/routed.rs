//! Questions that go out by the routing.

use std::collections::{HashSet, VecDeque};
use std::task::{Context, Poll, Waker};

use hickory_proto::op::Query;
use hickory_proto::rr::RecordType;

use super::*;
use crate::error::Pending;
use crate::roads::{self, Caller, Ways};
use crate::udp::Slot;

/// The far end of an association: it answers some questions, each with what `reply` says, and ends.
struct Far {
    left: usize,
    reply: fn(&[u8]) -> Vec<(Destination, Vec<u8>)>,
    answers: VecDeque<(Destination, Vec<u8>)>,
    waker: Option<Waker>,
}

impl PacketEnd for Far {
    fn poll_recv(&mut self, cx: &mut Context<'_>, slot: &mut Slot) -> Poll<Result<bool, Error>> {
        if let Some((from, answer)) = self.answers.pop_front() {
            slot.copy(&answer, from);
            return Poll::Ready(Ok(true));
        }
        if self.left == 0 {
            return Poll::Ready(Ok(false));
        }
        self.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    fn poll_send(&mut self, _: &mut Context<'_>, bytes: &[u8], _: &Destination) -> Poll<Result<(), Error>> {
        if let Some(left) = self.left.checked_sub(1) {
            self.left = left;
            self.answers.extend((self.reply)(bytes));
        }
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
        Poll::Ready(Ok(()))
    }
}

/// Ways that lead to such ends.
struct Ends {
    made: AtomicUsize,
    each: usize,
    reply: fn(&[u8]) -> Vec<(Destination, Vec<u8>)>,
}

impl Ways for Ends {
    fn connect<'a>(&'a self, _: &'a roads::Way, _: &'a Destination, _: &'a Caller) -> Pending<'a, Stream> {
        Box::pin(async { Err(Error::Closed) })
    }

    fn associate<'a>(
        &'a self,
        _: &'a roads::Way,
        _: &'a Destination,
        _: &'a Caller,
    ) -> Pending<'a, Box<dyn PacketEnd>> {
        self.made.fetch_add(1, Ordering::SeqCst);
        let far = Far {
            left: self.each,
            reply: self.reply,
            answers: VecDeque::new(),
            waker: None,
        };
        Box::pin(async { Ok(Box::new(far) as Box<dyn PacketEnd>) })
    }
}

fn to_ends(each: usize, reply: fn(&[u8]) -> Vec<(Destination, Vec<u8>)>) -> (Arc<dyn Exchange>, Arc<Ends>) {
    let ends = Arc::new(Ends {
        made: AtomicUsize::new(0),
        each,
        reply,
    });
    let roads = Roads::new(vec![]);
    let ways: Arc<dyn Ways> = Arc::clone(&ends) as _;
    roads.set(Arc::downgrade(&ways));
    (to_by("dns.test", &ClientTls::default(), roads), ends)
}

fn at(address: &str) -> Destination {
    Destination::udp(Address::parse(address).unwrap(), 53)
}

#[tokio::test]
async fn many_questions_share_an_association_and_one_that_ends_is_replaced() {
    let (wire, ends) = to_ends(3, |question| vec![(at("198.51.100.1"), honest(question))]);
    for _ in 0..9 {
        assert!(is_honest(ask(&wire).await));
    }
    let made = ends.made.load(Ordering::SeqCst);
    assert!((3..=4).contains(&made), "{made} associations for nine questions");
    let (wire, ends) = to_ends(usize::MAX, |question| vec![(at("198.51.100.1"), honest(question))]);
    let asking: Vec<_> = (0..200)
        .map(|n| {
            let name = name(&format!("name{n}.example")).unwrap();
            tokio::spawn(Arc::clone(&wire).ask(Question { name, ..question() }))
        })
        .collect();
    for task in asking {
        assert!(is_honest(task.await.unwrap()));
    }
    let made = ends.made.load(Ordering::SeqCst);
    assert!(made <= 2, "{made} associations for 200 questions");
}

#[tokio::test]
async fn the_address_that_answered_first_keeps_being_asked() {
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    let (wire, _ends) = to_ends(usize::MAX, |question| {
        let server = (at("198.51.100.1"), honest(question));
        let mut other_port = at("198.51.100.1");
        other_port.port = 54;
        match ASKED.fetch_add(1, Ordering::SeqCst) {
            0 => vec![(other_port, lie(question)), server],
            _ => vec![(at("203.0.113.9"), lie(question)), (other_port, lie(question)), server],
        }
    });
    for n in 0..5 {
        let answer = ask(&wire).await;
        assert!(
            is_honest(answer.as_ref().cloned().map_err(|_| Error::Closed)),
            "{n}: {answer:?}"
        );
    }
}

/// 20,000 datagrams at 10,000 a second from a stranger who knows the port, the id, the letters and the port of the server, but has
/// another address. The server has a name, and its questions go out by a socket that takes what anybody sends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_at_an_open_socket_changes_no_answer() {
    const QUESTIONS: usize = 10;
    const EACH: u32 = 2000;
    let (server, stranger) = loop {
        let server = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let port = server.local_addr().unwrap().port();
        if let Ok(stranger) = UdpSocket::bind(("127.0.0.2", port)).await {
            break (server, stranger);
        }
    };
    let port = server.local_addr().unwrap().port();
    let flooded = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&flooded);
    tokio::spawn(async move {
        let mut buffer = [0; 2048];
        let mut seen = HashSet::new();
        while let Ok((len, from)) = server.recv_from(&mut buffer).await {
            let question = &buffer[..len];
            let name = Message::from_vec(question).unwrap().queries[0].name().to_lowercase();
            let began = Instant::now();
            // A question that is repeated is answered at once: its answer was lost among the guesses.
            let rounds = if seen.insert(name) { EACH } else { 0 };
            for round in 0..rounds {
                let mut guess = lie(question);
                // Half of them have the right id.
                if round % 2 == 0 {
                    guess[..2].copy_from_slice(&(round as u16).to_be_bytes());
                }
                let sent = stranger.send_to(&guess, from).await;
                count.fetch_add(usize::from(sent.is_ok()), Ordering::SeqCst);
                if round % 100 == 0 {
                    tokio::time::sleep_until(began + Duration::from_micros(u64::from(round) * 100)).await;
                }
            }
            server.send_to(&honest(question), from).await.unwrap();
        }
    });
    let text = format!(
        r#"{{"dns": {{"tag": "dns-in", "queryStrategy": "UseIPv4", "hosts": {{"dns.test": "127.0.0.1"}},
            "servers": [{{"address": "dns.test", "port": {port}, "timeoutMs": 20000}}]}},
        "inbounds": [{{"tag": "in", "listen": "127.0.0.1", "port": 0, "protocol": "dokodemo-door",
            "settings": {{"address": "127.0.0.1", "port": 9, "network": "udp"}}}}],
        "outbounds": [{{"protocol": "dns", "tag": "answers"}}, {{"protocol": "freedom", "tag": "direct"}}],
        "routing": {{"rules": [{{"inboundTag": ["dns-in"], "outboundTag": "direct"}}]}}}}"#
    );
    let sealway = crate::Server::start(settings::Settings::of_text(&text)).await.unwrap();
    let client = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    client.connect(sealway.addresses("in")[0]).await.unwrap();
    let mut buffer = [0; 2048];
    for n in 0..QUESTIONS {
        let mut asked = Message::new(n as u16, MessageType::Query, OpCode::Query);
        let name = Name::from_ascii(format!("name{n}.example.")).unwrap();
        asked.add_query(Query::query(name, RecordType::A));
        client.send(&asked.to_vec().unwrap()).await.unwrap();
        let len = timeout(LIMIT, client.recv(&mut buffer)).await.unwrap().unwrap();
        let answer = Message::from_vec(&buffer[..len]).unwrap();
        let records: Vec<String> = answer.answers.iter().map(|record| record.data.to_string()).collect();
        assert_eq!(
            (answer.metadata.id, records.join(" ").as_str()),
            (n as u16, "192.0.2.1")
        );
    }
    assert_eq!(flooded.load(Ordering::SeqCst), QUESTIONS * EACH as usize);
}

#[test]
fn sockets_of_ours_have_a_mark() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let (socket, listener) = sockets().await;
        let address = socket.local_addr().unwrap();
        let text = format!("udp+local://{address}");
        let around = Around {
            socket: SocketOptions {
                mark: Some(255),
                ..SocketOptions::default()
            },
            ..around(&ClientTls::default(), Roads::new(vec![]))
        };
        let way = Way::new("", &server_of(&text), &around).unwrap().unwrap();
        // Only who may set a mark has one.
        let Ok(ours) = way.socket().await else { return };
        assert_eq!(socket2::SockRef::from(&*ours).mark().unwrap(), 255);
        let Sock::Tcp(ours) = way.sock().await.unwrap() else {
            panic!("TCP")
        };
        assert_eq!(socket2::SockRef::from(&ours).mark().unwrap(), 255);
        drop(listener);
    });
}
