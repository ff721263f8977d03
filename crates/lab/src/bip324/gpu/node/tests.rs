//! A node's cells, on a device made of ordinary memory.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::*;
use crate::packets::gpu::Open;
use crate::packets::gpu::tests::support::fake::{Fake, Kernels, Memory};
use crate::packets::gpu::tests::{broken, fake, fakes, worked};
use sealway_cuda::device::Launch;

const FEW: Extent = Extent {
    connections: 50,
    packets: 1024,
    slab: 320 << 10,
    warmup: Duration::ZERO,
    window: Duration::ZERO,
};

#[test]
fn threads_share_out_all_connections() {
    for threads in [1, 2, 3, 16] {
        let shares = shares(threads, FEW).unwrap();
        let sizes: Vec<usize> = shares.iter().map(|share| share.links.len()).collect();
        assert_eq!(sizes.iter().sum::<usize>(), FEW.connections, "{sizes:?}");
        assert!(
            sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1,
            "{sizes:?}"
        );
    }
}

#[test]
fn cases_end_with_all_processors_and_differ() {
    for cpus in [1, 2, 6, 16, 4000] {
        for profile in Profile::ALL {
            let specs = specs(profile, cpus);
            assert_eq!(specs[0].threads, cpus.min(MANY), "{specs:?}");
            let cases: std::collections::HashSet<_> = specs.iter().map(|spec| spec.case().canonical()).collect();
            assert_eq!(cases.len(), specs.len(), "{specs:?}");
        }
    }
}

fn measured(gpus: &Gpus, threads: usize, subjects: &[&str]) -> Vec<(String, Result<Counted, CellError>)> {
    let time = Duration::from_millis(5);
    let spec = Spec { threads, batch: 256 };
    let window = |mut cell: Cell| {
        let counted = cell.prepare().and_then(|()| cell.window(time, time));
        (cell.subject.clone(), counted)
    };
    let cells = cells(&[spec], gpus, FEW, None).into_iter();
    let asked = cells.filter(|cell| subjects.contains(&cell.subject.as_str()));
    asked.map(window).collect()
}

#[test]
fn packets_go_where_they_should() {
    // To measure what this device costs takes long: one thread does.
    let gpus = Gpus::unseen(&fake(), 1);
    let mut windows = measured(&gpus, 2, &[Batched::NAME, GPU]);
    windows.extend(measured(&gpus, 1, &[ROUTED]));
    assert_eq!(windows.len(), 3);
    for (subject, counted) in windows {
        let counted = counted.unwrap();
        assert!(counted.ops > 0 && counted.bytes > counted.ops, "{subject}");
        let (_, share) = counted.figures[0];
        match subject.as_str() {
            Batched::NAME => assert_eq!(share, 0.0),
            GPU => assert_eq!(share, 1.0),
            _ => assert!((0.0..=1.0).contains(&share), "{share}"),
        }
        let batches = counted.tails[0].1.count();
        assert!(
            batches >= if subject == ROUTED { 1 } else { 2 },
            "{subject}: a batch of each thread"
        );
    }
}

/// Both engines of a thread have one device, that of the next thread is the next.
#[test]
fn threads_share_out_the_devices() {
    let (open, opened) = fakes(2);
    let windows = measured(&Gpus::find(open).unwrap(), 4, &[GPU]);
    assert!(windows.iter().all(|(_, counted)| counted.is_ok()), "{windows:?}");
    // The first thread's were tried before.
    assert_eq!(worked(&opened), BTreeMap::from([(0, 6), (1, 4)]));
}

#[test]
fn a_device_that_does_not_do_its_work_gives_no_figures() {
    for (subject, counted) in measured(&Gpus::unseen(&broken(), 1), 2, &[Batched::NAME, GPU]) {
        assert_eq!(counted.is_ok(), subject == Batched::NAME, "{subject}: {counted:?}");
    }
}

/// What a device sees of the order: engines that are open, and whether one worked before all were.
#[derive(Default)]
struct Order {
    opened: AtomicUsize,
    worked: AtomicBool,
    early: AtomicBool,
}

/// A device that does nothing but look at the order, so that no costs come of it and the window ends there.
struct Looks(Arc<Order>, usize);

impl Kernels for Looks {
    fn run(&mut self, _: &Launch, _: &mut Memory) {
        let early = self.0.opened.load(Ordering::SeqCst) < self.1;
        self.0.early.fetch_or(early, Ordering::SeqCst);
        self.0.worked.store(true, Ordering::SeqCst);
    }
}

#[test]
fn costs_are_measured_when_all_threads_are_ready() {
    const THREADS: usize = 3;
    let order = Arc::new(Order::default());
    let theirs = Arc::clone(&order);
    let open: Open = Arc::new(move |options| {
        // Whoever measures without waiting for the last engine has time to do so.
        if theirs.opened.load(Ordering::SeqCst) + 1 == 2 * THREADS {
            let until = Instant::now() + Duration::from_millis(200);
            while Instant::now() < until && !theirs.worked.load(Ordering::SeqCst) {
                thread::sleep(Duration::from_millis(1));
            }
        }
        let device = Fake::new(Looks(Arc::clone(&theirs), 2 * THREADS));
        let engine = Engine::with_device(Box::new(device), options);
        theirs.opened.fetch_add(1, Ordering::SeqCst);
        engine
    });
    let spec = Spec {
        threads: THREADS,
        batch: 256,
    };
    let mut cells = cells(&[spec], &Gpus::unseen(&open, 1), FEW, None).into_iter();
    let mut routed = cells.find(|cell| cell.subject == ROUTED).unwrap();
    assert!(routed.window(Duration::ZERO, Duration::ZERO).is_err());
    assert_eq!(order.opened.load(Ordering::SeqCst), 2 * THREADS);
    assert!(order.worked.load(Ordering::SeqCst));
    assert!(!order.early.load(Ordering::SeqCst));
}
