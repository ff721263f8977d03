//! Shards whose engines have several devices, those of a stand-in for NVIDIA's driver.

#[path = "../../../cuda/tests/support/driver.rs"]
mod driver;

use std::num::NonZeroUsize;
use std::thread;

use sealway_bip324::batch::{BatchTransport, ConnectionId, Routing, Shards};
use sealway_bip324::{Kind, PacketSealer};
use sealway_cuda::{Engine, Options, probe};

use crate::both::{chains, small};
use driver::with_driver;

const SHARDS: usize = 4;

/// An engine of a shard, on the device whose turn it is.
fn engine(shard: usize, devices: usize) -> Engine {
    Engine::open(Options {
        device: (shard % devices) as u32,
        slots: 8,
        chunk_bytes: 4096,
        chunks: 1,
        slabs: 4,
        slab_bytes: 16_384,
        ..Options::default()
    })
    .unwrap()
}

/// Packets of a connection that hears itself, all of them on its engine.
fn echo(transport: &mut BatchTransport, id: ConnectionId, keys: usize) {
    let mut sealer = PacketSealer::new(chains(keys).0);
    for turn in 0..3 {
        let mut want = Vec::new();
        for len in 0..60 {
            let contents = vec![turn; len];
            transport.submit(id, Kind::Genuine, &contents).unwrap();
            sealer.seal(Kind::Genuine, &[], &contents, &mut want).unwrap();
        }
        let mut sealed: Vec<u8> = Vec::new();
        for output in transport.seal().iter() {
            sealed.extend(output.slices().flatten());
        }
        assert!(sealed == want, "shard {keys}: other bytes");
        transport.receive(id, &want).unwrap();
        let incoming = transport.open();
        assert!(incoming.iter().map(|message| message.contents.len()).eq(0..60));
    }
    let counters = transport.counters();
    assert_eq!((counters.executor_jobs, counters.processor_jobs), (2 * 3 * 60, 0));
    assert_eq!((counters.fallbacks, counters.connections_failed), (0, 0));
}

#[test]
fn shards_take_devices_in_turn() {
    with_driver("devices::shards_take_devices_in_turn", |driver| {
        driver.is("devices=2");
        let devices = probe().unwrap().len();
        let mut shards = Shards::new(&small(), NonZeroUsize::new(SHARDS).unwrap()).unwrap();
        let mut ids = Vec::new();
        let mut ordinals = Vec::new();
        for shard in 0..SHARDS {
            let (send, recv) = chains(shard);
            ids.push(shards.add(send, recv, &[]).unwrap());
            let engine = engine(shard, devices);
            ordinals.push(engine.device().ordinal);
            let transport = shards.shard(shard).unwrap();
            transport.set_executor(Box::new(engine), Routing::Always);
        }
        assert_eq!(ordinals, [0, 1, 0, 1]);
        thread::scope(|scope| {
            for (shard, transport) in shards.iter_mut().enumerate() {
                assert_eq!(ids[shard].shard, shard);
                let id = ids[shard].id;
                scope.spawn(move || echo(transport, id, shard));
            }
        });
        // One that goes leaves the others their devices.
        let mut transports = shards.into_transports();
        drop(transports.remove(0));
        let last = transports.len() - 1;
        transports[last]
            .submit(ids[SHARDS - 1].id, Kind::Genuine, b"more")
            .unwrap();
        assert_eq!(transports[last].seal().connections(), 1);
        assert!(transports[last].executor_failure().is_none());
    });
}
