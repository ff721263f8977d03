//! The file that keeps what packets cost on a GPU: measured once a machine.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use sealway_bip324::batch::{Backend, Costs, KeptCosts, MeasureError};
use sealway_cuda::Engine;
use sealway_net::replace::replace;

/// Costs, and where they are from.
#[derive(Debug)]
pub(super) struct KnownCosts {
    pub(super) costs: Costs,
    /// What became of the file.
    pub(super) file: CostsFile,
}

/// What became of a file of costs.
#[derive(Debug)]
pub(super) enum CostsFile {
    /// There was to be none.
    None,
    /// The costs were in it, measured at an earlier time.
    Read,
    /// They were measured now, and are in it.
    Written,
    /// They were measured now, and will be again the next time: the file could not be read or written. It is as it was.
    Failed(io::Error),
}

/// The costs of a GPU's engine and of this processor with one thread: those that `file` holds for this setting, or else what
/// `measure` finds, kept there.
///
/// # Errors
/// Those of `measure`; what becomes of the file is none.
pub(super) fn costs_of(
    engine: &mut Engine,
    backend: Backend,
    file: Option<&Path>,
    measure: impl FnOnce(&mut Engine) -> Result<Costs, MeasureError>,
) -> Result<KnownCosts, MeasureError> {
    let setting = KeptCosts::setting_of_gpu(engine, backend);
    let kept = file.map_or(Ok(KeptCosts::default()), read);
    if let Ok(kept) = &kept
        && let Some(costs) = kept.get(&setting)
    {
        let file = CostsFile::Read;
        return Ok(KnownCosts { costs, file });
    }
    let costs = measure(engine)?;
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

/// What a file holds; nothing if there is none.
fn read(path: &Path) -> io::Result<KeptCosts> {
    let foreign = || io::Error::new(io::ErrorKind::InvalidData, "this is no file of costs");
    // What is not a file may never open or never end, and is not to be replaced by one.
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(KeptCosts::default()),
        there if !there.as_ref().is_ok_and(fs::Metadata::is_file) => return there.and(Err(foreign())),
        _ => {}
    }
    let mut bytes = Vec::new();
    File::open(path)?
        .take(KeptCosts::FILE_MAX as u64 + 1)
        .read_to_end(&mut bytes)?;
    KeptCosts::of_file(&bytes).ok_or_else(foreign)
}

/// Puts a whole file in the place of another, at the end of links if there are any. Of two programs that do so at once, one wins.
fn write(path: &Path, kept: &KeptCosts) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    replace(&path, kept.to_string().as_bytes()).map_err(io::Error::other)
}
