//! Files that no module names: nothing compiles them, so nothing says that they are wrong. A merge leaves them easily.

use std::fs;
use std::path::{Path, PathBuf};

/// The files below the folder of a crate's root that belong to no module of it, code for tests included.
pub fn findings(target_root: &Path, root: &Path) -> Result<Vec<String>, String> {
    let Some(folder) = target_root.parent() else {
        return Ok(Vec::new());
    };
    let mut files = Vec::new();
    read(folder, &mut files)?;
    let is_root = |file: &Path| file.parent() == Some(folder) && ["lib", "main"].contains(&stem(file));
    let orphan = |file: &&(PathBuf, String)| {
        let (file, name) = (&file.0, stem(&file.0));
        // The module that a file is in: its folder's name, or the root for those beside it.
        let above = |parent: &Path| match file.parent() {
            Some(within) if within == folder => is_root(parent),
            Some(within) => parent == within.with_extension("rs") || parent == within.join("mod.rs"),
            None => false,
        };
        let declared = format!("mod {name};");
        let by_path = format!("{name}.rs\"");
        let named = |(parent, text): &(PathBuf, String)| {
            above(parent) && text.contains(&declared) || parent != file && text.contains(&by_path)
        };
        name != "mod" && !is_root(file) && !files.iter().any(named)
    };
    let finding = |(file, _): &(PathBuf, String)| {
        let file = file.strip_prefix(root).unwrap_or(file).display();
        format!("{file}: no module names this file, so it is not compiled; name it or remove it")
    };
    Ok(files.iter().filter(orphan).map(finding).collect())
}

fn stem(file: &Path) -> &str {
    file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default()
}

/// Every Rust file in a folder, with its text.
fn read(folder: &Path, files: &mut Vec<(PathBuf, String)>) -> Result<(), String> {
    let failed = |path: &Path| {
        let path = path.display().to_string();
        move |error| format!("cannot read {path}: {error}")
    };
    for entry in fs::read_dir(folder).map_err(failed(folder))? {
        let path = entry.map_err(failed(folder))?.path();
        if path.is_dir() {
            read(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).map_err(failed(&path))?;
            files.push((path, text));
        }
    }
    files.sort();
    Ok(())
}
