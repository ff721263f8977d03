//! Configurations as users write them: what clients export, what panels give their servers, what guides show. Xray 26.3.27 takes
//! every one of them. What this program refuses is refused by name, for something that it does not have yet.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use sealway_v2ray::config::{File, Options, load};

/// Those that are refused, each with the keys that say why, and no others. A rule that leads to the tag of a reverse connection
/// falls with it.
const REFUSED: &[(&str, &[&str])] = &[
    (
        "panel-warp",
        &["outbounds.protocol: not supported yet: the protocol wireguard"],
    ),
    (
        "server-portal",
        &[
            "inbounds.settings.clients.reverse: not supported yet",
            "routing.rules.outboundTag: no outbound has the tag",
        ],
    ),
];

/// The configurations here, by name.
fn all(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut all: Vec<_> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|kind| kind == "json" || kind == "jsonc"))
        .map(|path| {
            (
                path.file_stem().unwrap().to_string_lossy().into_owned(),
                std::fs::read(&path).unwrap(),
            )
        })
        .collect();
    all.sort();
    all
}

/// What is wrong with a configuration: the keys, each once, without the numbers of lists.
fn refusals(name: &str, text: &[u8]) -> Vec<String> {
    let loaded = load(&[File { name, text }], &Options::default());
    let mut found: Vec<String> = Vec::new();
    for problem in loaded.errors() {
        let key: String = problem
            .path
            .split('[')
            .map(|part| part.split_once(']').map_or(part, |(_, rest)| rest))
            .collect();
        let words = format!("{key}: {}", problem.text);
        if !found.contains(&words) {
            found.push(words);
        }
    }
    assert_eq!(loaded.config.is_none(), !found.is_empty(), "{name}");
    found
}

#[test]
fn every_verdict_is_the_one_that_is_written_down() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/users");
    let configurations = all(&folder);
    assert_eq!(configurations.len(), 44);
    let mut wrong = Vec::new();
    for (name, text) in &configurations {
        let refused = refusals(name, text);
        let expected = REFUSED
            .iter()
            .find(|(known, _)| known == name)
            .map_or(&[][..], |(_, keys)| keys);
        let fits =
            refused.len() == expected.len() && refused.iter().zip(expected).all(|(found, key)| found.starts_with(key));
        if !fits {
            wrong.push(format!("{name}: {refused:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for (name, _) in REFUSED {
        assert!(configurations.iter().any(|(known, _)| known == name), "{name}");
    }
}

/// Prints what is refused of the configurations in the folder that SEALWAY_CONFIGURATIONS names.
#[test]
#[ignore = "for somebody else's configurations"]
fn of_a_folder() {
    let Some(folder) = std::env::var_os("SEALWAY_CONFIGURATIONS") else {
        return;
    };
    for (name, text) in all(Path::new(&folder)) {
        println!("{name}\t{}", refusals(&name, &text).join("; "));
    }
}
