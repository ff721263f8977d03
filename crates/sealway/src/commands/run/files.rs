//! Which configurations are read, and what is said of them.

use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use sealway_v2ray::config::{Config, File, Options, Problem, Severity, load};

use super::remote::{self, Remote};
use crate::problem::{self, note};

/// What service managers are told not to start again after.
pub(crate) const WRONG_CONFIG: u8 = 23;

/// A configuration that was read.
pub(crate) struct Source {
    /// Its name, for messages.
    pub(crate) name: String,
    /// Its bytes.
    pub(crate) text: Vec<u8>,
}

/// Why there is none.
#[derive(Debug)]
pub(crate) enum Missing {
    Unreadable { name: String, error: io::Error },
    Empty { folder: PathBuf },
    Nowhere,
    NotFetched { name: String, error: remote::Error },
    Format { name: String },
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Missing::Unreadable { name, error } => write!(f, "{name}: {error}"),
            Missing::Empty { folder } => write!(f, "{}: no .json or .jsonc file is in there", folder.display()),
            Missing::Nowhere => f.write_str("there is no config.json here, and none is named"),
            Missing::NotFetched { name, error } => write!(f, "{name}: {error}"),
            Missing::Format { name } => write!(f, "{name}: only JSON is supported"),
        }
    }
}

impl Missing {
    /// What to do about it.
    pub(crate) fn hint(&self) -> &'static str {
        match self {
            Missing::Unreadable { .. } => "check the path and your rights to it",
            Missing::Empty { .. } => "put one there or name another folder",
            Missing::Nowhere => "name one: sealway run -c FILE",
            Missing::NotFetched { .. } => "check the address; the answer must be 200 and the whole configuration",
            Missing::Format { .. } => "write it as JSON; comments are allowed",
        }
    }
}

/// A variable that says where things are, by any of its names.
pub(crate) fn location(what: &str, env: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let upper = what.to_uppercase();
    ["XRAY", "V2RAY"].iter().find_map(|family| {
        let dotted = format!("{}.location.{what}", family.to_lowercase());
        let value = env(&dotted).or_else(|| env(&format!("{family}_LOCATION_{upper}")));
        value.filter(|value| !value.is_empty()).map(PathBuf::from)
    })
}

/// The files to read, in the order in which they go over each other.
pub(crate) fn names(
    named: &[PathBuf],
    folder: Option<&Path>,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<PathBuf>, Missing> {
    let mut files = named.to_vec();
    if let Some(folder) = folder.map(Path::to_path_buf).or_else(|| location("confdir", env)) {
        let found = in_folder(&folder)?;
        if found.is_empty() {
            return Err(Missing::Empty { folder });
        }
        files.extend(found);
    }
    if files.is_empty() {
        let here = PathBuf::from("config.json");
        let elsewhere = location("config", env).map(|folder| folder.join("config.json"));
        let found = std::iter::once(here).chain(elsewhere).find(|file| file.is_file());
        files.push(found.ok_or(Missing::Nowhere)?);
    }
    Ok(files)
}

fn in_folder(folder: &Path) -> Result<Vec<PathBuf>, Missing> {
    let unreadable = |error| Missing::Unreadable {
        name: folder.display().to_string(),
        error,
    };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let file = entry.map_err(unreadable)?.path();
        let extension = file.extension().and_then(|e| e.to_str()).unwrap_or_default();
        if ["json", "jsonc"]
            .iter()
            .any(|known| extension.eq_ignore_ascii_case(known))
            && file.is_file()
        {
            files.push(file);
        }
    }
    files.sort();
    Ok(files)
}

/// The files to read where `sealway` stands in Xray's place. Folders that are not there or hold nothing are passed over, and
/// where nothing is named or found, standard input is read.
pub(crate) fn names_as_xray(
    named: &[PathBuf],
    folder: Option<&Path>,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<PathBuf>, Missing> {
    let mut files = named.to_vec();
    let folders = [folder.map(Path::to_path_buf), location("confdir", env)];
    if let Some(folder) = folders.into_iter().flatten().find(|folder| folder.is_dir()) {
        files.extend(in_folder(&folder)?);
    }
    if !files.is_empty() {
        return Ok(files);
    }
    let here = ["json", "jsonc", "toml", "yaml", "yml"].map(|form| PathBuf::from(format!("config.{form}")));
    let beside = || Some(std::env::current_exe().ok()?.parent()?.to_path_buf());
    let elsewhere = location("config", env).or_else(beside);
    let elsewhere = elsewhere.map(|folder| folder.join("config.json"));
    match here.into_iter().chain(elsewhere).find(|file| file.is_file()) {
        Some(file) => Ok(vec![file]),
        // Nobody types while it runs, and what was a file is not read from elsewhere.
        None if are_for_the_log() => Err(Missing::Nowhere),
        None => {
            note("no configuration is named: it is read from standard input");
            Ok(vec!["stdin:".into()])
        }
    }
}

/// Reads one file, standard input for `stdin:`, or what an HTTP server gives.
pub(crate) fn read(file: &Path) -> Result<Source, Missing> {
    if let Some(remote) = Remote::parse(file) {
        let name = remote.name();
        return match remote.fetch() {
            Ok(text) => Ok(Source { name, text }),
            Err(error) => Err(Missing::NotFetched { name, error }),
        };
    }
    let name = file.display().to_string();
    let form = file.extension().and_then(|e| e.to_str()).unwrap_or_default();
    if ["toml", "yaml", "yml", "pb"]
        .iter()
        .any(|other| form.eq_ignore_ascii_case(other))
    {
        return Err(Missing::Format { name });
    }
    let text = if name == "stdin:" {
        let mut text = Vec::new();
        io::stdin().lock().read_to_end(&mut text).map(|_| text)
    } else {
        std::fs::read(file)
    };
    match text {
        Ok(text) => Ok(Source { name, text }),
        Err(error) => Err(Missing::Unreadable { name, error }),
    }
}

impl From<Missing> for problem::Problem {
    fn from(missing: Missing) -> Self {
        problem::Problem::usage(&missing).hint(missing.hint())
    }
}

/// A variable of the environment.
pub(crate) fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// As the configuration is parsed.
pub(crate) fn texts(sources: &[Source]) -> Vec<File<'_>> {
    let files = sources.iter().map(|Source { name, text }| File { name, text });
    files.collect()
}

/// The configuration for a command that only looks at it; prints what is wrong with it. `None`: it cannot be used.
pub(crate) fn parse(sources: &[Source]) -> Option<Config> {
    let how = Options {
        strict: false,
        env: &environment,
    };
    let loaded = load(&texts(sources), &how);
    problems(&loaded.problems);
    loaded.config
}

/// Reads these files, or those that are taken where none is named, for such a command.
pub(crate) fn look(named: &[PathBuf]) -> Result<(Vec<Source>, Option<Config>), problem::Problem> {
    let named = names(named, None, &environment)?;
    let sources = named.iter().map(|file| read(file)).collect::<Result<Vec<_>, _>>()?;
    let config = parse(&sources);
    Ok((sources, config))
}

/// Whether a configuration came from another machine as everyone on the way could read and change it.
pub(crate) fn came_in_the_clear(source: &Source) -> bool {
    Remote::parse(Path::new(&source.name)).is_some_and(|remote| remote.is_in_the_clear())
}

/// Whether problems are for the error log: a server runs, and nobody may look at its standard error any more.
static LOGGED: AtomicBool = AtomicBool::new(false);

/// From now on problems are for the error log.
pub(crate) fn are_logged() {
    LOGGED.store(true, Ordering::Relaxed);
}

/// Whether they are.
pub(crate) fn are_for_the_log() -> bool {
    LOGGED.load(Ordering::Relaxed)
}

/// Prints what is wrong with a configuration to standard error, or to the error log of a server that runs, in the form that
/// editors jump to.
pub(crate) fn problems(found: &[Problem]) {
    for problem in found {
        if are_for_the_log() {
            match problem.severity {
                Severity::Error => tracing::error!("{problem}"),
                _ => tracing::warn!("{problem}"),
            }
            continue;
        }
        let line = Problem {
            hint: String::new(),
            ..problem.clone()
        };
        note(line);
        if !problem.hint.is_empty() {
            note(format_args!("  hint: {}", problem.hint));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn variables_have_four_names() {
        for name in [
            "xray.location.confdir",
            "XRAY_LOCATION_CONFDIR",
            "v2ray.location.confdir",
            "V2RAY_LOCATION_CONFDIR",
        ] {
            let env = |asked: &str| (asked == name).then(|| "/there".to_owned());
            assert_eq!(location("confdir", &env).unwrap(), Path::new("/there"), "{name}");
        }
        assert_eq!(location("confdir", &|_| Some(String::new())), None);
    }

    #[test]
    fn a_folder_comes_behind_the_named_files_in_order() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["20.json", "10.JSONC", "notes.txt", "30.json"] {
            std::fs::write(folder.path().join(name), "{}").unwrap();
        }
        std::fs::create_dir(folder.path().join("15.json")).unwrap();
        let found = names(&["first.json".into()], Some(folder.path()), &|_| None).unwrap();
        let found: Vec<_> = found.iter().map(|f| f.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(found, ["first.json", "10.JSONC", "20.json", "30.json"]);
        let env = |asked: &str| (asked == "XRAY_LOCATION_CONFDIR").then(|| folder.path().display().to_string());
        assert_eq!(names(&[], None, &env).unwrap().len(), 3);
    }

    #[test]
    fn a_folder_without_any_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let empty = names(&[], Some(folder.path()), &|_| None).unwrap_err();
        assert!(matches!(empty, Missing::Empty { .. }), "{empty:?}");
        let absent = names(&[], Some(&folder.path().join("absent")), &|_| None).unwrap_err();
        assert!(matches!(absent, Missing::Unreadable { .. }), "{absent:?}");
    }

    #[test]
    fn the_environment_names_a_folder_with_a_config() {
        let folder = tempfile::tempdir().unwrap();
        let env = |asked: &str| (asked == "V2RAY_LOCATION_CONFIG").then(|| folder.path().display().to_string());
        assert!(matches!(names(&[], None, &env), Err(Missing::Nowhere)));
        std::fs::write(folder.path().join("config.json"), "{}").unwrap();
        assert_eq!(names(&[], None, &env).unwrap(), [folder.path().join("config.json")]);
    }
}
