//! Reading from a mounted file: from start to end, or here and there.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::{Duration, Instant};

use super::super::processes::{Moved, Processes, is_mounted, system};
use super::super::spec::Way;
use super::Job;
use crate::run::CellError;
use crate::stats::SplitMix64;

/// Bytes of a read from start to end, what `cat` and `cp` take.
const PIECE: usize = 128 * 1024;

/// Bytes of a read at a random place, and of what is compared of each piece.
const BLOCK: usize = 4096;

/// How often the programs are looked at.
const STEP: Duration = Duration::from_millis(50);

/// Reads `mounted`, which must be the source. Of each piece one block at a random place is compared while the clock runs,
/// and everything afterwards.
pub(in crate::files) fn read(mut processes: Processes<'_>, job: &Job<'_>, mounted: &Path) -> Result<Moved, CellError> {
    let ours = File::open(job.source.path()).map_err(system("open the source"))?;
    let seed = crate::run::seed().map_err(|error| CellError::failed(format_args!("cannot draw places: {error}")))?;
    let mut check = Check {
        ours,
        draw: SplitMix64::new(seed),
        block: vec![0; BLOCK],
    };
    let started = processes.clock();
    let theirs = File::open(mounted).map_err(system("open the mounted file"))?;
    let (reads, bytes) = match job.spec.way {
        Way::Random => random(&mut processes, job, &theirs, &mut check, started)?,
        _ => whole(&mut processes, &theirs, &mut check)?,
    };
    let wall = started.elapsed();
    drop(theirs);
    // Costs of the second reading must not count.
    processes.hold_costs();
    if job.spec.way != Way::Random {
        if bytes != job.source.bytes() {
            return Err(CellError::wrong(format_args!(
                "{bytes} bytes were read instead of {}",
                job.source.bytes()
            )));
        }
        job.source.verify(mounted.parent().unwrap_or(mounted))?;
    }
    let mut moved = processes.dismiss()?;
    let point = mounted.parent().unwrap_or(mounted);
    if is_mounted(point) {
        return Err(CellError::failed(format_args!(
            "{} is still mounted after the end of the program",
            point.display()
        )));
    }
    moved.wall = wall;
    moved.read = Some((reads, bytes));
    Ok(moved)
}

/// The source beside what is read.
struct Check {
    ours: File,
    draw: SplitMix64,
    block: Vec<u8>,
}

impl Check {
    /// Compares `read`, which came from `offset`.
    fn same(&mut self, read: &[u8], offset: u64) -> Result<(), CellError> {
        let block = &mut self.block[..read.len()];
        read_at(&self.ours, block, offset).map_err(system("read the source"))?;
        if *block == *read {
            return Ok(());
        }
        Err(CellError::wrong(format_args!(
            "other bytes than the source at byte {offset} of the mounted file"
        )))
    }
}

/// Fills `bytes` from `offset` of a file.
fn read_at(mut file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    file.seek(SeekFrom::Start(offset))?;
    file.read_exact(bytes)
}

fn whole(processes: &mut Processes<'_>, mut theirs: &File, check: &mut Check) -> Result<(u64, u64), CellError> {
    let mut piece = vec![0; PIECE];
    let (mut reads, mut offset) = (0, 0_u64);
    let mut looked = Instant::now();
    loop {
        let n = match theirs.read(&mut piece) {
            Ok(0) => return Ok((reads, offset)),
            Ok(n) => n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(system("read the mounted file")(error)),
        };
        let length = n.min(BLOCK);
        let at = check.draw.below(n - length + 1);
        check.same(&piece[at..at + length], offset + at as u64)?;
        reads += 1;
        offset += n as u64;
        if looked.elapsed() >= STEP {
            processes.watch()?;
            looked = Instant::now();
        }
    }
}

fn random(
    processes: &mut Processes<'_>,
    job: &Job<'_>,
    theirs: &File,
    check: &mut Check,
    started: Instant,
) -> Result<(u64, u64), CellError> {
    let blocks = usize::try_from(job.source.bytes() / BLOCK as u64).unwrap_or(usize::MAX);
    let mut read = vec![0; BLOCK];
    let mut reads = 0;
    let mut looked = Instant::now();
    while started.elapsed() < job.window {
        let offset = check.draw.below(blocks) as u64 * BLOCK as u64;
        read_at(theirs, &mut read, offset).map_err(system("read the mounted file"))?;
        check.same(&read, offset)?;
        reads += 1;
        if looked.elapsed() >= STEP {
            processes.watch()?;
            looked = Instant::now();
        }
    }
    Ok((reads, reads * BLOCK as u64))
}
