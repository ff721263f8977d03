//! Other files that a part of the drop keeps beside the key of this machine, under the same care.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use super::Error;
use super::folder::{Care, check, failed, is_unwritable, make, read, settle, stage};

/// A text file in the folder, written whole or not at all.
#[derive(Clone, Debug)]
pub struct Kept {
    pub(super) dir: PathBuf,
    pub(super) path: PathBuf,
}

impl Kept {
    /// A file of this name in [`config_dir`](super::config_dir). Neither needs to be there.
    pub fn at(dir: &Path, name: &str) -> Kept {
        Kept {
            dir: dir.to_owned(),
            path: dir.join(name),
        }
    }

    /// What a secret file holds; on first use what `fresh` gives, which is kept for the owner alone. Programs that start at the same
    /// time end with the same. Where nothing can be kept, it is not; the second value says whether it was.
    ///
    /// # Errors
    /// [`Error::Exposed`] if others may read the file, what `fresh` fails with, [`Error::Io`].
    pub fn secret(
        &self,
        fresh: impl FnOnce() -> Result<Zeroizing<String>, Error>,
    ) -> Result<(Zeroizing<String>, bool), Error> {
        if let Some(found) = self.load(Care::Secret)? {
            return Ok((found, true));
        }
        let made = fresh()?;
        let staged = make(&self.dir)
            .and_then(|()| check(&self.dir))
            .and_then(|()| stage(&self.path, &made));
        let staged = match staged {
            Err(error) if is_unwritable(&error) => return Ok((made, false)),
            staged => staged?,
        };
        match staged.persist_noclobber(&self.path) {
            Ok(_) => settle(&self.dir)?,
            // Another program was faster: what it made counts.
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {
                let vanished = || failed(&self.path, "reading")(io::ErrorKind::NotFound.into());
                return Ok((self.load(Care::Secret)?.ok_or_else(vanished)?, true));
            }
            Err(error) => return Err(failed(&self.path, "writing")(error.error)),
        }
        Ok((made, true))
    }

    /// What a file holds that others may read and not write; `None` if there is none.
    ///
    /// # Errors
    /// [`Error::Exposed`], [`Error::Io`].
    pub fn read(&self) -> Result<Option<Zeroizing<String>>, Error> {
        self.load(Care::Own)
    }

    /// Replaces what such a file holds by what `change` makes of it. No other program changes it meanwhile.
    ///
    /// # Errors
    /// As [`Kept::read`], and what `change` fails with.
    pub fn change<T>(&self, change: impl FnOnce(Option<&str>) -> Result<(String, T), Error>) -> Result<T, Error> {
        self.change_if(|old| change(old).map(|(text, result)| (Some(text), result)))
    }

    /// The same where `change` may leave it as it is.
    pub(super) fn change_if<T>(
        &self,
        change: impl FnOnce(Option<&str>) -> Result<(Option<String>, T), Error>,
    ) -> Result<T, Error> {
        make(&self.dir)?;
        // The folder is locked, not the file: that one is replaced.
        let turn = File::open(&self.dir).map_err(failed(&self.dir, "opening the folder"))?;
        turn.lock().map_err(failed(&self.dir, "locking the folder"))?;
        check(&self.dir)?;
        let old = self.read()?;
        let (text, result) = change(old.as_ref().map(|text| text.as_str()))?;
        if let Some(text) = text {
            let placed = stage(&self.path, &text)?.persist(&self.path);
            placed.map_err(|error| failed(&self.path, "writing")(error.error))?;
            settle(&self.dir)?;
        }
        Ok(result)
    }

    /// For an error about what the file holds, which `what` says.
    pub fn malformed(&self, what: impl Into<String>) -> Error {
        super::folder::malformed(&self.path, 0, what)
    }

    fn load(&self, care: Care) -> Result<Option<Zeroizing<String>>, Error> {
        let text = read(&self.path, care)?;
        if text.is_some() {
            check(&self.dir)?;
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn text(text: &str) -> Result<Zeroizing<String>, Error> {
        Ok(Zeroizing::new(text.to_owned()))
    }

    #[test]
    fn a_secret_is_made_once_and_for_its_owner() {
        let dir = tempfile::tempdir().unwrap();
        let own = dir.path().join("own");
        let kept = Kept::at(&own, "secret");
        assert_eq!(kept.secret(|| text("one")).unwrap(), (text("one").unwrap(), true));
        assert_eq!(kept.secret(|| text("two")).unwrap().0.as_str(), "one");
        let path = own.join("secret");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(kept.secret(|| text("two")), Err(Error::Exposed { .. })));
        let nowhere = Kept::at(&path.join("below"), "secret");
        assert_eq!(nowhere.secret(|| text("x")).unwrap(), (text("x").unwrap(), false));
    }

    #[test]
    fn a_file_is_replaced_whole() {
        let dir = tempfile::tempdir().unwrap();
        let kept = Kept::at(&dir.path().join("own"), "list");
        assert!(kept.read().unwrap().is_none());
        kept.change(|old| Ok((format!("{old:?}"), ()))).unwrap();
        kept.change(|old| Ok((format!("{old:?}!"), ()))).unwrap();
        assert_eq!(kept.read().unwrap().unwrap().as_str(), "Some(\"None\")!");
    }
}
