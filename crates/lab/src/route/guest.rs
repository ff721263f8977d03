//! User-supplied programs.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::engine::Engine;
use crate::lens::OURS;

/// Most characters of a name: it stands in tables.
const LONGEST: usize = 24;

/// A program that the user names and says where it is. It is measured as peers are, if it takes the words and the
/// configurations of Xray, of V2Ray, of sing-box or of shoes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Guest {
    name: String,
    program: PathBuf,
}

impl Guest {
    /// Reads `NAME=PATH`. The name has letters, digits, `.`, `-` and `_`, at most 24, and is none of `taken`; a relative path
    /// is one from the current folder. The program itself is not looked at.
    ///
    /// # Errors
    /// What is wrong with the text, for the reader.
    pub fn parse(text: &str, taken: &[&str]) -> Result<Guest, String> {
        let parts = text.split_once('=').filter(|(_, path)| !path.is_empty());
        let (name, path) = parts.ok_or("write NAME=PATH, such as fork=/opt/fork/xray")?;
        let may = |c: u8| c.is_ascii_alphanumeric() || b".-_".contains(&c);
        let begins = name.bytes().next().is_some_and(|c| c.is_ascii_alphanumeric());
        if !begins || name.len() > LONGEST || !name.bytes().all(may) {
            return Err(format!(
                "a name has letters, digits, `.`, `-` and `_`, begins with one of the first two, and is not longer than {LONGEST}"
            ));
        }
        if taken.iter().any(|taken| taken.eq_ignore_ascii_case(name)) {
            return Err(format!("the name {name} is taken; choose another, such as my-{name}"));
        }
        // Whatever begins with our name is shown as a variant of ours.
        if name.to_ascii_lowercase().starts_with(OURS) {
            return Err(format!(
                "names that begin with {OURS} are ours; choose another, such as my-{name}"
            ));
        }
        let program = std::path::absolute(path).map_err(|error| format!("{path}: {error}"))?;
        Ok(Guest {
            name: name.to_owned(),
            program,
        })
    }

    /// The name of the subject.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The program, asked for its version.
    ///
    /// # Errors
    /// Why it cannot take part and what to do, for the reader.
    pub(crate) fn engine(&self) -> Result<Engine, String> {
        executable(&self.program)?;
        Engine::ask(&self.name, self.program.clone()).map_err(|why| {
            format!(
                "{why}; a program can take part that prints its version when it is asked `version`, or `-version` as V2Ray \
                 before 5, or `--version`"
            )
        })
    }
}

/// Whether a file can be started as a program; the system has the last word.
fn executable(program: &Path) -> Result<(), String> {
    let shown = program.display();
    match program.metadata() {
        Err(error) => Err(format!("\"{shown}\": {error}; give the path of the program")),
        Ok(data) if !data.is_file() => Err(format!("\"{shown}\" is not a file; give the path of the program")),
        Ok(data) if data.permissions().mode() & 0o111 == 0 => Err(format!(
            "\"{shown}\" may not be executed; if it is the program, chmod +x allows it"
        )),
        Ok(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::peer::tests::script;
    use crate::route::Stack;

    fn guest(program: &Path) -> Guest {
        Guest::parse(&format!("fork={}", program.display()), &[]).unwrap()
    }

    #[test]
    fn a_name_and_a_path_are_read() {
        let found = Guest::parse("fork-1.8_b=/opt/a=b", &["xray"]).unwrap();
        assert_eq!(
            (found.name(), found.program.as_path()),
            ("fork-1.8_b", Path::new("/opt/a=b"))
        );
        let relative = Guest::parse("fork=bin/xray", &[]).unwrap();
        assert!(relative.program.is_absolute() && relative.program.ends_with("bin/xray"));
    }

    #[test]
    fn a_bad_name_says_what_is_wrong() {
        let long = format!("{}=/x", "a".repeat(LONGEST + 1));
        for (text, words) in [
            ("", "NAME=PATH"),
            ("fork", "NAME=PATH"),
            ("fork=", "NAME=PATH"),
            ("=/x", "a name has letters"),
            ("-x=/x", "a name has letters"),
            ("a b=/x", "a name has letters"),
            ("a:b=/x", "a name has letters"),
            ("\u{e4}=/x", "a name has letters"),
            (&long, "a name has letters"),
            ("xray=/x", "taken; choose another, such as my-xray"),
            ("XRay=/x", "taken"),
            ("sealway=/x", "ours"),
            ("Sealway-old=/x", "ours"),
        ] {
            let error = Guest::parse(text, &["xray", "direct"]).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn a_program_that_cannot_take_part_says_why_and_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let plain = folder.path().join("plain");
        std::fs::write(&plain, "").unwrap();
        let said = |program: &Path| guest(program).engine().unwrap_err();
        for (program, words) in [
            (folder.path().join("none"), "give the path of the program"),
            (folder.path().to_owned(), "is not a file"),
            (plain, "chmod +x"),
            (
                script(folder.path(), "fails", "exit 3"),
                "exit status: 3; a program can",
            ),
            (
                script(folder.path(), "silent", "exit 0"),
                "does not say its version; a program can",
            ),
        ] {
            let error = said(&program);
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn its_words_and_its_form_are_found_by_what_it_says() {
        let folder = tempfile::tempdir().unwrap();
        // What answers `-version` as Xray does is asked `version` all the same.
        for (name, body, version, words) in [
            (
                "old",
                "[ $1 = -version ] && echo V2Ray 4.9",
                "V2Ray 4.9",
                &["-config"][..],
            ),
            ("new", "[ $1 = version ] && echo V2Ray 5.9", "V2Ray 5.9", &["run", "-c"]),
            ("both", "echo Xray 1.8 $1", "Xray 1.8 version", &["run", "-c"]),
            ("other", "[ $1 = version ] && echo fork 4.1", "fork 4.1", &["run", "-c"]),
        ] {
            let found = guest(&script(folder.path(), name, body)).engine().unwrap();
            let subject = found.subject(&[Stack::VLESS_TCP]);
            assert_eq!((subject.name.as_str(), subject.version.as_str()), ("fork", version));
            let argv = &subject.role_argv["client"];
            assert_eq!(argv[1..argv.len() - 1], *words, "{name}");
            assert_eq!(subject.config["vless-tcp client"]["outbounds"][0]["protocol"], "vless");
            assert_eq!(subject.sha256.len(), 64);
        }
        let sing_box = script(folder.path(), "sing", "[ $1 = version ] && echo sing-box version 1.2");
        let subject = guest(&sing_box)
            .engine()
            .unwrap()
            .subject(&[Stack::VLESS_TCP, Stack::VLESS_MUX]);
        assert_eq!(subject.config["vless-tcp client"]["outbounds"][0]["type"], "vless");
        assert!(!subject.config.contains_key("vless-mux client"), "it has none");
    }
}
