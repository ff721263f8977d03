//! The map of the modules in ARCHITECTURE.md: made of their `mod` lines, their floors where the crate has such, and the first
//! line of their documentation.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::modules;
use super::source::Crate;
use super::workspace::{Package, TargetKind, Workspace};

/// Lines of the page between which the map stands.
const BEGIN: &str = "<!-- the map: scripts/check-pages --write makes it -->";
const END: &str = "<!-- the end of the map -->";

/// Where the map stands.
pub fn page(root: &Path) -> PathBuf {
    root.join("ARCHITECTURE.md")
}

/// The page with the map as it should be.
///
/// # Errors
/// A text, when a source or the page cannot be read, or the page has no place for a map.
pub fn renewed(root: &Path, text: &str, workspace: &Workspace) -> Result<String, String> {
    let (before, rest) = text
        .split_once(BEGIN)
        .ok_or_else(|| format!("{}: no line `{BEGIN}`", page(root).display()))?;
    let (_, after) = rest
        .split_once(END)
        .ok_or_else(|| format!("{}: no line `{END}`", page(root).display()))?;
    Ok(format!("{before}{BEGIN}\n{}{END}{after}", map(workspace)?))
}

fn map(workspace: &Workspace) -> Result<String, String> {
    let mut out = String::new();
    for package in &workspace.members {
        let (folder, krate) = read(package)?;
        let _ = write!(out, "\n```text\ncrates/{folder}\n");
        let width = krate.top_modules.iter().map(String::len).max().unwrap_or(0);
        for (floor, name) in ordered(&package.name, &krate.top_modules) {
            let mut modules = krate.modules.iter();
            let Some((_, file)) = modules.find(|(path, _)| path.as_slice() == std::slice::from_ref(name)) else {
                continue;
            };
            let floor = floor.map_or(String::new(), |floor| format!("{floor:2}"));
            let _ = writeln!(out, "  {floor}  {name:width$}  {}", first_line(file)?);
        }
        out.push_str("```\n");
    }
    out.push('\n');
    Ok(out)
}

/// Modules with their floors, highest first; those of a crate without floors as they come.
fn ordered<'a>(package: &str, modules: &'a [String]) -> Vec<(Option<u8>, &'a String)> {
    let floors = modules::floors_of(package);
    let mut ordered: Vec<_> = modules
        .iter()
        .map(|name| (floors.and_then(|floors| floors.floor(name)), name))
        .collect();
    ordered.sort_by_key(|&(floor, _)| std::cmp::Reverse(floor));
    ordered
}

/// The folder of a crate and its modules.
fn read(package: &Package) -> Result<(String, Crate), String> {
    let mut targets = package.targets.iter();
    let target = targets
        .find(|target| matches!(target.kind, TargetKind::Library | TargetKind::Binary))
        .ok_or_else(|| format!("`{}` has neither a library nor a program", package.name))?;
    let folder = target.root.parent().and_then(Path::parent).and_then(Path::file_name);
    let folder = folder.unwrap_or_default().to_string_lossy().into_owned();
    Ok((folder, Crate::read(&target.root)?))
}

/// The first sentence of a file's documentation, without its last sign.
fn first_line(file: &Path) -> Result<String, String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    sentence(&text).ok_or_else(|| format!("{}: its first line should say what it is for (`//! …`)", file.display()))
}

fn sentence(text: &str) -> Option<String> {
    let lines = text.lines().map_while(|line| line.strip_prefix("//!"));
    let paragraph: Vec<&str> = lines.map(str::trim).take_while(|line| !line.is_empty()).collect();
    let paragraph = paragraph.join(" ");
    let end = paragraph.find(". ").unwrap_or(paragraph.len());
    // Links read as their text, code without its ticks: this is shown as it is.
    let sentence = paragraph[..end]
        .trim_end_matches(['.', ':'])
        .replace("[`", "")
        .replace("`]", "");
    let sentence = sentence.replace('`', "");
    (!sentence.is_empty()).then_some(sentence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_floor_comes_first() {
        let names = ["cpu", "low", "batch"].map(String::from);
        let of = |package| {
            ordered(package, &names)
                .into_iter()
                .map(|(floor, name)| (floor, name.as_str()))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            of("sealway-aead"),
            [(Some(5), "batch"), (Some(1), "cpu"), (Some(0), "low")]
        );
        assert_eq!(of("sealway-lab"), [(None, "cpu"), (None, "low"), (None, "batch")]);
    }

    #[test]
    fn the_first_sentence_is_taken() {
        for (text, want) in [
            (
                "//! Keys that wipe\n//! themselves. More.\n",
                Some("Keys that wipe themselves"),
            ),
            (
                "//! Reads [`Case`] and `x`:\n//!\n//! - one\n",
                Some("Reads Case and x"),
            ),
            ("use x;\n//! late\n", None),
            ("//!\n//! late\n", None),
        ] {
            assert_eq!(sentence(text).as_deref(), want, "{text}");
        }
    }
}
