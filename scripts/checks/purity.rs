//! Crates that do no I/O and know no time: what they need of either, their callers bring.

use std::path::Path;

use super::source::{Crate, Use};
use super::workspace::Package;

/// What such a crate may not name.
const REFUSED: [(&str, &str); 14] = [
    ("std::env", "the environment"),
    ("std::fs", "files"),
    ("std::io::stderr", "a terminal"),
    ("std::io::stdin", "a terminal"),
    ("std::io::stdout", "a terminal"),
    ("std::net::TcpListener", "sockets"),
    ("std::net::TcpStream", "sockets"),
    ("std::net::ToSocketAddrs", "names of hosts"),
    ("std::net::UdpSocket", "sockets"),
    ("std::os", "the operating system"),
    ("std::process", "processes"),
    ("std::thread", "threads"),
    ("std::time::Instant", "the clock"),
    ("std::time::SystemTime", "the clock"),
];

/// Crates that exist to do I/O, to wait or to draw random numbers. Tests may use them.
const REFUSED_CRATES: [&str; 20] = [
    "async-io",
    "async-std",
    "chrono",
    "getrandom",
    "hyper",
    "jiff",
    "libc",
    "memmap2",
    "mio",
    "nix",
    "polling",
    "rand",
    "reqwest",
    "rustix",
    "signal-hook",
    "smol",
    "socket2",
    "tempfile",
    "tokio",
    "tokio-util",
];

/// What a crate of the floor without I/O depends on that it may not, optional or not.
pub fn dependencies(package: &Package) -> Vec<String> {
    let refused = package
        .dependencies
        .iter()
        .filter(|dependency| dependency.kind != "dev" && REFUSED_CRATES.contains(&dependency.name.as_str()));
    refused
        .map(|dependency| {
            format!(
                "`{}` does no I/O, so it may not depend on `{}`; what needs it stands on a higher floor",
                package.name, dependency.name
            )
        })
        .collect()
}

/// What a crate of the floor without I/O names that it may not.
pub fn findings(package: &str, krate: &Crate, root: &Path) -> Vec<String> {
    let mut findings: Vec<String> = krate
        .relative
        .iter()
        .filter_map(|found| refused(package, krate, found, root))
        .collect();
    findings.sort();
    findings.dedup();
    findings
}

fn refused(package: &str, krate: &Crate, found: &Use, root: &Path) -> Option<String> {
    let module = &found.place.module;
    let path = whole(krate, module, found.path.get(module.len()..)?);
    let (name, what) = REFUSED
        .iter()
        .find(|(name, _)| path == *name || path.strip_prefix(name).is_some_and(|rest| rest.starts_with("::")))?;
    let file = found.place.file.strip_prefix(root).unwrap_or(&found.place.file);
    Some(format!(
        "{}:{}: `{package}` does no I/O, so it may not use {what} (`{name}`); its callers do, and hand over what they found",
        file.display(),
        found.place.line
    ))
}

/// The path from its crate on: `fs::read` behind `use std::fs` is `std::fs::read`.
fn whole(krate: &Crate, module: &[String], path: &[String]) -> String {
    let imported = path.first().and_then(|first| {
        let mut imports = krate.imports.iter();
        let (_, _, behind) = imports.find(|(user, name, _)| user == module && name == first)?;
        let behind = behind.get(module.len()..)?;
        (behind.first() != Some(first)).then_some(behind)
    });
    match imported {
        Some(behind) => [behind, path.get(1..).unwrap_or_default()].concat().join("::"),
        None => path.join("::"),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::source::Place;
    use super::super::workspace::Dependency;
    use super::*;

    #[test]
    fn crates_for_io_are_for_tests_only() {
        let dependency = |name: &str, kind: &str| Dependency {
            name: name.into(),
            kind: kind.into(),
            ..Dependency::default()
        };
        let package = Package {
            name: "sealway-bip324".into(),
            dependencies: vec![
                dependency("tokio", "normal"),
                dependency("tempfile", "dev"),
                dependency("sha2", "normal"),
            ],
            ..Package::default()
        };
        let found = dependencies(&package);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].contains("`sealway-bip324`") && found[0].contains("`tokio`"),
            "{found:?}"
        );
    }

    fn named(path: &str, imports: &[(&str, &str)]) -> Vec<String> {
        let module = vec!["wire".to_string()];
        let words = |text: &str| text.split("::").map(str::to_string).collect::<Vec<_>>();
        let found = Use {
            place: Place {
                module: module.clone(),
                file: PathBuf::from("src/wire.rs"),
                line: 7,
            },
            path: [module.clone(), words(path)].concat(),
        };
        let imports = imports
            .iter()
            .map(|(name, behind)| {
                (
                    module.clone(),
                    name.to_string(),
                    [module.clone(), words(behind)].concat(),
                )
            })
            .collect();
        let krate = Crate {
            relative: vec![found],
            imports,
            ..Crate::default()
        };
        findings("sealway-session", &krate, Path::new(""))
    }

    #[test]
    fn files_sockets_threads_and_clocks_are_refused() {
        for path in [
            "std::fs::read",
            "std::fs",
            "std::env::var",
            "std::net::TcpStream::connect",
            "std::thread::sleep",
            "std::process::id",
            "std::time::Instant::now",
        ] {
            let found = named(path, &[]);
            assert_eq!(found.len(), 1, "{path}");
            assert!(found[0].starts_with("src/wire.rs:7: `sealway-session`"), "{found:?}");
        }
        assert_eq!(named("fs::read", &[("fs", "std::fs")]).len(), 1);
        assert_eq!(named("time::Instant::now", &[("time", "std::time")]).len(), 1);
    }

    #[test]
    fn what_is_pure_is_not() {
        for path in [
            "std::net::IpAddr",
            "std::time::Duration::from_secs",
            "std::fmt::Write",
            "fs::Chain",
            "std::fsx::a",
        ] {
            assert_eq!(named(path, &[]), [""; 0], "{path}");
        }
    }
}
