//! The cells of a GPU, on a device made of ordinary memory.

use std::collections::BTreeMap;
use std::sync::Mutex;

use sealway_cuda::{Engine, Error, Options};

use super::*;
use crate::ending::Ending;
use crate::packets::tests::{Watcher, request};
use crate::run::{Counted, Timed};

// The devices that the engine is tested with: the kernels by an independent library, on memory of the host.
#[allow(unused_imports)]
#[path = "../../../../cuda/tests/support/mod.rs"]
pub(crate) mod support;

use sealway_cuda::device::Launch;
use support::fake::{Fake, Kernels, Memory, Seen};
use support::kernels::Model;

/// Engines that were opened: the number of the device, and what it saw.
pub(crate) type Opened = Arc<Mutex<Vec<(u32, Arc<Mutex<Seen>>)>>>;

/// A machine with so many devices.
pub(crate) fn fakes(count: u32) -> (Open, Opened) {
    let opened = Opened::default();
    let theirs = Arc::clone(&opened);
    let open: Open = Arc::new(move |options: Options| {
        let ordinal = options.device;
        if ordinal >= count {
            return Err(Error::NoSuchDevice {
                ordinal,
                devices: count,
            });
        }
        let device = Fake::new(Model);
        theirs.lock().unwrap().push((ordinal, Arc::clone(&device.seen)));
        Engine::with_device(Box::new(device), options)
    });
    (open, opened)
}

/// How many engines of each device have worked.
pub(crate) fn worked(opened: &Opened) -> BTreeMap<u32, usize> {
    let mut worked = BTreeMap::new();
    for (device, seen) in &*opened.lock().unwrap() {
        if !seen.lock().unwrap().launches.is_empty() {
            *worked.entry(*device).or_default() += 1;
        }
    }
    worked
}

pub(crate) fn fake() -> Open {
    fakes(1).0
}

fn spec(mode: Mode, op: Op) -> Spec {
    Spec {
        mode,
        op,
        sizes: Sizes::Mix,
        decoys: 0,
        batch: 40,
        streams: 2,
    }
}

fn windows_of(specs: &[Spec]) -> Result<Vec<(Cell, Counted)>, CellError> {
    let time = Duration::from_millis(5);
    cells(specs, &Gpus::unseen(&fake(), 1), 2)
        .into_iter()
        .map(|mut cell| {
            cell.prepare()?;
            let counted = cell.window(time, time)?;
            Ok((cell, counted))
        })
        .collect()
}

fn window(spec: Spec) -> Result<Vec<(String, Counted)>, CellError> {
    let windows = windows_of(&[spec])?.into_iter();
    Ok(windows.map(|(cell, counted)| (cell.subject, counted)).collect())
}

#[test]
fn every_mode_and_operation_is_measured_and_right() {
    let ops = [Op::Seal, Op::Open, Op::Pair];
    let modes = [Mode::Kernel, Mode::Pinned, Mode::Call];
    let specs = modes.iter().flat_map(|&mode| {
        // A batch that divides the pool: a slow machine's window may hold one batch alone, and that may be the pool's last.
        ops.map(|op| Spec {
            batch: 64,
            ..spec(mode, op)
        })
    });
    // All have the same packets, which take long to make.
    let specs: Vec<Spec> = specs.collect();
    let mut windows = windows_of(&specs).unwrap().into_iter();
    for spec in specs {
        let (mode, op) = (spec.mode, spec.op);
        let names: &[_] = match mode {
            Mode::Call => &[GPU, GPU_ALL_THREADS, "sealway", ALL_THREADS],
            _ => &[GPU],
        };
        for name in names {
            let (cell, counted) = windows.next().unwrap();
            assert_eq!((cell.subject.as_str(), &cell.case), (*name, &spec.case()));
            assert!(
                counted.ops >= 64 && counted.bytes > counted.ops,
                "{name} {mode:?} {op:?} {counted:?}"
            );
            // Made of memory, the device has no clock of its own.
            assert!(counted.wall_s > 0.0 || mode == Mode::Kernel, "{name} {mode:?} {op:?}");
        }
    }
    assert!(windows.next().is_none());
}

/// Of several devices one thread has the first, and all threads take them in turn.
#[test]
fn all_threads_share_out_the_devices() {
    let (open, opened) = fakes(2);
    let gpus = Gpus::find(open).unwrap();
    let specs = [Mode::Kernel, Mode::Pinned, Mode::Call].map(|mode| spec(mode, Op::Seal));
    for mut cell in cells(&specs, &gpus, 4) {
        opened.lock().unwrap().clear();
        let time = Duration::from_millis(1);
        cell.prepare().and_then(|()| cell.window(time, time)).unwrap();
        let worked = worked(&opened);
        match cell.subject.as_str() {
            // One more has looked whether forgeries are refused.
            GPU_ALL_THREADS => assert_eq!(worked, BTreeMap::from([(0, 3), (1, 2)])),
            GPU => assert!(worked.len() == 1 && worked.contains_key(&0), "{worked:?}"),
            _ => assert!(worked.is_empty(), "{worked:?}"),
        }
    }
    let subjects = subjects(&gpus, 4);
    let on = |name: &str| {
        let subject = subjects.iter().find(|subject| subject.name == name).unwrap();
        subject
            .differs
            .iter()
            .find_map(|fact| fact.strip_prefix("on "))
            .unwrap()
    };
    assert_eq!(on(GPU_ALL_THREADS), format!("2 x {}", on(GPU)));
}

#[test]
fn what_crosses_the_link_is_counted() {
    let figures = |op| {
        let (_, counted) = window(spec(Mode::Pinned, op)).unwrap().remove(0);
        let figure = |name| counted.figures.iter().find(|(other, _)| *other == name).unwrap().1;
        (
            figure("link_in"),
            figure("link_out"),
            counted.bytes as f64 / counted.ops as f64,
        )
    };
    let (into, out, mean) = figures(Op::Seal);
    // A descriptor of 32 bytes each and padding to 16 on the way in; tag, status and padding on the way out.
    assert!(into >= mean + 32.0 && into < mean + 32.0 + 60.0, "{into} for {mean}");
    assert!(out >= mean + 16.0 && out < mean + 16.0 + 60.0, "{out} for {mean}");
    let (opened_in, opened_out, _) = figures(Op::Open);
    assert!(opened_in >= into + 15.0 && opened_out <= out - 15.0);
    let (pair_in, pair_out, _) = figures(Op::Pair);
    assert!(pair_in > into * 1.5 && pair_out > out * 1.5, "a pair crosses twice");
}

#[test]
fn decoys_are_not_counted() {
    let all = window(spec(Mode::Kernel, Op::Seal)).unwrap().remove(0).1;
    let decoyed = Spec {
        decoys: 50,
        ..spec(Mode::Kernel, Op::Seal)
    };
    let some = window(decoyed).unwrap().remove(0).1;
    // Each run of the batch has 40 packets.
    assert_eq!(all.ops % 40, 0);
    let pool = Pool::with_decoys(Suite::ChaCha20Poly1305, Sizes::Mix, KeyUse::Resident, 4096, 50).unwrap();
    let genuine = pool.genuine(&(0..40));
    assert!((5..35).contains(&genuine));
    assert_eq!(some.ops % genuine, 0);
    let many = pool.genuine(&(0..4096));
    assert!((1900..2200).contains(&many), "{many} of 4096");
}

#[test]
fn the_link_is_measured_each_way() {
    use sealway_cuda::Ways;
    for (ways, share) in [(Ways::In, 1), (Ways::Out, 1), (Ways::Both, 2)] {
        let (_, counted) = window(spec(Mode::Link(ways), Op::Seal)).unwrap().remove(0);
        assert_eq!(counted.bytes, counted.ops * LINK_BYTES as u64 * share);
    }
}

/// A device that does not do its work.
pub(crate) fn broken() -> Open {
    struct Wrong;
    impl Kernels for Wrong {
        fn run(&mut self, launch: &Launch, memory: &mut Memory) {
            Model.run(launch, memory);
            if let Launch::Lanes { messages, .. } = launch {
                // Once for every launch of a batch, which are several, so that it does not come right again; a header of BIP324
                // alone would not do, of which one bit counts.
                for byte in &mut memory.get_mut(messages.dst)[..64] {
                    *byte = byte.wrapping_add(1);
                }
            }
        }
    }
    Arc::new(|options| Engine::with_device(Box::new(Fake::new(Wrong)), options))
}

/// Kernels that leave out what they should do are found.
#[test]
fn wrong_data_is_found() {
    let gpus = Gpus::unseen(&broken(), 1);
    for mode in [Mode::Kernel, Mode::Pinned, Mode::Call] {
        for op in [Op::Seal, Op::Open] {
            let mut cell = cells(&[spec(mode, op)], &gpus, 2).remove(0);
            let time = Duration::from_millis(1);
            let found = cell.prepare().and_then(|()| cell.window(time, time).map(drop));
            assert!(
                matches!(found, Err(CellError::Wrong { .. })),
                "{mode:?} {op:?}: {found:?}"
            );
        }
    }
}

#[test]
fn cases_differ_and_the_telling_ones_come_first() {
    for quick in [true, false] {
        let specs = specs(quick);
        let cases: std::collections::HashSet<_> = specs.iter().map(|spec| spec.case().canonical()).collect();
        assert_eq!(cases.len(), specs.len(), "{quick}");
        assert!(matches!(specs[0].mode, Mode::Link(_)));
        assert!(specs.iter().all(|spec| spec.count() >= spec.batch));
        for mode in [Mode::Kernel, Mode::Pinned, Mode::Call] {
            assert!(specs.iter().any(|spec| spec.mode == mode));
        }
    }
}

#[test]
fn modes_are_measured_apart() {
    let of = |gpu_modes: &[&str]| {
        chosen(&Request {
            gpu_modes: gpu_modes.iter().map(ToString::to_string).collect(),
            ..Request::default()
        })
    };
    let modes = crate::packets::MODES.map(|mode| {
        let specs = of(&[mode]);
        assert!(specs.iter().all(|spec| spec.mode.name() == mode));
        specs.len()
    });
    assert!(modes.iter().all(|count| *count > 0), "{modes:?}");
    // The largest batch is for those who ask for it.
    assert!(of(&[]).iter().all(|spec| spec.batch < HUGE) && of(&["kernel"]).iter().any(|spec| spec.batch == HUGE));
    assert_eq!(modes[0] + modes[3], of(&["link", "kernel"]).len());
}

#[test]
fn without_a_device_there_is_nothing_to_measure() {
    let open: Open = Arc::new(|_| Err(Error::NoDevice));
    let said = prepare(&request(&[], 10), &open).err().unwrap();
    assert!(matches!(said, LabError::NoDevice { .. }));
    assert_eq!(said.ending(), Ending::Done);
    assert!(said.to_string().starts_with("no GPU to measure here: "), "{said}");
    // On the machine that runs this test, too, it is either that or a result.
    let request = Request {
        gpu: true,
        ..request(&[], 5)
    };
    match workload::run(&[&crate::packets::WORKLOAD], &request, &mut Watcher::default()) {
        Ok(result) => assert!(result.subjects.iter().any(|subject| subject.name == GPU)),
        Err(error) => assert!(matches!(error, LabError::NoDevice { .. }), "{error}"),
    }
}
