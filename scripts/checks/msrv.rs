//! The oldest compiler: one statement for the workspace, older ones for the crates that others build on, and no dependency that
//! needs a newer one than those it is compiled into.

use super::workspace::{Package, Workspace};

type Version = (u32, u32, u32);

/// Crates that are of use without the rest of the workspace. They may state an older compiler.
const APART: [&str; 3] = ["sealway-aead", "sealway-bip324", "sealway-bip324-tokio"];

fn version(text: &str) -> Option<Version> {
    // A pre-release of a version counts as the version.
    let mut parts = text.split('-').next()?.split('.').map(|part| part.parse().ok());
    let found = (
        parts.next()??,
        parts.next().unwrap_or(Some(0))?,
        parts.next().unwrap_or(Some(0))?,
    );
    parts.next().is_none().then_some(found)
}

/// What the workspace states about the oldest compiler.
#[derive(Debug)]
pub struct Stated {
    /// The version for all of it.
    pub all: String,
    /// Crates that state an older one, with that.
    pub older: Vec<(String, String)>,
    /// What does not fit.
    pub findings: Vec<String>,
}

/// Compares what the crates state with each other and with what their dependencies do.
pub fn stated(workspace: &Workspace) -> Result<Stated, String> {
    let main = workspace.members.iter().find(|member| !is_apart(&member.name));
    let main = main.ok_or("the workspace has no crates")?;
    let all = main.rust_version.clone();
    let all = all.ok_or_else(|| format!("crate `{}` states no rust-version", main.name))?;
    let ours = version(&all).ok_or_else(|| format!("`{all}` is no version"))?;
    let (mut older, mut findings) = (Vec::new(), Vec::new());
    for member in &workspace.members {
        let stated = member.rust_version.as_deref();
        let is_older = stated.and_then(version).is_some_and(|stated| stated < ours);
        match stated {
            Some(stated) if stated == all => {}
            Some(stated) if is_older && is_apart(&member.name) => older.push((member.name.clone(), stated.to_string())),
            _ => findings.push(format!("crate `{}` does not state rust-version {all}", member.name)),
        }
    }
    findings.extend(
        workspace
            .others
            .iter()
            .filter_map(|other| too_new(other, &all, "the workspace")),
    );
    for (name, theirs) in &older {
        let used = workspace.members.iter().filter(|member| member.name == *name);
        let used = used.flat_map(|member| used_by(workspace, member));
        findings.extend(used.filter_map(|other| too_new(other, theirs, name)));
    }
    Ok(Stated { all, older, findings })
}

/// What is wrong with a package that is compiled into something of this version.
fn too_new(package: &Package, limit: &str, of: &str) -> Option<String> {
    let needs = package.rust_version.as_deref()?;
    let name = &package.name;
    match version(needs) {
        None => Some(format!("{name} states a rust-version that is none: `{needs}`")),
        needed if needed <= version(limit) => None,
        _ => Some(format!(
            "{name} {} needs Rust {needs}, newer than the {limit} of {of}",
            package.version
        )),
    }
}

/// All that a member is compiled with. Other members that it has for a feature are left out: whoever asks for that feature needs what
/// they need.
fn used_by<'a>(workspace: &'a Workspace, member: &'a Package) -> Vec<&'a Package> {
    let (mut found, mut next) = (Vec::<&Package>::new(), vec![member]);
    while let Some(package) = next.pop() {
        for id in &package.uses {
            let mut all = workspace.members.iter().chain(&workspace.others);
            let Some(used) = all.find(|other| other.id == *id) else {
                continue;
            };
            if !is_for_a_feature(workspace, package, used) && found.iter().all(|other| other.id != *id) {
                found.push(used);
                next.push(used);
            }
        }
    }
    found
}

/// True for a member of the workspace that only a feature of the other package needs.
fn is_for_a_feature(workspace: &Workspace, package: &Package, used: &Package) -> bool {
    let mut declared = package.dependencies.iter();
    workspace.members.iter().any(|member| member.id == used.id)
        && declared.any(|dependency| dependency.name == used.name && dependency.optional)
}

fn is_apart(name: &str) -> bool {
    APART.contains(&name)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::super::workspace::Dependency;
    use super::*;

    fn package(name: &str, rust: Option<&str>) -> Package {
        Package {
            id: name.into(),
            name: name.into(),
            rust_version: rust.map(str::to_string),
            ..Package::default()
        }
    }

    fn stated_by(members: Vec<Package>, others: Vec<Package>) -> Result<Stated, String> {
        stated(&Workspace { members, others })
    }

    #[test]
    fn versions_compare_by_number() {
        assert!(version("1.100") > version("1.95.3"));
        assert_eq!(version("1.95"), version("1.95.0"));
        assert_eq!(version("1.95.0-beta.2"), Some((1, 95, 0)));
        assert_eq!([version("one"), version("1.2.3.4"), version("")], [None; 3]);
    }

    #[test]
    fn newer_dependencies_and_other_statements_are_found() {
        let members = vec![package("a", Some("1.95")), package("b", Some("1.95"))];
        let others = vec![
            package("old", Some("1.60.0")),
            package("silent", None),
            package("new", Some("1.96")),
        ];
        let stated = stated_by(members, others).unwrap();
        assert_eq!((&*stated.all, stated.older.len()), ("1.95", 0));
        assert_eq!(stated.findings.len(), 1, "{stated:?}");
        assert!(stated.findings[0].contains("new"), "{stated:?}");
        let members = vec![
            package("a", Some("1.95")),
            package("b", Some("1.90")),
            package("c", None),
        ];
        assert_eq!(stated_by(members, vec![]).unwrap().findings.len(), 2);
        assert!(stated_by(vec![package("a", None)], vec![]).is_err());
        assert!(stated_by(vec![], vec![]).is_err());
    }

    #[test]
    fn crates_for_others_may_state_an_older_compiler_and_no_newer_one() {
        for (theirs, older, findings) in [
            (Some("1.89"), 1, 0),
            (Some("1.95"), 0, 0),
            (Some("1.96"), 0, 1),
            (Some("new"), 0, 1),
            (None, 0, 1),
        ] {
            let members = vec![package("sealway-aead", theirs), package("a", Some("1.95"))];
            let stated = stated_by(members, vec![]).unwrap();
            let counts = (stated.older.len(), stated.findings.len());
            assert_eq!((&*stated.all, counts), ("1.95", (older, findings)), "{stated:?}");
        }
    }
    fn using(mut package: Package, uses: &[&str], optional: bool) -> Package {
        package.uses = uses.iter().map(|id| id.to_string()).collect();
        let declared = uses.iter().map(|name| Dependency {
            name: name.to_string(),
            optional,
            ..Dependency::default()
        });
        package.dependencies = declared.collect();
        package
    }

    #[test]
    fn dependencies_of_a_crate_keep_to_its_own_version() {
        let findings = |crate_of_ours: Package, deep: &str| {
            let all = Some("1.95");
            let members = vec![
                using(package("a", all), &["deep"], false),
                crate_of_ours,
                package("gpu", all),
            ];
            // The two that use each other do not keep the check going for ever.
            let others = vec![
                using(package("near", Some("1.60")), &["deep"], false),
                using(package("deep", Some(deep)), &["near"], false),
            ];
            stated_by(members, others).unwrap().findings
        };
        let aead = |rust| package("sealway-aead", Some(rust));
        assert_eq!(findings(using(aead("1.94"), &["near"], false), "1.94"), [""; 0]);
        assert_eq!(findings(using(aead("1.95"), &["near"], false), "1.95"), [""; 0]);
        assert_eq!(findings(aead("1.94"), "1.95"), [""; 0], "it does not use it");
        for optional in [false, true] {
            let found = findings(using(aead("1.94"), &["near"], optional), "1.95");
            assert_eq!(found, ["deep  needs Rust 1.95, newer than the 1.94 of sealway-aead"]);
        }
        assert_eq!(findings(using(aead("1.94"), &["gpu"], false), "1.60").len(), 1);
        assert_eq!(findings(using(aead("1.94"), &["gpu"], true), "1.60"), [""; 0]);
    }
}
