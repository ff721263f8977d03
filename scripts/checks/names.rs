//! Reports know no workload by name: what they have to know of one, its lens says.

use std::path::Path;

use super::source::{Crate, literals};

/// The crate that has workloads, and the module that lists them.
const PACKAGE: &str = "sealway-lab";
const CATALOGUE: &str = "catalogue";

/// What a workload's module has for the catalogue.
const LISTED: &str = "WORKLOAD";

/// Top modules that may name none.
const NAMELESS: [&str; 3] = ["compare", "lens", "report"];

/// What names a workload that may not: as a literal, or as the beginning of one up to a hyphen, or by its module.
pub fn findings(package: &str, krate: &Crate, root: &Path) -> Vec<String> {
    if package != PACKAGE {
        return Vec::new();
    }
    let names = workloads(krate);
    let nameless = |module: &[String]| module.first().is_some_and(|top| NAMELESS.contains(&top.as_str()));
    if names.is_empty() && krate.modules.iter().any(|(module, _)| nameless(module)) {
        return vec![format!(
            "`{PACKAGE}`: no `{LISTED}` was found in its `{CATALOGUE}`, so nothing can be looked for in reports"
        )];
    }
    let mut found: Vec<(&Path, u32, &str)> = Vec::new();
    for used in krate.uses.iter().filter(|used| nameless(&used.place.module)) {
        let name = used
            .path
            .first()
            .and_then(|first| names.iter().find(|name| *name == first));
        found.extend(name.map(|name| (used.place.file.as_path(), used.place.line, name.as_str())));
    }
    for (_, file) in krate.modules.iter().filter(|(module, _)| nameless(module)) {
        // That a file can be read was found when its crate was.
        let text = std::fs::read_to_string(file).unwrap_or_default();
        for (line, literal) in literals(&text).unwrap_or_default() {
            let name = names.iter().find(|name| says(&literal, name));
            found.extend(name.map(|name| (file.as_path(), line, name.as_str())));
        }
    }
    found.sort_unstable();
    found.dedup();
    let finding = |(file, line, name): (&Path, u32, &str)| {
        let file = file.strip_prefix(root).unwrap_or(file).display();
        format!("{file}:{line}: reports know no workload by name; let the lens of `{name}` say what is meant")
    };
    found.into_iter().map(finding).collect()
}

/// The workloads that the catalogue lists, which are called as their modules.
fn workloads(krate: &Crate) -> Vec<String> {
    let listed = krate.relative.iter().chain(&krate.uses);
    let listed =
        listed.filter(|found| found.place.module == [CATALOGUE] && found.path.last().is_some_and(|p| p == LISTED));
    let mut names: Vec<String> = listed
        .filter_map(|found| found.path.iter().rev().nth(1).cloned())
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn says(literal: &str, name: &str) -> bool {
    literal
        .strip_prefix(name)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_name_and_a_word_in_a_sentence_is_not() {
        for (literal, named) in [
            ("files", true),
            ("files-section", true),
            ("profiles", false),
            ("the files of a run", false),
            ("files of a run", false),
            ("", false),
        ] {
            assert_eq!(says(literal, "files"), named, "{literal}");
        }
    }

    #[test]
    fn literals_are_read_without_their_quotes() {
        let found = literals("let a = \"files\"; // \"no\"\nlet b = r#\"b324\"#; let c = b'x';").unwrap();
        let texts: Vec<(u32, &str)> = found.iter().map(|(line, text)| (*line, text.as_str())).collect();
        assert_eq!(texts, [(1, "files"), (2, "b324"), (2, "x")]);
    }
}
