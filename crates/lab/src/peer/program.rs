//! Programs as files: where they are, which ones, and what they say of themselves.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use sha2::{Digest, Sha256};

/// How long a program may take to say something about itself.
const PATIENCE: Duration = Duration::from_secs(30);

/// Most bytes of that which are taken.
const MAX_OUTPUT: usize = 256 * 1024;

/// Most characters of a version.
const LONGEST: usize = 200;

/// What gets the programs that the lab uses.
pub(crate) const INSTALLER: &str = "scripts/install-peers";

/// Where only root looks, and services are.
pub(crate) const OF_ROOT: [&str; 2] = ["/usr/sbin", "/usr/local/sbin"];

/// The first file called `name` in the folders of PATH and [`OF_ROOT`].
///
/// # Errors
/// That there is none, and what gets it, for the reader.
pub(crate) fn on_path(name: &str) -> Result<PathBuf, String> {
    std::env::var_os("PATH")
        .iter()
        .flat_map(std::env::split_paths)
        .chain(OF_ROOT.map(PathBuf::from))
        .filter_map(|folder| std::path::absolute(folder.join(name)).ok())
        .find(|path| path.is_file())
        .ok_or_else(|| format!("not found: there is no {name} on PATH; {INSTALLER} gets it"))
}

/// SHA-256 of a file, lower-case hex.
pub(crate) fn sha256_of(path: &Path) -> Option<String> {
    let mut file = std::fs::File::open(path).ok()?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match file.read(&mut buffer).ok()? {
            0 => break,
            n => hash.update(&buffer[..n]),
        }
    }
    Some(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Where programs of V2Ray's family look for a configuration if they are given none.
const CONFIG_FOLDERS: [&str; 4] = [
    "V2RAY_LOCATION_CONFIG",
    "V2RAY_LOCATION_CONFDIR",
    "XRAY_LOCATION_CONFIG",
    "XRAY_LOCATION_CONFDIR",
];

/// What a program prints to standard output, if it ends well. It is started in an empty folder, and finds no configuration:
/// one that does not know the words would begin its work.
///
/// # Errors
/// Why it said nothing, for the reader.
pub(crate) fn says(command: &mut Command) -> Result<String, String> {
    let empty = super::Folder::temporary("sealway-ask-").map_err(|error| format!("no folder can be made: {error}"))?;
    command
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .current_dir(empty.path())
        .envs(CONFIG_FOLDERS.map(|name| (name, empty.path())));
    let ended = super::run(command, MAX_OUTPUT, PATIENCE).map_err(|error| error.to_string())?;
    Ok(String::from_utf8_lossy(&ended.output).into_owned())
}

/// The same of a program that takes `words` and answers on standard error.
pub(crate) fn says_aside(program: &Path, words: &str) -> Result<String, String> {
    let script = format!("exec \"$0\" {words} 2>&1");
    says(Command::new("/bin/sh").args(["-c", &script]).arg(program))
}

/// The first line of what a program prints, for a version.
pub(crate) fn first_line(command: &mut Command) -> Result<String, String> {
    let text = says(command)?;
    let line = text.lines().map(str::trim).find(|line| !line.is_empty());
    line.map(|line| line.chars().take(LONGEST).collect())
        .ok_or_else(|| "it does not say its version".to_owned())
}

/// The same of a program that has to begin with the name that it is known by.
///
/// # Errors
/// Why it cannot take part, for the reader.
pub(crate) fn version_of(known_as: &str, program: &Path, command: &mut Command) -> Result<String, String> {
    let version = first_line(command)?;
    if version.starts_with(known_as) {
        return Ok(version);
    }
    Err(format!(
        "\"{}\" does not call itself {}: it says {version:?}",
        program.display(),
        known_as.trim_end_matches([' ', '.', '_'])
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_program_has_to_be_what_it_is_looked_for_as() {
        let asked = |words: &str| {
            let mut command = Command::new("/bin/sh");
            version_of("wrk ", Path::new("/opt/wrk"), command.args(["-c", words]))
        };
        assert_eq!(asked("echo; echo wrk 4.1.0; echo more"), Ok("wrk 4.1.0".to_owned()));
        let other = "\"/opt/wrk\" does not call itself wrk: it says \"wrk2 4.0\"";
        assert_eq!(asked("echo wrk2 4.0"), Err(other.to_owned()));
        let old = version_of(
            "iperf 3.",
            Path::new("iperf3"),
            Command::new("/bin/sh").args(["-c", "echo iperf 2.1"]),
        );
        let says = "\"iperf3\" does not call itself iperf 3: it says \"iperf 2.1\"";
        assert_eq!(old, Err(says.to_owned()));
        assert!(asked("true").is_err() && asked("echo wrk 4.1.0; exit 3").is_err());
    }

    #[test]
    fn a_program_that_is_asked_finds_no_configuration() {
        let script = "for folder in . \"$V2RAY_LOCATION_CONFIG\" \"$V2RAY_LOCATION_CONFDIR\" \"$XRAY_LOCATION_CONFIG\" \
                      \"$XRAY_LOCATION_CONFDIR\"; do ls -A \"$folder\" && echo folder; done";
        let said = says(Command::new("/bin/sh").args(["-c", script])).unwrap();
        assert_eq!(said, "folder\n".repeat(5));
    }
}
