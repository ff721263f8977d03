//! The cells of a transport with a GPU beside it, on a device made of ordinary memory.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::*;
use crate::bip324::GPU_SHARE;
use crate::ending::Ending;
use crate::packets::gpu::tests::support::fake::Fake;
use crate::packets::gpu::tests::support::kernels::Model;
use crate::packets::gpu::tests::{broken, fake, fakes};
use crate::run::{CellError, Counted, Timed};
use sealway_bip324::batch::Line;
use sealway_cuda::Error;

/// Half of each batch is worth the way.
fn halves() -> Costs {
    let line = Line {
        fixed: 0,
        job: 1000,
        byte: 0,
    };
    Costs {
        cpu: line,
        executor: line,
        ..Costs::default()
    }
}

const OPS: [Op; 3] = [Op::Pair, Op::Seal, Op::Open];

/// Who takes part in each operation, and one window of theirs. All have the same packets, which take longest to make.
fn windows(ops: &[Op], open: &Open) -> Vec<(String, String, Result<Counted, CellError>)> {
    let time = Duration::from_millis(5);
    let specs: Vec<Spec> = ops.iter().map(|&op| Spec::mix(op, 256)).collect();
    cells(Profile::Quick, &specs, &Gpus::unseen(open, 1), halves())
        .into_iter()
        .map(|mut cell| {
            let counted = cell.prepare().and_then(|()| cell.window(time, time));
            let op = cell.case.text("op").unwrap().to_owned();
            (op, cell.subject.clone(), counted)
        })
        .collect()
}

fn share(counted: &Counted) -> f64 {
    let figure = counted.figures.iter().find(|(name, _)| *name == GPU_SHARE);
    figure.expect("a share").1
}

#[test]
fn packets_go_where_they_should() {
    let windows = windows(&OPS, &fake());
    assert_eq!(windows.len(), 3 * OPS.len());
    for (windows, op) in windows.chunks(3).zip(OPS) {
        assert!(windows.iter().all(|(of, ..)| of == op.name()), "{op:?}");
        let names: Vec<_> = windows.iter().map(|(_, name, _)| name.as_str()).collect();
        assert_eq!(names, ["sealway", GPU, ROUTED]);
        let shares: Vec<f64> = windows
            .iter()
            .map(|(.., counted)| share(counted.as_ref().unwrap()))
            .collect();
        assert_eq!(shares[..2], [0.0, 1.0], "{op:?}");
        assert!((shares[2] - 0.5).abs() < 0.02, "{op:?}: {shares:?}");
    }
}

/// A device that does not do its work, and one that cannot be opened twice: no figures.
#[test]
fn a_device_that_fails_gives_no_figures() {
    let none: Open = Arc::new(|_| Err(Error::NoDevice));
    for open in [broken(), none] {
        let windows = windows(&OPS, &open);
        assert_eq!(windows.len(), 3 * OPS.len());
        for (op, subject, counted) in windows {
            assert_eq!(counted.is_ok(), subject == "sealway", "{subject} {op}: {counted:?}");
        }
    }
}

/// It fails in the middle: what the processor does from then on is not taken for its work.
#[test]
fn a_device_that_is_lost_ends_its_cells() {
    use crate::packets::gpu::tests::support::failing::{Call, Failing};
    let open: Open = Arc::new(|options| {
        let (device, trigger) = Failing::new(Fake::new(Model));
        let engine = Engine::with_device(Box::new(device), options)?;
        trigger.arm(Call::Launch, 6, true);
        Ok(engine)
    });
    for (_, subject, counted) in windows(&[Op::Seal], &open) {
        assert_eq!(counted.is_ok(), subject == "sealway", "{subject}: {counted:?}");
    }
}

#[test]
fn cases_differ_and_fit() {
    for profile in Profile::ALL {
        let specs = specs(profile);
        let cases: std::collections::HashSet<_> = specs.iter().map(|spec| spec.case().canonical()).collect();
        assert_eq!(cases.len(), specs.len(), "{profile}");
        for op in OPS {
            assert!(specs.contains(&Spec::mix(op, 16_384)));
        }
        assert!(
            specs
                .iter()
                .all(|spec| matches!(spec, Spec::Packets { batch, .. } if *batch <= packets(profile)))
        );
    }
}

#[test]
fn a_run_says_by_which_costs_it_went() {
    let folder = tempfile::tempdir().unwrap();
    let request = Request {
        gpu: true,
        costs: Some(folder.path().join("costs")),
        ..crate::packets::tests::request(&[], 60)
    };
    let said = || {
        let prepared = prepare(&request, &fakes(2).0).unwrap();
        let on_both = |fact: &String| fact.starts_with("on 2 x fake (");
        assert!(prepared.subjects[1].differs.iter().any(on_both));
        let names: Vec<_> = prepared.subjects.iter().map(|subject| subject.name.clone()).collect();
        assert_eq!(names, ["sealway", GPU, ROUTED]);
        prepared.subjects[2].differs.clone()
    };
    let (first, second) = (said(), said());
    let text = |said: &[String], words| said.iter().any(|line| line.contains(words));
    assert!(text(&first, "measured before the first window, and kept"), "{first:?}");
    assert!(text(&second, "measured at an earlier time and kept"), "{second:?}");
    assert_eq!(first.last(), second.last());
    assert!(text(&second, "sealway-costs/1 cpu "));

    let none: Open = Arc::new(|_| Err(Error::NoDriver));
    let error = prepare(&request, &none).err().unwrap();
    assert_eq!(error.ending(), Ending::Done);
}

/// As long as a GPU takes to be awake, and once in any case; the last time counts.
#[test]
fn costs_are_measured_until_the_device_is_awake() {
    let last = |waking: Duration| {
        let (begin, mut times) = (Instant::now(), 0_u32);
        let last = last_of(waking, || {
            times += 1;
            std::thread::sleep(Duration::from_millis(1));
            Ok::<u32, MeasureError>(times)
        });
        assert_eq!(last.unwrap(), times);
        (times, begin.elapsed())
    };
    assert_eq!(last(Duration::ZERO).0, 1);
    let waking = Duration::from_millis(20);
    let (_, took) = last(waking);
    assert!(took >= waking, "{took:?}");
}

/// Measured once, and once more only for what costs differently; what is no file of ours stays as it is.
#[test]
fn costs_are_kept() {
    // Batches of many chunks, more than are under way at a time, and of messages that no chunk takes.
    let options = || Options {
        slots: 16,
        chunk_bytes: 8192,
        chunks: 3,
        ..Options::default()
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cache/sealway/costs");
    // To measure what the model of a device costs takes long; each time is told apart from the others.
    let mut times = 0;
    let mut known = |options: Options, path: Option<&Path>| {
        let mut engine = Engine::with_device(Box::new(Fake::new(Model)), options).unwrap();
        let before = times;
        let known = kept::costs_of(&mut engine, Backend::best(), path, |_| {
            times += 1;
            let fixed = times;
            let cpu = Line {
                fixed,
                ..Line::default()
            };
            Ok(Costs { cpu, ..halves() })
        });
        (known.unwrap(), times > before)
    };
    let other = || Options { chunks: 2, ..options() };
    let (none, measured) = known(options(), None);
    assert!(matches!(none.file, CostsFile::None) && measured);
    let (first, measured) = known(options(), Some(&path));
    assert!(matches!(first.file, CostsFile::Written) && measured, "{:?}", first.file);
    let (again, measured) = known(options(), Some(&path));
    assert!(matches!(again.file, CostsFile::Read) && !measured, "{:?}", again.file);
    assert_eq!(again.costs, first.costs);
    let (second, _) = known(other(), Some(&path));
    assert!(matches!(second.file, CostsFile::Written), "{:?}", second.file);
    for (options, costs) in [(options(), first.costs), (other(), second.costs)] {
        let (known, measured) = known(options, Some(&path));
        assert!(matches!(known.file, CostsFile::Read) && !measured);
        assert_eq!(known.costs, costs);
    }

    // Damaged, they are measured again; the other line is still good.
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen(" cpu ", " cpus ", 1)).unwrap();
    assert!(matches!(known(options(), Some(&path)).0.file, CostsFile::Written));
    assert!(matches!(known(other(), Some(&path)).0.file, CostsFile::Read));

    // What is not ours is not touched, and no obstacle.
    let foreign = folder.path().join("letter");
    for text in [&b"Dear reader"[..], b"\xff", &[b'\n'; 70_000]] {
        fs::write(&foreign, text).unwrap();
        let (known, measured) = known(options(), Some(&foreign));
        assert!(
            matches!(known.file, CostsFile::Failed(_)) && measured,
            "{:?}",
            known.file
        );
        assert_eq!(fs::read(&foreign).unwrap(), text);
    }
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for path in [
        folder.path(),
        &foreign.join("below a file"),
        Path::new("/dev/zero"),
        &pipe,
    ] {
        let (known, measured) = known(options(), Some(path));
        assert!(
            matches!(known.file, CostsFile::Failed(_)) && measured,
            "{:?}",
            known.file
        );
    }

    // A link stays one, and leads to the costs.
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    fs::write(&path, "").unwrap();
    assert!(matches!(known(options(), Some(&link)).0.file, CostsFile::Written));
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(matches!(known(options(), Some(&path)).0.file, CostsFile::Read));
    let left: Vec<_> = fs::read_dir(path.parent().unwrap()).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}
