//! A transport with another executor, and beside it what is right.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

use sealway_bip324::batch::{BatchOptions, BatchTransport, ConnectionId, Costs, Executor, Line, Routing};
use sealway_bip324::fschacha::{RecvChain, SendChain};
use sealway_bip324::{Kind, PacketSealer};

use crate::common::Numbers;

/// Half of a batch of equal messages, whatever their length.
pub const HALF: Routing = Routing::Measured(Costs {
    cpu: Line {
        fixed: 0,
        job: 1000,
        byte: 0,
    },
    thread: Line {
        fixed: 0,
        job: 1,
        byte: 0,
    },
    executor: Line {
        fixed: 0,
        job: 1000,
        byte: 0,
    },
});

pub fn chains(n: usize) -> (SendChain, RecvChain) {
    let (lengths, contents) = ([n as u8; 32], [!(n as u8); 32]);
    let recv = RecvChain::new(&lengths, &contents).unwrap();
    (SendChain::new(&lengths, &contents).unwrap(), recv)
}

/// Options of a small transport.
pub fn small() -> BatchOptions {
    small_but(|_| {})
}

/// The same, but for what is set.
pub fn small_but(set: impl FnOnce(&mut BatchOptions)) -> BatchOptions {
    let mut made = BatchOptions::default();
    made.send_arena = 1 << 20;
    made.receive_arena = 1 << 20;
    made.contents_limit = 100_000;
    set(&mut made);
    made
}

/// A transport whose connections hear themselves, and beside each the sealer that says what is right.
pub struct Both {
    pub batch: BatchTransport,
    pub ids: Vec<ConnectionId>,
    pub sealers: Vec<PacketSealer>,
    pub numbers: Numbers,
}

impl Both {
    pub fn new(peers: usize) -> Self {
        let mut batch = BatchTransport::new(small_but(|made| made.receive_arena = 2 << 20)).unwrap();
        let add = |n| {
            let (send, recv) = chains(n);
            batch.add(send, recv, &[]).unwrap()
        };
        let ids = (0..peers).map(add).collect();
        let sealers = (0..peers).map(|n| PacketSealer::new(chains(n).0)).collect();
        Both {
            batch,
            ids,
            sealers,
            numbers: Numbers(4),
        }
    }

    pub fn set(&mut self, executor: impl Executor + 'static, routing: Routing) {
        self.batch.set_executor(Box::new(executor), routing);
    }

    /// Submits a packet; gives what it is on the wire.
    pub fn submit(&mut self, which: usize, contents: &[u8]) -> Vec<u8> {
        self.batch.submit(self.ids[which], Kind::Genuine, contents).unwrap();
        let mut wire = Vec::new();
        self.sealers[which]
            .seal(Kind::Genuine, &[], contents, &mut wire)
            .unwrap();
        assert_eq!(self.batch.next_sent(self.ids[which]), self.sealers[which].next_number());
        wire
    }

    /// Submits packets of random connections and lengths; gives what they are on the wire.
    pub fn submit_some(&mut self, count: usize) -> Vec<Vec<u8>> {
        let mut want = vec![Vec::new(); self.ids.len()];
        for n in 0..count {
            let which = self.numbers.below(self.ids.len());
            let contents = self.numbers.bytes(n % 50);
            want[which].extend(self.submit(which, &contents));
        }
        want
    }

    pub fn sealed(&mut self) -> Vec<Vec<u8>> {
        let mut wire = vec![Vec::new(); self.ids.len()];
        for output in self.batch.seal().iter() {
            wire[output.id.index()] = output.slices().flatten().copied().collect();
        }
        wire
    }

    /// Sends so many packets and receives them, and compares with what is right.
    pub fn round(&mut self, count: usize) {
        let want = self.submit_some(count);
        assert!(self.sealed() == want, "other bytes");
        for (id, wire) in self.ids.iter().zip(&want) {
            self.batch.receive(*id, wire).unwrap();
        }
        assert_eq!(self.batch.open().len(), count);
        assert_eq!(self.batch.poll_closed(), None);
    }
}
