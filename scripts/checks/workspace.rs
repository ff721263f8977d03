//! The workspace as Cargo sees it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::json::Json;

/// How far to look.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Depth {
    /// Members and their declared dependencies: reads manifests only.
    Members,
    /// Also every package of the lock file: needs their sources.
    Everything,
}

/// Members and, where asked for, all other packages.
#[derive(Debug, Default)]
pub struct Workspace {
    pub members: Vec<Package>,
    pub others: Vec<Package>,
}

/// One package.
#[derive(Debug, Default)]
pub struct Package {
    /// What Cargo tells it apart by.
    pub id: String,
    pub name: String,
    pub version: String,
    pub rust_version: Option<String>,
    pub dependencies: Vec<Dependency>,
    /// Ids of the packages that it is compiled with: tests of its own left out, all targets taken in.
    pub uses: Vec<String>,
    pub targets: Vec<Target>,
}

/// A declared dependency, whatever its kind, target or feature.
#[derive(Debug, Default)]
pub struct Dependency {
    pub name: String,
    /// `normal`, `dev` or `build`.
    pub kind: String,
    /// Folder of a path dependency.
    pub path: Option<PathBuf>,
    /// Only a feature needs it.
    pub optional: bool,
}

/// Something that Cargo compiles.
#[derive(Debug)]
pub struct Target {
    pub kind: TargetKind,
    pub root: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TargetKind {
    Library,
    Binary,
    BuildScript,
    /// Integration tests, benches and examples.
    Test,
}

/// Asks Cargo about the workspace in `root`.
pub fn read(root: &Path, depth: Depth) -> Result<Workspace, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .args(["metadata", "--format-version", "1", "--manifest-path"])
        .arg(root.join("Cargo.toml"));
    match depth {
        Depth::Members => command.args(["--no-deps", "--offline"]),
        Depth::Everything => command.arg("--locked"),
    };
    let output = command.output().map_err(|e| format!("cannot start cargo: {e}"))?;
    if !output.status.success() {
        return Err(format!(
            "cargo metadata failed:\n{}",
            String::from_utf8_lossy(&output.stderr).trim_end()
        ));
    }
    let text = String::from_utf8(output.stdout).map_err(|_| "cargo metadata did not print UTF-8".to_string())?;
    from_metadata(&Json::parse(&text)?)
}

fn from_metadata(metadata: &Json) -> Result<Workspace, String> {
    let members: Vec<&str> = metadata
        .get("workspace_members")
        .items()
        .iter()
        .filter_map(Json::text)
        .collect();
    let mut uses = uses(metadata);
    let mut workspace = Workspace::default();
    for entry in metadata.get("packages").items() {
        let mut package = package(entry)?;
        package.uses = uses.remove(&*package.id).unwrap_or_default();
        if members.contains(&&*package.id) {
            workspace.members.push(package);
        } else {
            workspace.others.push(package);
        }
    }
    if workspace.members.is_empty() {
        return Err("cargo metadata names no workspace member".into());
    }
    Ok(workspace)
}

/// What each package is compiled with, by ids. Nothing is known of that without the lock file.
fn uses(metadata: &Json) -> HashMap<&str, Vec<String>> {
    let nodes = metadata.get("resolve").get("nodes").items().iter();
    let of_node = |node: &Json| {
        let not_for_tests = |of: &&Json| {
            of.get("dep_kinds")
                .items()
                .iter()
                .any(|kind| kind.get("kind").text() != Some("dev"))
        };
        let used = node.get("deps").items().iter().filter(not_for_tests);
        used.filter_map(|of| of.get("pkg").text().map(str::to_string)).collect()
    };
    nodes
        .filter_map(|node| Some((node.get("id").text()?, of_node(node))))
        .collect()
}

fn package(entry: &Json) -> Result<Package, String> {
    let name = entry.get("name").text().ok_or("a package without a name")?.to_string();
    let dependencies = entry.get("dependencies").items().iter().map(|d| Dependency {
        name: d.get("name").text().unwrap_or_default().to_string(),
        kind: d.get("kind").text().unwrap_or("normal").to_string(),
        path: d.get("path").text().map(PathBuf::from),
        optional: *d.get("optional") == Json::Bool(true),
    });
    let targets = entry.get("targets").items().iter().filter_map(|target| {
        let kind = match target.get("kind").items().first()?.text()? {
            "bin" => TargetKind::Binary,
            "custom-build" => TargetKind::BuildScript,
            "test" | "bench" | "example" => TargetKind::Test,
            _ => TargetKind::Library,
        };
        Some(Target {
            kind,
            root: PathBuf::from(target.get("src_path").text()?),
        })
    });
    Ok(Package {
        id: entry.get("id").text().unwrap_or_default().to_string(),
        version: entry.get("version").text().unwrap_or_default().to_string(),
        rust_version: entry.get("rust_version").text().map(str::to_string),
        dependencies: dependencies.collect(),
        uses: Vec::new(),
        targets: targets.collect(),
        name,
    })
}
