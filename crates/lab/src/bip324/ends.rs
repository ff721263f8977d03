//! Who seals and opens: the face that all subjects have here, and our batches.
//!
//! Everybody seals into memory of their own and opens into memory of their own, as they do in a program; what they made is
//! looked at from outside.

use std::hint::black_box;
use std::ops::Range;
use std::rc::Rc;

use sealway_aead::batch::Lanes;
use sealway_bip324::batch::{BatchOptions, BatchTransport, ConnectionId, Executor, Routing};
use sealway_bip324::{DEFAULT_CONTENTS_LIMIT, Kind};

use super::links::{Link, failed};
use super::traffic::Traffic;
use crate::run::CellError;
use crate::workload::batch::Op;

/// The ends of the connections of some traffic.
pub(super) trait Ends {
    /// Puts all connections back to where a pass begins. Not timed.
    fn rewind(&mut self) -> Result<(), CellError>;

    /// Seals packets.
    fn seal(&mut self, traffic: &Traffic, packets: Range<usize>) -> Result<(), CellError>;

    /// Opens packets as the oracle sealed them, which come in pieces of whole packets of one connection.
    fn open(&mut self, traffic: &Traffic, packets: Range<usize>) -> Result<(), CellError>;

    /// Seals packets and opens what was made.
    fn pair(&mut self, traffic: &Traffic, packets: Range<usize>) -> Result<(), CellError>;

    /// Shows what was sealed last: connections, and bytes of whole packets.
    fn wires(&self, see: &mut dyn FnMut(usize, &[u8]));

    /// Shows what was opened last: connections, and the contents of a message each.
    fn messages(&self, see: &mut dyn FnMut(usize, &[u8]));

    /// How full the lanes of the cipher and of the authenticator were since the last call; nothing where there are none.
    fn lanes(&mut self) -> [Lanes; 2] {
        [Lanes::default(); 2]
    }

    /// Packets that an executor beside the processor did since the last call, and all packets; nothing where there is none.
    fn elsewhere(&mut self) -> [u64; 2] {
        [0; 2]
    }
}

/// Sets up the ends for an operation and batches of at most so many packets.
pub(super) type Make = Rc<dyn Fn(&Traffic, Op, usize) -> Result<Box<dyn Ends>, CellError>>;

/// A transport for batches at one end.
pub(super) struct BatchEnd {
    pub(super) transport: BatchTransport,
    pub(super) ids: Vec<ConnectionId>,
}

impl BatchEnd {
    pub(super) fn new(options: BatchOptions) -> Result<Self, CellError> {
        Ok(BatchEnd {
            transport: BatchTransport::new(options).map_err(failed)?,
            ids: Vec::new(),
        })
    }

    /// With these connections.
    pub(super) fn with(options: BatchOptions, links: &[Link]) -> Result<Self, CellError> {
        let mut end = BatchEnd::new(options)?;
        end.rewind(links)?;
        Ok(end)
    }

    /// Puts all connections in again, each in the place of its number.
    pub(super) fn rewind(&mut self, links: &[Link]) -> Result<(), CellError> {
        for id in self.ids.drain(..).rev() {
            self.transport.remove(id);
        }
        while self.transport.poll_closed().is_some() {}
        for (number, link) in links.iter().enumerate() {
            let id = self.transport.add(link.send_chain()?, link.recv_chain()?, &[]);
            let id = id.map_err(failed)?;
            if id.index() != number {
                return Err(failed("connections are not in their places"));
            }
            self.ids.push(id);
        }
        Ok(())
    }

    pub(super) fn submit(&mut self, traffic: &Traffic, packets: Range<usize>) -> Result<(), CellError> {
        for i in packets {
            let kind = if traffic.decoy(i) { Kind::Decoy } else { Kind::Genuine };
            self.transport
                .submit(self.ids[traffic.connection(i)], kind, traffic.contents(i))
                .map_err(failed)?;
        }
        Ok(())
    }

    fn seal(&mut self, traffic: &Traffic, packets: Range<usize>) -> Result<(), CellError> {
        self.submit(traffic, packets)?;
        self.transport.seal();
        self.check_executor()
    }

    /// What the processor did in the place of an executor that failed is not to be measured as that executor's work.
    pub(super) fn check_executor(&self) -> Result<(), CellError> {
        match self.transport.executor_failure() {
            None => Ok(()),
            Some(failure) => Err(failed(failure)),
        }
    }

    /// Opens what came, and looks at each message as a program does; gives the bytes of their contents.
    pub(super) fn finish_open(&mut self) -> Result<usize, CellError> {
        let bytes: usize = self.transport.open().iter().map(|message| message.contents.len()).sum();
        black_box(bytes);
        match self.transport.poll_closed() {
            None => self.check_executor().map(|()| bytes),
            Some((id, error)) => Err(CellError::wrong(format_args!(
                "connection {} ended: {error}",
                id.index()
            ))),
        }
    }

    /// Packets that an executor did, and all packets.
    pub(super) fn elsewhere(&self) -> [u64; 2] {
        let counters = self.transport.counters();
        [counters.executor_jobs, counters.executor_jobs + counters.processor_jobs]
    }
}

/// Options of a transport for batches of at most `batch` packets of some traffic, of which `at_once` are under way.
pub(super) fn options(traffic: &Traffic, batch: usize, at_once: usize) -> BatchOptions {
    let count = traffic.count();
    let wire = |start: usize| traffic.wires(&(start..(start + batch).min(count))).len();
    let largest = at_once * (0..count).step_by(batch).map(wire).max().unwrap_or(0);
    let mut options = BatchOptions::default();
    options.send_arena = options.send_arena.max(largest);
    options.receive_arena = options.receive_arena.max(largest + DEFAULT_CONTENTS_LIMIT + (1 << 17));
    options
}

/// Our engine for batches: a transport that seals and another that opens.
pub(super) struct Batched {
    links: Rc<Vec<Link>>,
    connections: usize,
    op: Op,
    here: BatchEnd,
    there: BatchEnd,
    /// What [`Ends::lanes`] has told so far.
    lanes: [Lanes; 2],
    /// What [`Ends::elsewhere`] has told so far.
    elsewhere: [u64; 2],
}

/// Gives an executor, and says what it is to do.
pub(super) type MakeExecutor = dyn Fn() -> Result<(Box<dyn Executor>, Routing), CellError>;

impl Batched {
    pub(super) const NAME: &'static str = "sealway";

    /// Ends for batches of at most `batch` packets.
    pub(super) fn new(links: Rc<Vec<Link>>, traffic: &Traffic, op: Op, batch: usize) -> Result<Self, CellError> {
        let options = options(traffic, batch, 1);
        Ok(Batched {
            links,
            connections: traffic.connections(),
            op,
            here: BatchEnd::new(options.clone())?,
            there: BatchEnd::new(options)?,
            lanes: [Lanes::default(); 2],
            elsewhere: [0; 2],
        })
    }

    /// The same with executors beside the processor, one at each end that works.
    pub(super) fn with_executors(mut self, make: &MakeExecutor) -> Result<Self, CellError> {
        let works = [(self.op.seals(), &mut self.here), (self.op.opens(), &mut self.there)];
        for (_, end) in works.into_iter().filter(|(works, _)| *works) {
            let (executor, routing) = make()?;
            end.transport.set_executor(executor, routing);
        }
        Ok(self)
    }
}

impl Ends for Batched {
    fn rewind(&mut self) -> Result<(), CellError> {
        let links = &self.links[..self.connections];
        if self.op.seals() {
            self.here.rewind(links)?;
        }
        if self.op.opens() {
            self.there.rewind(links)?;
        }
        Ok(())
    }

    fn seal(&mut self, traffic: &Traffic, packets: Range<usize>) -> Result<(), CellError> {
        self.here.seal(traffic, packets)?;
        // What a program would write to sockets.
        let bytes: usize = self
            .here
            .transport
            .outgoing()
            .iter()
            .map(|output| output.byte_count())
            .sum();
        black_box(bytes);
        Ok(())
    }

    fn open(&mut self, traffic: &Traffic, packets: Range<usize>) -> Result<(), CellError> {
        let mut i = packets.start;
        while i < packets.end {
            let end = traffic.piece(i, packets.end);
            let id = self.there.ids[traffic.connection(i)];
            self.there
                .transport
                .receive(id, &traffic.sealed[traffic.wires(&(i..end))])
                .map_err(failed)?;
            i = end;
        }
        self.there.finish_open().map(drop)
    }

    fn pair(&mut self, traffic: &Traffic, packets: Range<usize>) -> Result<(), CellError> {
        self.here.seal(traffic, packets)?;
        for output in self.here.transport.outgoing().iter() {
            let id = self.there.ids[output.id.index()];
            for bytes in output.slices() {
                self.there.transport.receive(id, bytes).map_err(failed)?;
            }
        }
        self.there.finish_open().map(drop)
    }

    fn wires(&self, see: &mut dyn FnMut(usize, &[u8])) {
        for output in self.here.transport.outgoing().iter() {
            for bytes in output.slices() {
                see(output.id.index(), bytes);
            }
        }
    }

    fn messages(&self, see: &mut dyn FnMut(usize, &[u8])) {
        for message in self.there.transport.incoming().iter() {
            see(message.id.index(), message.contents);
        }
    }

    fn lanes(&mut self) -> [Lanes; 2] {
        let mut sums = [Lanes::default(); 2];
        for end in [&self.here, &self.there] {
            let counters = end.transport.counters();
            for (sum, lanes) in sums.iter_mut().zip([counters.cipher_lanes, counters.mac_lanes]) {
                sum.used += lanes.used;
                sum.offered += lanes.offered;
            }
        }
        let before = std::mem::replace(&mut self.lanes, sums);
        for (sum, before) in sums.iter_mut().zip(before) {
            sum.used -= before.used;
            sum.offered -= before.offered;
        }
        sums
    }

    fn elsewhere(&mut self) -> [u64; 2] {
        let [here, there] = [&self.here, &self.there].map(BatchEnd::elsewhere);
        let sums = [here[0] + there[0], here[1] + there[1]];
        let before = std::mem::replace(&mut self.elsewhere, sums);
        [sums[0] - before[0], sums[1] - before[1]]
    }
}
