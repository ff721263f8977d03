//! The packets are what is stated, and wrong work is caught; no time is asserted.

use std::cell::Cell as Flag;
use std::collections::HashSet;
use std::io::{Read, Write};
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;

use sealway_bip324::{OVERHEAD, PacketOpener};

use super::cells::{Kept, PacketCell, Task};
use super::ciphers::Own;
use super::definition::{BATCH, MANY, Spec, batched, hash, single, specs};
use super::ends::{Batched, Ends, Make};
use super::framed::Loop;
use super::links::{Link, links};
use super::once::{self, Once};
use super::sockets::{self, Messages, Receiver, Sender, SocketCell};
use super::traffic::{DECOY_MAX, Traffic};
use super::*;
use crate::link::Over;
use crate::plan::Profile;
use crate::run::{CellError, Counted, Timed};
use crate::workload::batch::{Op, Sizes};
use crate::workload::engine::RustCrypto;

const FEW: usize = 5;

fn few() -> Rc<Vec<Link>> {
    Rc::new(links(FEW).unwrap())
}

/// Our opener, packet by packet, gives back what the oracle sealed, over several changes of keys.
#[test]
fn traffic_is_the_same_every_time_and_opens() {
    let links = few();
    let make = || Traffic::new(&links, Sizes::Mix, 20, 4000).unwrap();
    let traffic = make();
    assert!(traffic.sealed == make().sealed);
    let all = 0..traffic.count();
    let contents: usize = all.clone().map(|i| traffic.contents(i).len()).sum();
    assert_eq!(traffic.sealed.len(), contents + traffic.count() * OVERHEAD);
    let decoys = all.clone().filter(|&i| traffic.decoy(i)).count();
    assert!(decoys.abs_diff(800) < 130, "{decoys}");
    assert!(
        all.clone()
            .all(|i| !traffic.decoy(i) || traffic.contents(i).len() <= DECOY_MAX)
    );
    let (messages, bytes) = traffic.useful(&all);
    assert_eq!(messages as usize, traffic.count() - decoys);
    let genuine = all.clone().filter(|&i| !traffic.decoy(i));
    assert_eq!(
        bytes as usize,
        genuine.map(|i| traffic.contents(i).len()).sum::<usize>()
    );
    let mut openers: Vec<PacketOpener> = links
        .iter()
        .map(|link| PacketOpener::new(link.recv_chain().unwrap()))
        .collect();
    for i in all {
        let (length, rest) = traffic.sealed[traffic.wire(i)].split_first_chunk().unwrap();
        let opener = &mut openers[traffic.connection(i)];
        assert_eq!(opener.open_length(*length).unwrap(), rest.len());
        let mut text = rest.to_vec();
        let (kind, contents) = opener.open_in_place(&[], &mut text).unwrap();
        assert_eq!(contents, traffic.contents(i));
        assert_eq!(kind == sealway_bip324::Kind::Decoy, traffic.decoy(i));
    }
    assert!(openers.iter().all(|opener| opener.next_number().unwrap().epoch() >= 2));
}

#[test]
fn cases_are_those_of_the_definition() {
    for profile in Profile::ALL {
        let list = specs(profile);
        let has = |wanted: &dyn Fn(&Spec) -> bool| list.iter().any(wanted);
        for op in [Op::Seal, Op::Open, Op::Pair] {
            assert!(list.contains(&Spec::mix(op, BATCH)), "{op:?}");
            assert!(has(
                &|spec| matches!(spec, Spec::Packets { op: its, connections: 1, .. } if *its == op)
            ));
        }
        for share in [5, 20] {
            assert!(has(
                &|spec| matches!(spec, Spec::Packets { op: Op::Pair, decoys, connections: MANY, .. } if *decoys == share)
            ));
        }
        for bytes in [32, 128, 512, 4096] {
            assert!(has(
                &|spec| matches!(spec, Spec::Packets { sizes, .. } if *sizes == Sizes::Fixed(bytes))
            ));
            for batch in [1, 256] {
                assert!(list.contains(&Spec::Sockets { bytes, batch }));
            }
        }
        assert!(Once::ALL.iter().all(|once| list.contains(&Spec::Once(*once))));
        let largest = if profile == Profile::Quick { 16_384 } else { 65_536 };
        for batch in [1, 4, 16, 64, 256, 1024, 4096, largest] {
            assert!(list.contains(&Spec::mix(Op::Seal, batch)), "{batch}");
        }
        let unique: HashSet<String> = list.iter().map(|spec| spec.case().canonical()).collect();
        assert_eq!(unique.len(), list.len());
    }
    assert_eq!(hash(Profile::Standard, None), hash(Profile::Full, None));
    assert_ne!(hash(Profile::Quick, None), hash(Profile::Full, None));
    let link = "rtt=1ms".parse().ok();
    assert_ne!(hash(Profile::Quick, link), hash(Profile::Quick, None));
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Fault {
    None,
    /// Does nothing and shows what was there.
    Idle,
    /// One bit of the last packet is wrong.
    Wire,
    /// A packet is missing.
    Missing,
    /// One bit of a message is wrong.
    Text,
    /// A message is told twice.
    Twice,
    /// Opens whatever comes.
    Credulous,
    /// Ends in the midst of it.
    Leaves,
}

/// Ends with a fault, from the second batch on.
struct Broken {
    inner: Box<dyn Ends>,
    fault: Fault,
    batches: u32,
}

impl Broken {
    fn works(&mut self) -> bool {
        self.batches += 1;
        self.fault != Fault::Idle || self.batches < 2
    }

    /// Shows everything but what the fault does to the last.
    fn show(&self, see: &mut dyn FnMut(usize, &[u8]), all: &[(usize, Vec<u8>)], flips: bool) {
        let Some(((connection, last), rest)) = all.split_last() else {
            return;
        };
        rest.iter().for_each(|(connection, bytes)| see(*connection, bytes));
        let mut last = last.clone();
        if flips && let Some(byte) = last.last_mut() {
            *byte ^= 1;
        }
        if !(self.fault == Fault::Missing) {
            see(*connection, &last);
        }
        if self.fault == Fault::Twice {
            see(*connection, &last);
        }
    }
}

impl Ends for Broken {
    fn rewind(&mut self) -> Result<(), CellError> {
        self.inner.rewind()
    }

    fn seal(&mut self, traffic: &Traffic, packets: Range<usize>) -> Result<(), CellError> {
        if self.works() {
            self.inner.seal(traffic, packets)?;
        }
        Ok(())
    }

    fn open(&mut self, traffic: &Traffic, packets: Range<usize>) -> Result<(), CellError> {
        if !self.works() {
            return Ok(());
        }
        match self.inner.open(traffic, packets) {
            Err(_) if self.fault == Fault::Credulous => Ok(()),
            opened => opened,
        }
    }

    fn pair(&mut self, traffic: &Traffic, packets: Range<usize>) -> Result<(), CellError> {
        if self.works() {
            self.inner.pair(traffic, packets)?;
        }
        Ok(())
    }

    fn wires(&self, see: &mut dyn FnMut(usize, &[u8])) {
        let mut all = Vec::new();
        self.inner
            .wires(&mut |connection, bytes| all.push((connection, bytes.to_vec())));
        self.show(see, &all, self.fault == Fault::Wire);
    }

    fn messages(&self, see: &mut dyn FnMut(usize, &[u8])) {
        let mut all = Vec::new();
        self.inner
            .messages(&mut |connection, bytes| all.push((connection, bytes.to_vec())));
        self.show(see, &all, self.fault == Fault::Text);
    }
}

fn visit(cell: &mut dyn Timed) -> Result<Counted, CellError> {
    cell.prepare()?;
    cell.window(Duration::ZERO, Duration::from_millis(1))
}

fn task(links: &Rc<Vec<Link>>, op: Op, batch: usize, make: Make) -> Task {
    let mut forged = Traffic::new(links, Sizes::Fixed(40), 0, 20).unwrap();
    forged.flip(10, 30);
    Task {
        traffic: Rc::new(Traffic::new(links, Sizes::Fixed(50), 20, 2048).unwrap()),
        forged: Rc::new(vec![forged]),
        op,
        batch,
        latency: true,
        make,
        kept: Kept::Always,
    }
}

#[test]
fn wrong_work_is_caught_in_small_batches_and_in_large_ones() {
    let links = few();
    let visit_with = |fault, op, batch| {
        let its = Rc::clone(&links);
        let make: Make = Rc::new(move |traffic, op, batch| {
            let inner = Box::new(Batched::new(Rc::clone(&its), traffic, op, batch)?);
            Ok(Box::new(Broken {
                inner,
                fault,
                batches: 0,
            }))
        });
        visit(&mut PacketCell::new(task(&links, op, batch, make)))
    };
    for batch in [4, 512] {
        for (fault, op) in [
            (Fault::Idle, Op::Seal),
            (Fault::Idle, Op::Open),
            (Fault::Wire, Op::Seal),
            (Fault::Wire, Op::Pair),
            (Fault::Missing, Op::Seal),
            (Fault::Missing, Op::Open),
            (Fault::Text, Op::Open),
            (Fault::Text, Op::Pair),
            (Fault::Twice, Op::Open),
            (Fault::Credulous, Op::Seal),
            (Fault::Credulous, Op::Open),
        ] {
            let got = visit_with(fault, op, batch);
            assert!(
                matches!(got, Err(CellError::Wrong { .. })),
                "{fault:?} {op:?} {batch}: {got:?}"
            );
        }
        for op in [Op::Seal, Op::Open, Op::Pair] {
            visit_with(Fault::None, op, batch).unwrap();
        }
    }
}

/// Whoever is sound passes, and all count the same: messages, their contents, and the packets on the wire.
#[test]
fn all_subjects_agree_and_decoys_do_not_count() {
    let links = few();
    let traffic = Traffic::new(&links, Sizes::Fixed(50), 20, 2048).unwrap();
    let all = 0..traffic.count();
    let (messages, bytes) = traffic.useful(&all);
    let makes = [
        batched(&links),
        single(&Rc::new(Own), &links),
        single(&Rc::new(Loop::<RustCrypto>::NEW), &links),
        #[cfg(feature = "peers")]
        single(&Rc::new(theirs::Theirs::default()), &links),
    ];
    for make in makes {
        for (op, batch) in [(Op::Seal, 16), (Op::Open, 2048), (Op::Pair, 2048), (Op::Pair, 1)] {
            let counted = visit(&mut PacketCell::new(task(&links, op, batch, Rc::clone(&make)))).unwrap();
            assert!(counted.ops > 0 && counted.bytes == counted.ops * 50);
            let figure = |name: &str| {
                counted
                    .figures
                    .iter()
                    .find(|(its, _)| *its == name)
                    .map(|(_, value)| *value)
            };
            if batch == 2048 {
                assert_eq!(counted.ops % messages, 0);
                let passes = counted.ops / messages;
                assert_eq!(counted.bytes, passes * bytes);
                assert_eq!(
                    figure("wire_bytes"),
                    Some((passes as usize * traffic.sealed.len()) as f64)
                );
                let overhead = traffic.sealed.len() as f64 / bytes as f64 - 1.0;
                assert!((figure("overhead").unwrap() - overhead).abs() < 1e-9);
            }
        }
    }
}

/// A sender or a receiver with a fault.
struct Faulty<T> {
    inner: T,
    fault: Fault,
}

impl Sender for Faulty<Box<dyn Sender>> {
    fn send(&mut self, messages: &Messages, first: u64, count: usize, to: &mut dyn Write) -> Result<(), CellError> {
        match self.fault {
            Fault::Idle if first > 0 => Ok(()),
            Fault::Wire => {
                let mut wire = Vec::new();
                self.inner.send(messages, first, count, &mut wire)?;
                let last = wire.len() - 1;
                wire[last] ^= 1;
                to.write_all(&wire).map_err(|error| links::failed(&error))
            }
            Fault::Leaves if first > 0 => Err(links::failed("it has ended")),
            // Other contents under a good seal.
            Fault::Text => self.inner.send(messages, first + 1, count, to),
            _ => self.inner.send(messages, first, count, to),
        }
    }
}

impl Receiver for Faulty<Box<dyn Receiver>> {
    fn receive(&mut self, from: &mut dyn Read, see: &mut dyn FnMut(&[u8])) -> Result<usize, CellError> {
        let (fault, left_out) = (self.fault, Flag::new(false));
        self.inner.receive(from, &mut |contents| match fault {
            Fault::Missing if !left_out.replace(true) => {}
            _ => see(contents),
        })
    }
}

fn socket_cell(links: &Rc<Vec<Link>>, fault: Fault, single: bool, over: Option<Over>) -> SocketCell {
    let links = Rc::clone(links);
    let make: sockets::Make = Rc::new(move || {
        let (sender, receiver) = if single {
            sockets::single(&Own, &links[0])?
        } else {
            sockets::batched(&links[0])?
        };
        Ok((
            Box::new(Faulty { inner: sender, fault }),
            Box::new(Faulty { inner: receiver, fault }),
        ))
    });
    SocketCell::new(&Rc::new(Messages::new(128)), 16, &make, over)
}

#[test]
fn wrong_work_over_sockets_is_caught() {
    let links = few();
    for single in [true, false] {
        for fault in [Fault::Wire, Fault::Text, Fault::Missing] {
            let got = visit(&mut socket_cell(&links, fault, single, None));
            assert!(
                matches!(got, Err(CellError::Wrong { .. })),
                "{fault:?} {single}: {got:?}"
            );
        }
        let left = visit(&mut socket_cell(&links, Fault::Leaves, single, None));
        assert!(matches!(left, Err(CellError::Failed { .. })), "{single}: {left:?}");
        let counted = visit(&mut socket_cell(&links, Fault::None, single, None)).unwrap();
        assert!(counted.ops > 0 && counted.bytes == counted.ops * 128, "{counted:?}");
        assert!(counted.wall_s > 0.0 && counted.cpu_s > 0.0);
    }
}

/// What is wrong is caught over a link too, and nobody is faster than it is.
#[test]
fn packets_go_over_an_emulated_link() {
    let links = few();
    let link = "rate=2mbit,rtt=10ms".parse().unwrap();
    let over = Some(Over { link, seed: 1 });
    for single in [true, false] {
        let mut cell = socket_cell(&links, Fault::None, single, over);
        let counted = cell.window(Duration::ZERO, Duration::from_millis(250)).unwrap();
        let rate = counted.bytes as f64 / counted.wall_s;
        // Without it a hundred times as much; what a busy machine held up may come in the window.
        assert!(0.0 < rate && rate < 4.0 * 250e3, "{rate} B/s");
    }
    let got = socket_cell(&links, Fault::Text, false, over).window(Duration::ZERO, Duration::ZERO);
    assert!(matches!(got, Err(CellError::Wrong { .. })), "{got:?}");
}

#[test]
fn over_a_link_there_is_only_what_goes_through_sockets() {
    let request = Request {
        peers: workload::Peers::None,
        link: "rtt=1ms".parse().ok(),
        ..packets::tests::request(&[], 20)
    };
    let ready = prepare(&request).unwrap();
    assert!(ready.cells.iter().all(|cell| cell.case.text("op") == Some(LOOPBACK)));
    assert!(ready.cells.len() > 8);
}

#[test]
fn handshake_steps_are_checked() {
    let links = Rc::new(links(2 * once::CHUNK + 3).unwrap());
    for step in Once::ALL {
        let counted = visit(&mut once::own(step, Case::new(), &links)).unwrap();
        assert!(counted.ops > 0, "{step:?}");
        #[cfg(feature = "peers")]
        if let Some(mut cell) = once_theirs::theirs(step, Case::new(), &links) {
            assert!(visit(&mut cell).unwrap().ops > 0, "{step:?}");
        }
    }
    let at = once::At {
        case: Case::new(),
        subject: "test",
        links: &links,
    };
    let got = visit(&mut at.cell(
        |link| Ok(link.start),
        |start| Ok(once::answer(&[start ^ 1])),
        |link| Ok(once::answer(&[link.start])),
    ));
    assert!(matches!(got, Err(CellError::Wrong { .. })), "{got:?}");
}
