//! How long many small files take on the side that receives and on the side that scans: no session, no network.
//!
//! `small_files DIR [FILES] [BYTES]`, by default 10,000 files of 4,096 bytes in 100 folders, five times.

use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

use sealway_drop::names::{RelPath, Rules};
use sealway_drop_transfer::dest::{Admission, Destination, Options};
use sealway_drop_transfer::entry::{Entry, Kind, Time};
use sealway_drop_transfer::source::{ScanOptions, scan};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let dir = PathBuf::from(args.next().ok_or("which folder?")?);
    let files: usize = args.next().map_or(Ok(10_000), |n| n.parse())?;
    let bytes: usize = args.next().map_or(Ok(4096), |n| n.parse())?;
    let content = vec![7; bytes];
    let entries = entries(files, bytes as u64)?;
    for round in 0..5u8 {
        let work = tempfile::tempdir_in(&dir)?;
        let start = Instant::now();
        let staging = Destination::open(work.path(), Options::default())?.staging(&[round; 32])?;
        for (id, entry) in (0..).zip(&entries) {
            if let Admission::Fetch { .. } = staging.admit(id, entry)? {
                staging.place_small(id, entry, &content)?;
            }
        }
        staging.conclude()?;
        let placed = start.elapsed();
        let start = Instant::now();
        let found = scan(&[work.path().join("tree")], ScanOptions::default(), &mut |_| {})?;
        let scanned = start.elapsed();
        let start = Instant::now();
        let mut buffer = vec![0; bytes];
        for entry in found
            .entries
            .iter()
            .filter(|entry| matches!(entry.kind, Kind::File { .. }))
        {
            let file = found.open(entry)?;
            file.read_at(&mut buffer, 0)?;
        }
        let read = start.elapsed();
        println!(
            "{files} files of {bytes} B: admitted and placed in {:.1} ms, scanned in {:.1} ms, opened and read in {:.1} ms",
            placed.as_secs_f64() * 1e3,
            scanned.as_secs_f64() * 1e3,
            read.as_secs_f64() * 1e3
        );
    }
    Ok(())
}

fn entries(files: usize, size: u64) -> Result<Vec<Entry>, Box<dyn Error>> {
    let mtime = Time {
        seconds: 1_700_000_000,
        nanoseconds: 0,
    };
    let directory = |path| Entry {
        path,
        kind: Kind::Directory,
        mode: 0o755,
        mtime,
    };
    let top = RelPath::new(["tree"], Rules::local())?;
    let mut entries = vec![directory(top.clone())];
    let mut folder = top.clone();
    for i in 0..files {
        if i % 100 == 0 {
            folder = top.child(format!("folder-{:05}", i / 100).as_bytes(), Rules::local())?;
            entries.push(directory(folder.clone()));
        }
        let path = folder.child(format!("file-{i:07}").as_bytes(), Rules::local())?;
        entries.push(Entry {
            path,
            kind: Kind::File { size, sparse: false },
            mode: 0o644,
            mtime,
        });
    }
    Ok(entries)
}
