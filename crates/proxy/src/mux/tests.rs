mod patience;

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use sealway_net::sock::Sock;
use sealway_v2ray::mux::{self, Status};
use sealway_v2ray::{Destination, Step};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::Instant;

use super::inbox::{End, Full};
use super::*;
use crate::carrier::Virtual;
use crate::pool::Class;
use crate::stats::Traffic;
use crate::stream::Stream;

fn here(port: u16) -> Destination {
    Destination::tcp(IpAddr::from([127, 0, 0, 1]), port)
}

/// Sends as much as there is room for.
fn fill(pipe: &mut Pipe) -> usize {
    let (data, mut sent) = (vec![7; 1 << 20], 0);
    let mut cx = Context::from_waker(Waker::noop());
    while let Poll::Ready(wrote) = pipe.poll_write(&mut cx, &data) {
        sent += wrote.unwrap();
    }
    sent
}

fn pipes(link: &Arc<Link>, many: u16) -> Vec<Pipe> {
    let one = |id| *Pipe::theirs(Arc::clone(link), Arc::default(), id, 1);
    (0..many).map(one).collect()
}

/// Takes the batch that waits. Returns the bytes of each session in it.
fn taken(link: &Link) -> Vec<(u16, usize)> {
    let mut batch = Vec::new();
    link.take(&mut batch);
    let (mut rest, mut found) = (&batch[..], Vec::<(u16, usize)>::new());
    while let Step::Done { value, used } = mux::decode(rest).unwrap() {
        let len = value.data.map_or(0, |range| range.len());
        match found.iter_mut().find(|(id, _)| *id == value.id) {
            Some((_, sum)) => *sum += len,
            None => found.push((value.id, len)),
        }
        rest = &rest[used..];
    }
    assert!(rest.is_empty());
    found
}

#[test]
fn nobody_gets_more_than_a_share_of_a_batch_while_others_wait() {
    let link = Link::new();
    let mut pipes = pipes(&link, 8);
    // One alone may take more than one among others.
    assert_eq!(fill(&mut pipes[0]), QUANTUM_FEW);
    assert!(fill(&mut pipes[1]) >= QUANTUM, "a second one has its share at once");
    taken(&link);
    for round in 0..3 {
        let sent: Vec<usize> = pipes.iter_mut().map(fill).collect();
        let batch = taken(&link);
        assert_eq!(batch.len(), 8);
        assert!(batch.iter().all(|(id, len)| sent[usize::from(*id)] == *len));
        if round > 0 {
            let (least, most) = (sent.iter().min().unwrap(), sent.iter().max().unwrap());
            assert!(*least >= QUANTUM && *most <= FULL / 8, "{sent:?}");
        }
    }
}

#[test]
fn a_full_batch_has_room_for_a_short_request_of_everybody_and_no_more() {
    let link = Link::new();
    let mut pipes = pipes(&link, MAX_SESSIONS as u16);
    let sent: Vec<usize> = pipes.iter_mut().map(fill).collect();
    assert!(sent.iter().all(|sent| *sent >= QUANTUM_LAST), "{sent:?}");
    assert!(link.unwritten() <= OVERFULL + QUANTUM_FEW, "{}", link.unwritten());
    // All have their turn again.
    taken(&link);
    assert!(fill(&mut pipes[MAX_SESSIONS - 1]) >= QUANTUM);
}

/// Sessions to targets that take nothing, each filled as far as it goes.
#[test]
fn ten_thousand_sessions_hold_a_bounded_memory() {
    let frame = vec![1; 65_535];
    let mut held = 0;
    for _ in 0..10_000_usize.div_ceil(MAX_SESSIONS) {
        let link = Meter::default();
        let inboxes: Vec<Inbox> = (0..MAX_SESSIONS).map(|_| Inbox::default()).collect();
        for inbox in &inboxes {
            while inbox.push(&link, &frame).is_ok() {
                assert!(inbox.waiting() <= 256 << 10);
            }
        }
        assert!(inboxes[0].waiting() >= 190 << 10, "{}", inboxes[0].waiting());
        held += link.waiting();
        assert!(link.waiting() <= MAX_WAITING_TOGETHER);
        // What one lets go of, another has.
        let last = &inboxes[MAX_SESSIONS - 1];
        assert!(!last.has_room(&link, 1000));
        inboxes[0].clear(&link);
        assert!(last.has_room(&link, 1000) && last.push(&link, &frame[..1000]).is_ok());
        for inbox in &inboxes {
            inbox.clear(&link);
        }
        assert_eq!(link.waiting(), 0);
    }
    assert!(held <= 160 << 20, "{held}");
}

#[test]
fn an_inbox_is_full_before_its_largest_buffer_overflows() {
    let link = Meter::default();
    let inbox = Inbox::default();
    let mut all = 0;
    while inbox.push(&link, &[3; 5000]).is_ok() {
        all += 5000;
    }
    assert!(matches!(inbox.push(&link, &[3; 5000]), Err(Full)));
    assert!(all <= Class::LARGEST.size() && all > Class::LARGEST.size() - 5000);
    let (buf, range) = inbox.take(&link).unwrap();
    assert_eq!((range.len(), &buf[range.clone()]), (all, &vec![3; all][..]));
    assert!(inbox.has_room(&link, 5000) && inbox.take(&link).is_none());
    // A read of less leaves the rest.
    inbox.push(&link, b"abcdef").unwrap();
    let mut cx = Context::from_waker(Waker::noop());
    let mut two = [0; 4];
    assert!(matches!(inbox.poll_read(&link, &mut cx, &mut two), Poll::Ready(Ok(4))));
    inbox.push(&link, b"gh").unwrap();
    inbox.set_end(End::Ended);
    assert!(matches!(inbox.poll_read(&link, &mut cx, &mut two), Poll::Ready(Ok(4))));
    assert_eq!(&two, b"efgh");
    assert!(matches!(inbox.poll_read(&link, &mut cx, &mut two), Poll::Ready(Ok(0))));
    assert_eq!(link.waiting(), 0);
}

#[test]
fn datagrams_that_do_not_fit_are_lost_and_empty_ones_are_not_free() {
    let together = Arc::<AtomicUsize>::default();
    let peer = Destination::udp(IpAddr::from([127, 0, 0, 1]), 53);
    let inboxes: Vec<_> = (0..20).map(|_| PacketInbox::new(Arc::clone(&together))).collect();
    for inbox in &inboxes {
        for _ in 0..10_000 {
            inbox.push(peer.clone(), b"");
            inbox.push(peer.clone(), &[1; 1200]);
        }
    }
    let held = together.load(Ordering::Relaxed);
    assert!(held <= MAX_DATAGRAMS_TOGETHER + 2000, "{held}");
    let mut cx = Context::from_waker(Waker::noop());
    let mut batch = Batch::default();
    assert!(inboxes[0].poll_take(&mut cx, &mut batch) == Poll::Ready(true));
    let mut count = 0;
    while let Some((_, bytes)) = batch.next() {
        assert!(bytes.is_empty() || bytes == [1; 1200]);
        count += bytes.len();
    }
    assert!(count > 200_000 && count <= MAX_WAITING, "{count}");
    drop(inboxes);
    assert_eq!(together.load(Ordering::Relaxed), 0);
}

struct Client(Duration);

impl Role for Client {
    fn begin(&mut self, _: Begun<'_>) -> Option<Entry> {
        None
    }

    fn idle(&self) -> Duration {
        self.0
    }
}

/// A driver on a socket, whose other end is returned.
fn driver(link: &Arc<Link>, idle: Duration) -> (Driver<Client>, UnixStream) {
    let (near, far) = UnixStream::pair().unwrap();
    let stream = Stream::new(Sock::Unix(near), Traffic::default());
    (Driver::new(stream, Arc::clone(link), Client(idle)), far)
}

#[tokio::test(start_paused = true)]
async fn a_carrier_without_sessions_is_kept_for_its_time_and_then_takes_none() {
    for idle in [CLIENT_IDLE, SERVER_IDLE] {
        let link = Link::new();
        let (driver, far) = driver(&link, idle);
        let (began, inbox) = (Instant::now(), Arc::<Inbox>::default());
        let id = link
            .begin(8, Some(&here(1)), &|_| Entry::Stream(Arc::clone(&inbox), None))
            .unwrap();
        let pipe = Pipe::ours(Arc::clone(&link), Arc::clone(&inbox), id);
        let session = async {
            tokio::time::sleep(Duration::from_secs(100)).await;
            drop(pipe);
        };
        let far = async move {
            let (mut far, mut all) = (far, Vec::new());
            far.read_to_end(&mut all).await.unwrap();
            all
        };
        let ((ended, _), (), said) = tokio::join!(driver.run(), session, far);
        ended.unwrap();
        let took = began.elapsed();
        assert!(took >= idle + Duration::from_secs(100), "{took:?}");
        assert!(took < idle + Duration::from_secs(103), "{took:?}");
        assert!(link.is_spent() && link.begin(8, None, &|_| unreachable!()).is_none());
        // The peer was told of the session without data, and of its end.
        let Step::Done { value, used } = mux::decode(&said).unwrap() else {
            panic!("{said:?}");
        };
        assert!(matches!(value.status, Status::New { .. }) && value.data.is_none());
        let Step::Done { value, .. } = mux::decode(&said[used..]).unwrap() else {
            panic!("{said:?}");
        };
        assert_eq!(
            (value.status, value.error),
            (Status::End, true),
            "nobody said an end before"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn first_data_goes_with_the_frame_that_begins_the_session() {
    let link = Link::new();
    let (driver, mut far) = driver(&link, CLIENT_IDLE);
    let driving = tokio::spawn(driver.run());
    let inbox = Arc::<Inbox>::default();
    let id = link
        .begin(8, Some(&here(1)), &|_| Entry::Stream(Arc::clone(&inbox), None))
        .unwrap();
    let mut pipe = Pipe::ours(Arc::clone(&link), inbox, id);
    tokio::time::sleep(Duration::from_millis(5)).await;
    let mut cx = Context::from_waker(Waker::noop());
    assert!(matches!(pipe.poll_write(&mut cx, b"hello"), Poll::Ready(Ok(5))));
    let mut read = [0; 100];
    let len = far.read(&mut read).await.unwrap();
    let Step::Done { value, used } = mux::decode(&read[..len]).unwrap() else {
        panic!("{len}");
    };
    assert_eq!(
        (value.status, used),
        (
            Status::New {
                to: here(1),
                global: None
            },
            len
        )
    );
    assert_eq!(&read[value.data.unwrap()], b"hello");
    // The carrier breaks, and the session with it.
    drop(far);
    let (ended, _) = driving.await.unwrap();
    assert!(ended.is_ok());
    let broken = std::future::poll_fn(|cx| pipe.poll_read(cx, &mut read)).await;
    assert_eq!(broken.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
}

#[test]
fn a_client_has_as_many_sessions_as_are_allowed() {
    let link = Link::new();
    let inbox = Arc::<Inbox>::default();
    let entry = |_: &Link| Entry::Stream(Arc::clone(&inbox), None);
    let begin = || link.begin(3, Some(&here(1)), &entry);
    assert_eq!([begin(), begin(), begin(), begin()], [Some(1), Some(2), Some(3), None]);
    // One that the peer was never told of is forgotten without a word.
    drop(Pipe::ours(Arc::clone(&link), Arc::clone(&inbox), 2));
    assert_eq!(begin(), Some(4));
    assert_eq!(link.unwritten(), 0);
    for _ in 4..128 {
        drop(Pipe::ours(Arc::clone(&link), Arc::clone(&inbox), 1));
        assert!(begin().is_some());
    }
    drop(Pipe::ours(Arc::clone(&link), Arc::clone(&inbox), 1));
    assert!(begin().is_none() && link.is_spent());
}

/// A server that lets go of each session at once.
#[derive(Debug)]
struct Forgetful;

impl Role for Forgetful {
    fn begin(&mut self, begun: Begun<'_>) -> Option<Entry> {
        let inbox = Arc::<Inbox>::default();
        inbox.set_end(End::Broken);
        let link = Arc::clone(begun.link);
        drop(Pipe::theirs(link, Arc::clone(&inbox), begun.id, begun.serial));
        Some(Entry::Stream(inbox, None))
    }

    fn idle(&self) -> Duration {
        SERVER_IDLE
    }
}

#[tokio::test]
async fn sessions_that_are_over_hold_nothing_while_the_peer_reads_nothing() {
    let link = Link::new();
    let (near, mut far) = UnixStream::pair().unwrap();
    let stream = Stream::new(Sock::Unix(near), Traffic::default());
    let driver = Driver::new(stream, Arc::clone(&link), Forgetful);
    link.push(|out| out.resize(OVERFULL, 0));
    let driving = tokio::spawn(driver.run());
    let mut pair = Vec::new();
    for id in 0..100 {
        mux::push_new(&mut pair, id, &here(1), None, None).unwrap();
        mux::push_end(&mut pair, id, true);
    }
    for _ in 0..1000 {
        far.write_all(&pair).await.unwrap();
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(link.heard().1.len() < 5000, "what the driver has not heard of");
    driving.abort();
    // However the driver ends, its carrier is lost.
    assert!(driving.await.unwrap_err().is_cancelled() && link.is_spent());
}

#[test]
fn flows_that_wait_for_their_turn_wait_once() {
    struct Nobody;
    impl std::task::Wake for Nobody {
        fn wake(self: Arc<Self>) {}
    }
    let link = Link::new();
    let waker = Arc::new(Nobody).into();
    let mut cx = Context::from_waker(&waker);
    let from = Destination::udp(IpAddr::from([127, 0, 0, 1]), 53);
    let mut turns = [Turn::default(), Turn::default()];
    for turn in &mut turns {
        while push_datagram(&link, &mut cx, turn.on(1), 0, &from, &[1; 1000]).is_ready() {}
    }
    for _ in 0..10_000 {
        for turn in &mut turns {
            assert!(push_datagram(&link, &mut cx, turn.on(1), 0, &from, &[1; 1000]).is_pending());
        }
    }
    assert!(link.take(&mut Vec::new()).turns.len() <= 2);
    // What was written to one carrier says nothing of the next, whose batch may have the same number.
    let (first, second) = (Link::new(), Link::new());
    let mut turn = Turn::default();
    while push_datagram(&first, &mut cx, turn.on(1), 0, &from, &[1; 1000]).is_ready() {}
    assert!(push_datagram(&second, &mut cx, turn.on(2), 0, &from, &[1; 1000]).is_ready());
}

#[test]
fn what_stalled_owners_hold_counts_with_what_waits_for_them() {
    let together = Arc::<AtomicUsize>::default();
    let name = sealway_v2ray::Address::parse(&"a".repeat(60)).unwrap();
    let peer = Destination::udp(name, 53);
    let mut cx = Context::from_waker(Waker::noop());
    let mut owners = Vec::new();
    for _ in 0..256 {
        let inbox = PacketInbox::new(Arc::clone(&together));
        let mut batch = Batch::default();
        // It takes what has come once, and then nothing.
        for round in 0..2 {
            for _ in 0..300 {
                inbox.push(peer.clone(), &[1; 1000]);
                inbox.push(peer.clone(), &[]);
            }
            if round == 0 {
                let _ = inbox.poll_take(&mut cx, &mut batch);
            }
        }
        owners.push((inbox, batch));
    }
    let held = |batch: &mut Batch| {
        let mut sum = 0;
        while let Some((to, bytes)) = batch.next() {
            sum += bytes.len() + to.address.to_string().len() + size_of::<(Destination, usize)>();
        }
        sum
    };
    let mut sum = 0;
    for (inbox, batch) in &mut owners {
        sum += held(batch);
        let mut rest = Batch::default();
        if inbox.poll_take(&mut cx, &mut rest) == Poll::Ready(true) {
            sum += held(&mut rest);
        }
    }
    assert!(sum <= MAX_DATAGRAMS_TOGETHER, "{sum}");
    drop(owners);
    assert_eq!(together.load(Ordering::Relaxed), 0);
}
