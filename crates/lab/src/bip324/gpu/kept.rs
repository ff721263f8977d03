//! Costs of a GPU, measured once a machine.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use sealway_aead::cpu;
use sealway_cuda::Engine;

use super::super::costs::{Costs, NAME};
use super::super::kept::KeptCosts;
use super::super::measure::MeasureError;
use super::Backend;

/// Bytes of a file of costs at most; ours have less.
const FILE: u64 = 64 * 1024;

/// Costs, and where they are from.
#[derive(Debug)]
pub struct KnownCosts {
    /// The costs.
    pub costs: Costs,
    /// What became of the file.
    pub file: CostsFile,
}

/// What became of a file of costs.
#[derive(Debug)]
#[non_exhaustive]
pub enum CostsFile {
    /// There was to be none.
    None,
    /// The costs were in it, measured at an earlier time.
    Read,
    /// They were measured now, and are in it.
    Written,
    /// They were measured now, and will be again the next time: the file could not be read or written. It is as it was.
    Failed(io::Error),
}

impl Costs {
    /// The costs of a GPU's engine and of this processor with one thread: those that `file` holds, or else measured, which takes
    /// some ten milliseconds, and kept there.
    ///
    /// They count as known if the processor (by its name, which only x86-64 has), the backend, the device with its place and its
    /// driver, and the version of this library are those they were measured with. Delete the file to have them measured again, after a time when the machine
    /// had much else to do, for instance. A file that is no file of costs is left alone. Who can write the file can make batches slow; nothing else
    /// depends on it.
    ///
    /// # Errors
    /// As [`Costs::measure`]; what becomes of the file is none.
    pub fn of_gpu(engine: &mut Engine, backend: Backend, file: Option<&Path>) -> Result<KnownCosts, MeasureError> {
        let setting = setting(engine, backend);
        let kept = file.map_or(Ok(KeptCosts::default()), read);
        if let Ok(kept) = &kept
            && let Some(costs) = kept.get(&setting)
        {
            let file = CostsFile::Read;
            return Ok(KnownCosts { costs, file });
        }
        let begin = Instant::now();
        let costs = Costs::measure(engine, backend, &mut || begin.elapsed())?;
        let written = kept.and_then(|mut kept| {
            kept.set(&setting, costs);
            file.map(|file| write(file, &kept)).transpose()
        });
        let file = match written {
            Ok(Some(())) => CostsFile::Written,
            Ok(None) => CostsFile::None,
            Err(error) => CostsFile::Failed(error),
        };
        Ok(KnownCosts { costs, file })
    }
}

/// All that costs hold for.
fn setting(engine: &Engine, backend: Backend) -> String {
    let (device, options) = (engine.device(), engine.options());
    format!(
        "{}; {backend}; {device} at {}; {} chunks of {} bytes; {}",
        cpu::model(),
        device.pci,
        options.chunks,
        options.chunk_bytes,
        concat!("sealway ", env!("CARGO_PKG_VERSION")),
    )
}

/// What a file holds; nothing if there is none.
fn read(path: &Path) -> io::Result<KeptCosts> {
    let foreign = || io::Error::new(io::ErrorKind::InvalidData, "this is no file of costs");
    // What is not a file may never open or never end, and is not to be replaced by one.
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(KeptCosts::default()),
        there if !there.as_ref().is_ok_and(fs::Metadata::is_file) => return there.and(Err(foreign())),
        _ => {}
    }
    let file = File::open(path)?;
    let mut text = String::new();
    file.take(FILE + 1)
        .read_to_string(&mut text)
        .map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => foreign(),
            _ => error,
        })?;
    if text.len() as u64 > FILE || !(text.is_empty() || text.starts_with(NAME)) {
        return Err(foreign());
    }
    Ok(KeptCosts::read(&text))
}

/// Puts a whole file in the place of another, at the end of links if there are any. Of two programs that do so at once, one wins.
fn write(path: &Path, kept: &KeptCosts) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    // A name that no program has that was killed in the middle of this.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}-{}.new", std::process::id(), now.as_nanos()));
    let new = Path::new(&name);
    let mut file = OpenOptions::new().write(true).create_new(true).open(new)?;
    let written = file
        .write_all(kept.to_string().as_bytes())
        .and_then(|()| fs::rename(new, path));
    if written.is_err() {
        let _ = fs::remove_file(new);
    }
    written
}
