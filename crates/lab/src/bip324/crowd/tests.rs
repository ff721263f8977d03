//! Both kinds of ends over a few connections, and ends that lie; no time is asserted.

#![allow(clippy::unwrap_used)]

use super::*;

const FEW: usize = 7;

fn crowd() -> Rc<Crowd> {
    let links = Rc::new(links(FEW).unwrap());
    let traffic = Arc::new(Traffic::new(&links, Sizes::Mix, 0, 512).unwrap());
    Rc::new(Crowd { links, traffic })
}

fn visit(crowd: &Rc<Crowd>, make: Make) -> Result<Counted, CellError> {
    let crowd = Rc::clone(crowd);
    let batch = 64;
    let cell = CrowdCell { crowd, batch, make };
    cell.run(Duration::ZERO, Duration::from_millis(300))
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
    }
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
    assert!(
        matches!(&got, Err(CellError::Wrong { what }) if what.contains("on the wire")),
        "{got:?}"
    );
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
        assert!(
            matches!(&got, Err(CellError::Wrong { what }) if what.contains("is not the one that was sent")),
            "{lie:?}: {got:?}"
        );
    }
}

#[test]
fn an_end_that_leaves_has_failed() {
    let make: Make = Rc::new(|_| Ok([Box::new(Liar(Lie::Leaves)), Box::new(Liar(Lie::Leaves))]));
    let got = visit(&crowd(), make);
    assert!(
        matches!(&got, Err(CellError::Failed { what }) if what.contains("never said")),
        "{got:?}"
    );
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
        let got = verdict(sent.map(Some), opened);
        assert!(
            matches!(&got, Err(CellError::Wrong { what }) if what.contains("messages came of")),
            "{sent:?} {opened:?}: {got:?}"
        );
    }
    for sent in [[None, Some(5)], [Some(3), None]] {
        let got = verdict(sent, [5, 3]);
        assert!(
            matches!(&got, Err(CellError::Failed { what }) if what.contains("never said")),
            "{sent:?}: {got:?}"
        );
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
    let (counts, warning) = possible(&[1000, 10_000], 1 << 20);
    assert_eq!((counts, warning.is_none()), (vec![1000, 10_000], true));
    let (counts, warning) = possible(&[1000, 10_000, 20_000], 4096);
    assert_eq!(counts, [1000, 1998]);
    assert!(warning.unwrap().text.contains("1998 connections were possible"));
    assert!(possible(&[10], 50).0.is_empty());
}
