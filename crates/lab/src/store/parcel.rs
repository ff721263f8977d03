//! Kept runs on their way from one store to another: a file of lines.
//!
//! The first line is `{"sealway_lab_runs":1}`. Each run has two lines, both JSON: what is known of it besides its result, and the
//! result. A file of one result, as `lab --json` writes it, is taken too.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::{Added, Kept, Label, Store, StoreError, check_name};
use crate::report::json::{self, MAX_BYTES, ReadError};

/// Version of the file that is written, and the latest that is read.
const VERSION: u64 = 1;

/// Most runs that are taken from one file.
const MOST_RUNS: usize = 10_000;

/// Bytes of any line but those with results.
const MOST_LINE: u64 = 4096;

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Head {
    sealway_lab_runs: u64,
}

/// What came of taking a file in.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Imported {
    /// Runs that are new here.
    pub new: usize,
    /// Runs that were kept already.
    pub already: usize,
    /// New runs that have lost their name: it could not be one, or it is that of a branch, which it would hide.
    pub unnamed: usize,
}

/// A file of runs, open to be taken in.
pub struct Parcel {
    path: PathBuf,
    file: Box<dyn BufRead>,
}

impl Parcel {
    /// Opens a file, and reads nothing of it.
    ///
    /// # Errors
    /// [`ImportError::Io`].
    pub fn open(path: &Path) -> Result<Parcel, ImportError> {
        let file = File::open(path).map_err(|error| ImportError::Io(path.to_owned(), error))?;
        Ok(Parcel {
            path: path.to_owned(),
            file: Box::new(BufReader::new(file)),
        })
    }

    /// The same of what such a file holds, for the fuzz target.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn of(path: &Path, text: &[u8]) -> Parcel {
        Parcel {
            path: path.to_owned(),
            file: Box::new(io::Cursor::new(text.to_owned())),
        }
    }
}

/// Why a file is not taken in, or not all of it: the runs that stand before the fault are kept.
#[derive(Debug)]
#[non_exhaustive]
pub enum ImportError {
    /// The file cannot be read.
    Io(PathBuf, io::Error),
    /// A run in it is no result.
    Result(ReadError),
    /// The file is something else, or damaged.
    Malformed {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// What is wrong.
        what: String,
    },
    /// A later version wrote it.
    Newer(PathBuf, u64),
    /// The store does not take it.
    Store(StoreError),
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ImportError::Io(path, error) => {
                let path = path.display();
                write!(f, "cannot read {path}: {error}. Check the path and your rights to it")
            }
            ImportError::Result(error) => error.fmt(f),
            ImportError::Malformed { path, line, what } => write!(
                f,
                "{}:{line}: {what}. Name a file that `sealway lab export` or `sealway lab --json` wrote",
                path.display()
            ),
            ImportError::Newer(path, found) => write!(
                f,
                "{}: written in form {found}; this version reads up to {VERSION}. Use a newer sealway",
                path.display()
            ),
            ImportError::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ImportError {}

/// Writes runs, in the order given.
///
/// # Errors
/// Those of writing; a [`StoreError`] comes as an error of kind [`io::ErrorKind::Other`].
pub fn export(store: &mut Store, kept: &[Kept], out: &mut dyn Write) -> io::Result<()> {
    let head = Head {
        sealway_lab_runs: VERSION,
    };
    writeln!(out, "{}", serde_json::to_string(&head)?)?;
    for run in kept {
        let text = store.text(run.id).map_err(io::Error::other)?;
        writeln!(out, "{}", serde_json::to_string(&run.label)?)?;
        out.write_all(&text)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// Takes in the runs of a file, each once however often it is taken in.
///
/// # Errors
/// [`ImportError`].
pub fn import(store: &mut Store, parcel: Parcel) -> Result<Imported, ImportError> {
    let path = parcel.path.as_path();
    let failed = |error| ImportError::Io(path.to_owned(), error);
    let mut lines = Lines {
        path,
        file: parcel.file,
        line: 0,
    };
    let mut taker = Taker::new(store)?;
    let first = lines.next(MOST_LINE)?.unwrap_or_default();
    let Ok(head) = serde_json::from_slice::<Head>(&first) else {
        let mut text = first;
        let rest = MAX_BYTES + 1 - text.len() as u64;
        lines.file.take(rest).read_to_end(&mut text).map_err(failed)?;
        taker.take(path, &text, Label::default())?;
        return Ok(taker.imported);
    };
    if head.sealway_lab_runs > VERSION {
        return Err(ImportError::Newer(path.to_owned(), head.sealway_lab_runs));
    }
    while let Some(label) = lines.next(MOST_LINE)? {
        let label = serde_json::from_slice(&label).map_err(|error| lines.malformed(&error.to_string()))?;
        if taker.imported.new + taker.imported.already == MOST_RUNS {
            return Err(lines.malformed(&format!("more than {MOST_RUNS} runs")));
        }
        let result = lines.next(MAX_BYTES)?;
        let result = result.ok_or_else(|| lines.malformed("the file ends before the result of its last run"))?;
        let place = PathBuf::from(format!("{}, line {}", path.display(), lines.line));
        taker.take(&place, &result, label)?;
    }
    Ok(taker.imported)
}

/// Takes runs into a store.
struct Taker<'a> {
    store: &'a mut Store,
    /// Branches of the runs that are kept: a name like one of them would hide their runs.
    branches: BTreeSet<String>,
    imported: Imported,
}

impl Taker<'_> {
    fn new(store: &mut Store) -> Result<Taker<'_>, ImportError> {
        let kept = store.list().map_err(ImportError::Store)?;
        Ok(Taker {
            store,
            branches: kept.into_iter().filter_map(|run| run.label.branch).collect(),
            imported: Imported::default(),
        })
    }

    fn take(&mut self, path: &Path, text: &[u8], mut label: Label) -> Result<(), ImportError> {
        let run = json::parse(path, text).map_err(ImportError::Result)?;
        if is_ahead(&run.started) {
            let why = "its `started` is more than a day ahead of this machine's clock";
            return Err(ImportError::Store(StoreError::Unfit(why.to_owned())));
        }
        self.branches.extend(label.branch.clone());
        let is_fit = |name: &String| check_name(name).is_ok() && !self.branches.contains(name);
        let named = label.name.is_some();
        label.name = label.name.filter(is_fit);
        let kept = self.store.keep_text(&run, &compact(text), &label);
        match kept.map_err(ImportError::Store)? {
            Added::New(_) => {
                self.imported.new += 1;
                self.imported.unnamed += usize::from(named && label.name.is_none());
            }
            Added::Already(_) => self.imported.already += 1,
        }
        Ok(())
    }
}

/// Whether a time has not come yet, also where clocks differ. A run of such a time would be the newest for long.
fn is_ahead(started: &str) -> bool {
    let day = SignedDuration::from_hours(24);
    let started = started.parse::<Timestamp>();
    started.is_ok_and(|started| started.duration_since(Timestamp::now()) > day)
}

/// Lines of a file, of which none may be longer than it is allowed to be.
struct Lines<'a> {
    path: &'a Path,
    file: Box<dyn BufRead>,
    /// Number of the last line.
    line: usize,
}

impl Lines<'_> {
    /// The next line with its end, if it has one, or the first `most` bytes of it; `None` at the end of the file.
    fn next(&mut self, most: u64) -> Result<Option<Vec<u8>>, ImportError> {
        let mut line = Vec::new();
        let mut part = self.file.by_ref().take(most + 1);
        part.read_until(b'\n', &mut line)
            .map_err(|error| ImportError::Io(self.path.to_owned(), error))?;
        self.line += 1;
        Ok((!line.is_empty()).then_some(line))
    }

    fn malformed(&self, what: &str) -> ImportError {
        ImportError::Malformed {
            path: self.path.to_owned(),
            line: self.line,
            what: what.to_owned(),
        }
    }
}

/// JSON without the blanks between its parts.
fn compact(json: &[u8]) -> Vec<u8> {
    let (mut in_text, mut escaped) = (false, false);
    let kept = |byte: &&u8| {
        let blank = !in_text && byte.is_ascii_whitespace();
        in_text ^= **byte == b'"' && !escaped;
        escaped = in_text && **byte == b'\\' && !escaped;
        !blank
    };
    json.iter().filter(kept).copied().collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::store::tests::{on, run};
    use crate::store::{Access, Place};

    struct Stores(tempfile::TempDir);

    impl Stores {
        fn new() -> Stores {
            Stores(tempfile::tempdir().unwrap())
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        fn open(&self, name: &str) -> Store {
            Store::open(&Place::File(self.path(name)), Access::Write).unwrap()
        }

        fn import(&self, to: &str, file: &str) -> Result<Imported, ImportError> {
            import(&mut self.open(to), Parcel::open(&self.path(file))?)
        }

        fn refuses(&self, text: &[u8], wanted: &str) {
            std::fs::write(self.path("wrong"), text).unwrap();
            let error = self.import("empty", "wrong").unwrap_err().to_string();
            assert!(error.contains(wanted), "{error}");
            assert_eq!(self.open("empty").list().unwrap(), []);
        }
    }

    #[test]
    fn runs_go_from_one_store_to_another_with_what_is_known_of_them() {
        let stores = Stores::new();
        let mut from = stores.open("from");
        from.keep(&run(1, 110.0, 100.0), &on("main")).unwrap();
        from.keep(&run(2, 120.0, 100.0), &Label::default()).unwrap();
        let kept = from.list().unwrap();
        let mut text = Vec::new();
        export(&mut from, &kept, &mut text).unwrap();
        std::fs::write(stores.path("file"), &text).unwrap();

        let mut to = stores.open("to");
        to.keep(&run(2, 120.0, 100.0), &on("work")).unwrap();
        let wanted = Imported {
            new: 1,
            already: 1,
            unnamed: 0,
        };
        assert_eq!(stores.import("to", "file").unwrap(), wanted);
        let kept = to.list().unwrap();
        assert_eq!((&kept[0].label, &kept[1].label), (&on("work"), &on("main")));
        assert_eq!(to.result(kept[1].id).unwrap(), run(1, 110.0, 100.0));
        // What goes out again is what came in.
        let mut again = Vec::new();
        export(&mut to, &kept[1..], &mut again).unwrap();
        assert!(again.len() < text.len() && text.ends_with(again.split_at(23).1));
    }

    #[test]
    fn a_file_of_one_result_is_taken_with_all_that_it_says() {
        let stores = Stores::new();
        let mut text = serde_json::to_string_pretty(&run(1, 110.0, 100.0)).unwrap();
        text = text.replacen('{', "{ \"later\": \"a \\\" b\\\\\" ,", 1);
        std::fs::write(stores.path("one.json"), &text).unwrap();
        stores.import("to", "one.json").unwrap();
        let mut to = stores.open("to");
        assert_eq!(to.result(1).unwrap(), run(1, 110.0, 100.0));
        let kept = String::from_utf8(to.text(1).unwrap()).unwrap();
        assert!(kept.starts_with("{\"later\":\"a \\\" b\\\\\",\"schema\":1,"), "{kept}");
        assert!(!kept.contains('\n'));
    }

    #[test]
    fn what_comes_from_outside_is_checked() {
        let stores = Stores::new();
        let head = "{\"sealway_lab_runs\":1}\n";
        let result = serde_json::to_string(&run(1, 110.0, 100.0)).unwrap();
        stores.refuses(b"", "it is empty");
        stores.refuses(b"{\"sealway_lab_runs\":2}\n", "Use a newer sealway");
        stores.refuses(format!("{head}{{}}\n").as_bytes(), ":3: the file ends");
        stores.refuses(format!("{head}{result}\n").as_bytes(), "the file ends");
        stores.refuses(format!("{head}nothing\n{result}\n").as_bytes(), ":2: ");
        stores.refuses(
            format!("{head}{{}}\n{{\"schema\":1}}\n").as_bytes(),
            "line 3: not a result file",
        );
        stores.refuses(
            format!("{head}{{}}\n{{\"schema\":99,\"run\":1}}\n").as_bytes(),
            "schema 99",
        );
        stores.refuses(result.replace("2021-01-01", "yesterday").as_bytes(), "`started`");
        stores.refuses(result.replace("2021-01-01", "9999-01-01").as_bytes(), "a day ahead");
        stores.refuses(result.replace("\"results\":[", "\"none\":[").as_bytes(), "no figures");
        let long = format!("{head}{{\"name\":\"{}\"}}\n{result}\n", "x".repeat(5000));
        stores.refuses(long.as_bytes(), ":2: ");
        assert!(stores.import("empty", "/dev/zero").is_err());
        assert!(stores.import("empty", "/no/such/file").is_err());
    }

    #[test]
    fn names_that_mean_other_runs_are_dropped() {
        let stores = Stores::new();
        stores.open("to").keep(&run(9, 110.0, 100.0), &on("main")).unwrap();
        let mut text = "{\"sealway_lab_runs\":1}\n".to_owned();
        for (day, name) in ["last", "7", "main", "work", "a\u{1b}[2J", "fine"].iter().enumerate() {
            let label = Label {
                name: Some((*name).to_owned()),
                ..on("work")
            };
            let run = run(day as u32 + 1, 110.0, 100.0);
            for line in [serde_json::to_string(&label), serde_json::to_string(&run)] {
                text = format!("{text}{}\n", line.unwrap());
            }
        }
        std::fs::write(stores.path("file"), text).unwrap();
        let imported = stores.import("to", "file").unwrap();
        assert_eq!((imported.new, imported.unnamed), (6, 5));
        let kept = stores.open("to").list().unwrap();
        let names: Vec<&str> = kept.iter().filter_map(|run| run.label.name.as_deref()).collect();
        assert_eq!(names, ["fine"]);
    }
}
