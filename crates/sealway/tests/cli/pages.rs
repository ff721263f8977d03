//! What the pages for users tell them to type.

use std::fs;
use std::path::PathBuf;

use crate::common::{Ran, ran, sealway, workspace};

/// The README and the guides.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec![workspace().join("README.md")];
    let guides = fs::read_dir(workspace().join("docs/guide")).unwrap();
    pages.extend(guides.map(|entry| entry.unwrap().path()));
    assert!(pages.len() > 3, "{pages:?}");
    pages
}

/// Commands of this program in a page: lines of its blocks that begin with its name, and such code in its text.
fn commands(page: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut block = false;
    for line in page.replace("\\\n", " ").lines() {
        if line.trim_start().starts_with("```") {
            block = !block;
        } else if block {
            let line = line.trim_start().trim_start_matches("$ ");
            found.push(line.trim_start_matches("sudo ").to_owned());
        } else {
            // Every second piece is between backticks.
            found.extend(line.split('`').skip(1).step_by(2).map(str::to_owned));
        }
    }
    let ours = found.iter().filter_map(|text| text.strip_prefix("sealway "));
    let words = |text: &str| {
        let end = text.find([';', '|', '>', '<', '&', '…']).unwrap_or(text.len());
        let text = text[..end].split(" #").next().unwrap_or_default();
        text.split_whitespace()
            .map(|word| word.trim_matches(['"', '\'']).to_owned())
            .collect::<Vec<_>>()
    };
    ours.map(words).filter(|words| !words.is_empty()).collect()
}

/// The help of a command, which is shown only if all that stands before it is known to the command.
fn helped(words: &[String]) -> Ran {
    ran(sealway(&[]).args(words).arg("--help"))
}

#[test]
fn every_command_of_the_pages_is_one() {
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        let commands = commands(&text);
        for words in &commands {
            let ran = helped(words);
            assert_eq!(ran.code, 0, "{}: {words:?}\n{}", page.display(), ran.stderr);
        }
        let least = if page.ends_with("README.md") { 15 } else { 1 };
        assert!(commands.len() >= least, "{}: {commands:?}", page.display());
    }
}

#[test]
fn a_command_that_is_none_is_noticed() {
    let page = "Type `sealway sned x`.\n```sh\nsealway lab --quikc   # no\n```\n";
    let found = commands(page);
    assert_eq!(found, [vec!["sned", "x"], vec!["lab", "--quikc"]]);
    for words in found {
        assert_ne!(helped(&words).code, 0, "{words:?}");
    }
}

/// The example of the library is the one that its documentation compiles and runs.
#[test]
fn the_example_of_the_readme_is_tested() {
    let readme = fs::read_to_string(workspace().join("README.md")).unwrap();
    let example = readme.split("```rust\n").nth(1).unwrap().split("```").next().unwrap();
    let tested = fs::read_to_string(workspace().join("crates/aead/src/lib.rs")).unwrap();
    let tested: Vec<&str> = tested.lines().filter_map(|line| line.strip_prefix("//! ")).collect();
    for line in example.lines().filter(|line| !line.is_empty()) {
        assert!(
            tested.contains(&line),
            "not in the documentation of sealway-aead: {line}"
        );
    }
}

#[test]
fn the_readme_is_short() {
    let readme = fs::read_to_string(workspace().join("README.md")).unwrap();
    assert!(readme.lines().count() <= 150);
}
