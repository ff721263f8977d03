//! A node's cells, on a device made of ordinary memory.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::bip324::gpu::tests::{broken, fake};

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

fn measured(open: &Open, threads: usize, subjects: &[&str]) -> Vec<(String, Result<Counted, CellError>)> {
    let time = Duration::from_millis(5);
    let spec = Spec { threads, batch: 256 };
    let window = |mut cell: Cell| {
        let counted = cell.prepare().and_then(|()| cell.window(time, time));
        (cell.subject.clone(), counted)
    };
    let cells = cells(&[spec], open, FEW).into_iter();
    let asked = cells.filter(|cell| subjects.contains(&cell.subject.as_str()));
    asked.map(window).collect()
}

#[test]
fn packets_go_where_they_should() {
    // To measure what this device costs takes long: one thread does.
    let mut windows = measured(&fake(), 2, &[Batched::NAME, GPU]);
    windows.extend(measured(&fake(), 1, &[ROUTED]));
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

#[test]
fn a_device_that_does_not_do_its_work_gives_no_figures() {
    for (subject, counted) in measured(&broken(), 2, &[Batched::NAME, GPU]) {
        assert_eq!(counted.is_ok(), subject == Batched::NAME, "{subject}: {counted:?}");
    }
}
