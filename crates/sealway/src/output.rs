//! Where a command's answer goes.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use sealway_lab::report::terminal::Style;
use sealway_net::replace::{self, Place, WriteError};

use crate::exit::Exit;
use crate::problem::Problem;

/// Prints to standard output. A reader that has gone away (`| head`) is no error.
pub(crate) fn print(text: &str) -> Result<(), Problem> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(Problem::new(
            Exit::Internal,
            format!("cannot write to standard output: {error}"),
        )),
        Ok(()) => Ok(()),
    }
}

/// Prints what a command answers, which is all that it does.
pub(crate) fn answer(text: &str) -> Result<Exit, Problem> {
    print(text)?;
    Ok(Exit::Done)
}

/// Prints a JSON value to standard output, indented.
pub(crate) fn print_json(value: &serde_json::Value) -> Result<(), Problem> {
    print(&format!("{value:#}\n"))
}

/// Columns and rows of a terminal; the usual ones where it does not tell.
pub(crate) fn size(stream: &impl AsFd) -> (usize, usize) {
    let told = rustix::termios::tcgetwinsize(stream).ok();
    let or = |told: Option<u16>, usual| told.filter(|count| *count > 0).map_or(usual, usize::from);
    (
        or(told.map(|size| size.ws_col), 80),
        or(told.map(|size| size.ws_row), 24),
    )
}

/// How a table may look on this stream; `plain` asks for no colour and the usual width.
pub(crate) fn style(stream: &(impl AsFd + IsTerminal), plain: bool) -> Style {
    let columns = rustix::termios::tcgetwinsize(stream)
        .ok()
        .map(|size| usize::from(size.ws_col));
    let terminal = !plain && stream.is_terminal();
    Style::detect(terminal, columns.filter(|columns| *columns > 0), |name| {
        std::env::var(name).ok()
    })
}

/// The target of `--json` or `--html`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Target {
    Stdout,
    File(PathBuf),
}

impl Target {
    /// Takes an option's value and finds out whether it can be written, without touching what is there.
    pub(crate) fn check(option: &str, path: &Path) -> Result<Target, Problem> {
        if path == Path::new("-") {
            return Ok(Target::Stdout);
        }
        let fail = |what: String, hint: &str| Problem::usage(format!("{option} {}: {what}", path.display())).hint(hint);
        // The same look as the one before writing, so that what it refuses is refused now and not after the run.
        let place = replace::place(path).map_err(|error| match error {
            WriteError::Target { what, .. } => fail(what.into(), "nothing was run; name a file, such as out.json"),
            WriteError::Io { source, .. } => fail(
                source.to_string(),
                "nothing was run; check the path and your rights to it",
            ),
            other => Problem::usage(other),
        })?;
        let target = match place {
            // Opening a pipe here would wait for its reader.
            Place::Direct(path) => return Ok(Target::File(path)),
            Place::File(target) => target,
        };
        match OpenOptions::new().append(true).open(&target) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(fail(
                    error.to_string(),
                    "nothing was run; choose a file that you may write",
                ));
            }
            _ => {}
        }
        // The new file is made beside the old one before it takes the name, so the folder must allow that.
        let folder = target
            .parent()
            .filter(|p| !p.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        let name = target.file_name().unwrap_or_default();
        let mut probe_name = std::ffi::OsString::from(".");
        probe_name.push(name);
        probe_name.push(format!(".{}", std::process::id()));
        let probe = folder.join(probe_name);
        match OpenOptions::new().write(true).create_new(true).open(&probe) {
            Ok(_) => drop(fs::remove_file(&probe)),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(fail(
                    format!("there is no folder {}", folder.display()),
                    "nothing was run; make it first",
                ));
            }
            Err(error) => {
                let what = format!("cannot make a file in {}: {error}", folder.display());
                return Err(fail(what, "nothing was run; choose a folder that you may write to"));
            }
        }
        Ok(Target::File(path.to_path_buf()))
    }
}

/// The targets of `--json` and `--html`, apart from each other.
pub(crate) fn targets(json: Option<&Path>, html: Option<&Path>) -> Result<(Option<Target>, Option<Target>), Problem> {
    let target = |name, path: Option<&Path>| path.map(|path| Target::check(name, path)).transpose();
    let (json, html) = (target("--json", json)?, target("--html", html)?);
    apart(json.as_ref(), html.as_ref())?;
    Ok((json, html))
}

/// The target of `--html` beside an answer on standard output, which is JSON with `json`.
pub(crate) fn page_target(html: Option<&Path>, json: bool) -> Result<Option<Target>, Problem> {
    let target = html.map(|path| Target::check("--html", path)).transpose()?;
    if json && target == Some(Target::Stdout) {
        let what = "--json and --html cannot both go to standard output";
        return Err(Problem::usage(what).hint("give --html a file name"));
    }
    Ok(target)
}

/// Writes a page to its target.
pub(crate) fn write_page(target: &Target, page: &str) -> Result<(), Problem> {
    match target {
        Target::Stdout => print(page),
        Target::File(path) => {
            replace::replace(path, page.as_bytes()).map_err(|error| Problem::new(Exit::Internal, error))
        }
    }
}

/// Refuses two targets of which one would silently take the place of the other.
fn apart(json: Option<&Target>, html: Option<&Target>) -> Result<(), Problem> {
    let refuse = |what: &str, hint: &str| Err(Problem::usage(what).hint(hint));
    let (json, html) = match (json, html) {
        (Some(Target::Stdout), Some(Target::Stdout)) => {
            return refuse(
                "--json and --html cannot both go to standard output",
                "give one of them a file name",
            );
        }
        (Some(Target::File(json)), Some(Target::File(html))) => (json, html),
        _ => return Ok(()),
    };
    // A device takes both. A place that cannot be told was refused before.
    let file = |path: &Path| match replace::place(path) {
        Ok(Place::File(file)) => Some(file),
        _ => None,
    };
    let Some(page) = file(html) else { return Ok(()) };
    if file(json).as_ref() == Some(&page) {
        return refuse(
            &format!("--json and --html lead to the same file: {}", page.display()),
            "nothing was run; give them different names",
        );
    }
    if file(&partial(json)).as_ref() == Some(&page) {
        return refuse(
            &format!(
                "--html {}: finished rounds are kept there during the run",
                html.display()
            ),
            "nothing was run; choose a name that is not the one of --json with .partial",
        );
    }
    Ok(())
}

/// Where finished rounds are kept until the run ends.
pub(crate) fn partial(target: &Path) -> PathBuf {
    let mut path = target.as_os_str().to_owned();
    path.push(".partial");
    path.into()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_check_leaves_everything_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("old.json");
        fs::write(&file, "older result").unwrap();
        assert_eq!(Target::check("--json", &file).unwrap(), Target::File(file.clone()));
        assert_eq!(
            Target::check("--json", &folder.path().join("new.json"))
                .unwrap()
                .file_name(),
            "new.json"
        );
        assert_eq!(Target::check("--json", Path::new("-")).unwrap(), Target::Stdout);
        assert_eq!(fs::read_to_string(&file).unwrap(), "older result");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_cannot_be_written_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "x").unwrap();
        for (path, word) in [
            (folder.path().to_path_buf(), "is a folder"),
            (folder.path().join("none/out.json"), "there is no folder"),
            (file.join("out.json"), "Not a directory"),
            (PathBuf::new(), "does not name a file"),
        ] {
            let problem = Target::check("--json", &path).unwrap_err();
            assert_eq!(problem.exit(), Exit::Usage);
            assert!(format!("{problem:?}").contains(word), "{problem:?}");
        }
    }

    impl Target {
        fn file_name(&self) -> &str {
            match self {
                Target::File(path) => path.file_name().unwrap().to_str().unwrap(),
                Target::Stdout => "-",
            }
        }
    }
}
