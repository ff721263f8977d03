//! Whether the arguments are Xray's.

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Names of programs whose place this one takes.
const NAMES: [&str; 3] = ["xray", "rw-core", "v2ray"];

/// The words after the name, if Xray's are meant: because the program was started under such a name, or with `--compat xray`.
pub(crate) fn of_xray(arguments: impl Iterator<Item = OsString>) -> Option<Vec<OsString>> {
    let mut all: Vec<OsString> = arguments.collect();
    let taken = match (all.get(1).and_then(|word| word.to_str()), all.get(2)) {
        (Some("--compat"), Some(program)) if program == "xray" => 3,
        (Some("--compat=xray"), _) => 2,
        _ => usize::from(all.first().is_some_and(|name| is_xray(name))),
    };
    match taken {
        0 => None,
        taken => Some(all.split_off(taken)),
    }
}

/// Whether a program is called so: `xray`, `/usr/bin/xray-linux-amd64`, but not `xrayed`.
fn is_xray(program: &OsStr) -> bool {
    let name = Path::new(program)
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .to_lowercase();
    let rests = NAMES.iter().filter_map(|known| name.strip_prefix(known));
    rests
        .into_iter()
        .any(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_decides() {
        for (name, wanted) in [
            ("xray", true),
            ("/usr/local/bin/xray", true),
            ("bin/xray-linux-amd64", true),
            ("Xray.exe", true),
            ("rw-core", true),
            ("./v2ray", true),
            ("v2ray5", false),
            ("xrayed", false),
            ("sealway", false),
            ("/opt/xray/sealway", false),
            ("", false),
        ] {
            assert_eq!(is_xray(OsStr::new(name)), wanted, "{name}");
        }
    }

    #[test]
    fn words_are_those_after_the_name() {
        let asked = |words: &str| {
            let words = of_xray(words.split(' ').map(OsString::from))?;
            Some(words.join(OsStr::new(" ")).into_string().unwrap_or_default())
        };
        assert_eq!(asked("xray run -c a"), Some("run -c a".into()));
        assert_eq!(asked("xray"), Some(String::new()));
        assert_eq!(asked("sealway --compat xray -c a"), Some("-c a".into()));
        assert_eq!(asked("sealway --compat=xray version"), Some("version".into()));
        assert_eq!(asked("xray --compat xray version"), Some("version".into()));
        for own in [
            "sealway",
            "sealway run -c a",
            "sealway --compat other",
            "sealway run --compat xray",
        ] {
            assert_eq!(asked(own), None, "{own}");
        }
    }
}
