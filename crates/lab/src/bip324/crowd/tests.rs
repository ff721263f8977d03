//! Both kinds of ends over a few connections, and ends that lie; no time is asserted.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::pin::Pin;

const FEW: usize = 7;

fn crowd() -> Rc<Crowd> {
    let links = Rc::new(links(FEW).unwrap());
    let traffic = Arc::new(Traffic::new(&links, Sizes::Mix, 0, 512).unwrap());
    Rc::new(Crowd { links, traffic })
}

fn cell(crowd: &Rc<Crowd>, make: Make, over: Option<Over>) -> CrowdCell {
    CrowdCell {
        crowd: Rc::clone(crowd),
        batch: 64,
        make,
        pin: Some(Places::find(&Pin::Auto).unwrap()),
        over,
        turns: 0,
    }
}

fn visit(crowd: &Rc<Crowd>, make: Make) -> Result<Counted, CellError> {
    cell(crowd, make, None).window(Duration::ZERO, Duration::from_millis(300))
}

/// It failed so, and says this.
fn fails<T: std::fmt::Debug>(got: Result<T, CellError>, how: &str, words: &str) {
    let error = got.unwrap_err().to_string();
    assert!(error.starts_with(how) && error.contains(words), "{error}");
}

#[test]
fn packets_come_both_ways() {
    let crowd = crowd();
    let makes: Vec<Make> = vec![
        Rc::new(batched),
        single(Rc::new(Own)),
        #[cfg(feature = "peers")]
        single(Rc::new(crate::bip324::theirs::Theirs::default())),
    ];
    for make in makes {
        let counted = visit(&crowd, make).unwrap();
        assert!(
            counted.ops > 0 && counted.bytes > 0 && counted.wall_s > 0.0,
            "{counted:?}"
        );
        let figure = |name| counted.figures.iter().find(|(its, _)| *its == name).unwrap().1;
        assert_eq!(figure("wire_bytes") as u64, counted.bytes + 20 * counted.ops);
        assert!(figure("cpu_per_op") > 0.0);
        let (name, took) = &counted.tails[0];
        assert_eq!(*name, MESSAGES);
        // The window is read beside ends that go on: what was told last may be in one count only.
        let (told, ops) = (took.count() as f64, counted.ops as f64);
        assert!((0.5..2.0).contains(&(told / ops)), "{told} latencies of {ops} messages");
        let [shortest, longest] = [0.0, 1.0].map(|q| took.at(q).unwrap());
        assert!(
            0.0 < shortest && shortest < longest && longest < 20.0,
            "{shortest} {longest}"
        );
    }
}

/// Both ends wait for the link and for nothing else: its rate is that of all packets, and no message is sooner than it is far.
#[test]
fn packets_come_both_ways_over_a_link() {
    let crowd = crowd();
    let link = "rate=2mbit,rtt=20ms".parse().unwrap();
    let over = Some(Over { link, seed: 1 });
    let makes: [Make; 2] = [Rc::new(batched), single(Rc::new(Own))];
    for make in makes {
        let mut cell = cell(&crowd, make, over);
        cell.prepare().unwrap();
        let counted = cell.window(Duration::ZERO, Duration::ZERO).unwrap();
        let rate = counted.bytes as f64 / counted.wall_s;
        // Without it a hundred times as much; what a busy machine held up may come in the window.
        assert!(0.0 < rate && rate < 4.0 * 2.0 * 250e3, "{rate} B/s");
        let soonest = counted.tails[0].1.at(0.0).unwrap();
        assert!(soonest >= 0.01, "{soonest} s");
    }
}

/// A link needs windows of some round trips, time for what is under way before them, and files for its relay.
#[test]
fn a_plan_knows_the_link() {
    let request = |link: &str| Request {
        sockets: vec![50],
        link: link.parse().ok(),
        peers: crate::workload::Peers::None,
        profile: Profile::Quick,
        budget: Some(Duration::from_secs(600)),
        ..Request::default()
    };
    let [loopback, near, far] = ["", "rtt=1ms", "rate=10mbit,rtt=100ms"].map(|link| prepare(&request(link)).unwrap());
    assert!(near.plan.expected > loopback.plan.expected);
    assert_eq!(near.plan.window, Profile::Quick.window());
    // Ten round trips, and two batches each way at the rate.
    assert!(
        far.plan.visit > Duration::from_secs(1) + Duration::from_secs(2),
        "{:?}",
        far.plan.visit
    );
    assert_ne!(loopback.scheme.def, near.scheme.def);
    let (counts, warning) = possible(&[1000], 2 * FILES_OF_ONE, 2100);
    assert_eq!(counts, [500]);
    assert!(warning.unwrap().text.contains("need 4100 open files"));
}

/// An end whose keys are those of other packets than the oracle's: both ends agree, and only the wire shows it.
#[test]
fn what_is_on_the_wire_is_compared() {
    let crowd = crowd();
    let make: Make = Rc::new(|links| {
        let mut other = links.to_vec();
        other.iter_mut().for_each(|link| link.content_key[0] ^= 1);
        batched(&other)
    });
    let got = visit(&crowd, make);
    fails(got, "wrong data: ", "on the wire");
}

/// What an end that lies makes of its course.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Lie {
    /// Tells of a message that is one bit off.
    Text,
    /// Tells of a message twice.
    Twice,
    /// Tells of no message that it had.
    Missing,
    /// Ends before anything is sent.
    Leaves,
}

/// An end that says it has opened everything and has not.
struct Liar(Lie);

impl End for Liar {
    fn run(self: Box<Self>, mut course: Course, _: Vec<TcpStream>) -> Result<(), CellError> {
        let traffic = Arc::clone(course.traffic());
        let mut packets = 0..0;
        while self.0 != Lie::Leaves && !course.is_over() {
            if packets.is_empty() {
                packets = course.next().unwrap_or_default();
            }
            // The other one was caught first.
            let Some(i) = packets.next() else {
                return Ok(());
            };
            let (connection, mut contents) = (traffic.connection(i), traffic.contents(i).to_vec());
            match self.0 {
                Lie::Text => {
                    contents.push(1);
                    course.opened(connection, &contents);
                }
                Lie::Twice => (0..2).for_each(|_| course.opened(connection, &contents)),
                Lie::Missing if i % 8 == 0 => {}
                Lie::Missing | Lie::Leaves => course.opened(connection, &contents),
            }
            course.tell()?;
        }
        Ok(())
    }
}

#[test]
fn lies_are_caught() {
    let crowd = crowd();
    for lie in [Lie::Text, Lie::Twice, Lie::Missing] {
        let make: Make = Rc::new(move |_| Ok([Box::new(Liar(lie)), Box::new(Liar(lie))]));
        let got = visit(&crowd, make);
        // Liars that do not wait for each other are wrong by their counts too; it is the comparison that is to catch them.
        fails(got, "wrong data: ", "is not the one that was sent");
    }
}

#[test]
fn an_end_that_leaves_has_failed() {
    let make: Make = Rc::new(|_| Ok([Box::new(Liar(Lie::Leaves)), Box::new(Liar(Lie::Leaves))]));
    let got = visit(&crowd(), make);
    fails(got, "failed: ", "never said");
}

/// So many messages of each direction, sent and opened.
fn verdict(sent: [Option<u64>; 2], opened: [u64; 2]) -> Result<(), CellError> {
    let shared = Arc::new(Shared::new(Arc::clone(&crowd().traffic), 64));
    for end in 0..2 {
        shared.set(end, sent[end], opened[end]);
    }
    shared.verdict()
}

#[test]
fn the_verdict_counts_both_directions() {
    assert_eq!(verdict([Some(3), Some(0)], [0, 3]), Ok(()));
    for (sent, opened) in [([3, 5], [5, 2]), ([3, 5], [5, 4]), ([3, 5], [4, 3]), ([3, 5], [6, 3])] {
        fails(verdict(sent.map(Some), opened), "wrong data: ", "messages came of");
    }
    for sent in [[None, Some(5)], [Some(3), None]] {
        fails(verdict(sent, [5, 3]), "failed: ", "never said");
    }
}

/// An end has never sent more than two batches beyond what it has received, batches that are cut short among them.
#[test]
fn nobody_is_more_than_two_batches_ahead() {
    let crowd = crowd();
    let batch = 200;
    let mut course = Course::new(Arc::new(Shared::new(Arc::clone(&crowd.traffic), batch)), 0);
    let mut sent = 0;
    for received in 0..3 * 512 {
        while let Some(packets) = course.next() {
            sent += packets.len();
        }
        let ahead = sent - received;
        assert!((batch + 1..=2 * batch).contains(&ahead), "{ahead} ahead of {received}");
        let i = received % 512;
        course.opened(crowd.traffic.connection(i), crowd.traffic.contents(i));
    }
}

#[test]
fn connections_have_packets_in_whole_batches() {
    for (count, want) in [(10, 16_384), (2_000, 16_384), (2_049, 20_480), (10_000, 81_920)] {
        assert_eq!(packets_on(count, Profile::Quick), want);
    }
    assert_eq!(packets_on(10_000, Profile::Standard), 131_072);
}

#[test]
fn files_limit_connections() {
    let (counts, warning) = possible(&[1000, 10_000], FILES_OF_ONE, 1 << 20);
    assert_eq!((counts, warning.is_none()), (vec![1000, 10_000], true));
    let (counts, warning) = possible(&[1000, 10_000, 20_000], FILES_OF_ONE, 4096);
    assert_eq!(counts, [1000, 1998]);
    assert!(warning.unwrap().text.contains("1998 connections were possible"));
    assert!(possible(&[10], FILES_OF_ONE, 50).0.is_empty());
}

/// A message takes from when its own batch was given to the other end, also after all of them have come round.
#[test]
fn a_message_takes_as_long_as_since_its_batch_was_given() {
    let crowd = crowd();
    let (count, batch) = (512, 200);
    let shared = Arc::new(Shared::new(Arc::clone(&crowd.traffic), batch));
    let [mut from, mut to] = [0, 1].map(|end| Course::new(Arc::clone(&shared), end));
    let receive = |from: &mut Course, to: &mut Course| {
        let packets = from.next().unwrap();
        for i in packets.clone() {
            to.opened(crowd.traffic.connection(i), crowd.traffic.contents(i));
            // So that the sender may go on.
            from.opened(crowd.traffic.connection(i), crowd.traffic.contents(i));
        }
        packets.len() as u64
    };
    let mut untimed = 0;
    while untimed < 2 * count {
        untimed += receive(&mut from, &mut to);
    }
    let slow = from.next().unwrap();
    thread::sleep(Duration::from_millis(50));
    shared.time(true);
    for i in slow.clone() {
        to.opened(crowd.traffic.connection(i), crowd.traffic.contents(i));
    }
    shared.time(false);
    // One that is not counted any more.
    receive(&mut from, &mut to);
    (0..2).for_each(|end| shared.leave(end));
    [&from, &to].into_iter().for_each(Course::leave);
    let took = shared.latencies();
    assert_eq!(took.count(), slow.len() as u64);
    let shortest = took.at(0.0).unwrap();
    assert!((0.05..0.05 + PATIENCE.as_secs_f64()).contains(&shortest), "{shortest}");
}
