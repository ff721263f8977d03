//! Floors of the crates: a crate may use only crates below it.

use super::workspace::{Dependency, Package, Workspace};

/// Every crate of the workspace with its floor. ARCHITECTURE.md says what each floor is for.
const FLOORS: &[(&str, u8)] = &[
    ("sealway-aead", 0),
    ("sealway-cuda", 1),
    ("sealway-bip324", 2),
    ("sealway-route", 2),
    ("sealway-session", 2),
    ("sealway-tls", 2),
    ("sealway-v2ray", 2),
    ("sealway-bip324-tokio", 3),
    ("sealway-ledger", 3),
    ("sealway-net", 3),
    ("sealway-tls-tokio", 3),
    ("sealway-bridge", 4),
    ("sealway-drop", 4),
    ("sealway-proxy", 4),
    ("sealway-api", 5),
    ("sealway-drop-mount", 5),
    ("sealway-drop-relay", 5),
    ("sealway-drop-transfer", 5),
    ("sealway-drop-lan", 6),
    ("sealway-drop-map", 6),
    ("sealway-drop-localsend", 6),
    ("sealway-drop-web", 6),
    ("sealway-lab", 6),
    ("sealway", 7),
];

/// The floor whose crates do no I/O and know no time.
pub const NO_IO: u8 = 2;

/// The floor of a crate, if it has one.
pub fn floor(name: &str) -> Option<u8> {
    FLOORS.iter().find(|(known, _)| *known == name).map(|(_, floor)| *floor)
}

/// Edges against the floors, and crates that have none. Development and build dependencies count like any other.
pub fn findings(workspace: &Workspace) -> Vec<String> {
    let mut findings = Vec::new();
    for package in &workspace.members {
        let Some(own) = floor(&package.name) else {
            findings.push(format!(
                "crate `{}` has no floor; add it to FLOORS in scripts/checks/layers.rs and to ARCHITECTURE.md",
                package.name
            ));
            continue;
        };
        // What a crate asks of itself for its tests, such as a feature, is no edge.
        for dependency in package.dependencies.iter().filter(|d| d.name != package.name) {
            findings.extend(edge(package, own, dependency, workspace));
        }
    }
    findings
}

fn edge(package: &Package, own: u8, dependency: &Dependency, workspace: &Workspace) -> Option<String> {
    let Dependency { name, kind, path, .. } = dependency;
    let member = workspace.members.iter().any(|m| m.name == *name);
    match floor(name) {
        Some(other) if other < own => None,
        Some(other) => Some(format!(
            "`{}` (floor {own}) may not use `{name}` (floor {other}), a {kind} dependency: only lower floors may be used",
            package.name
        )),
        // A member without a floor is reported as such; its edges say nothing yet.
        None if member => None,
        None => path.as_ref().map(|path| {
            format!(
                "`{}` uses `{name}` at {}, which is no member of the workspace",
                package.name,
                path.display()
            )
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, uses: &[(&str, &str)]) -> Package {
        let dependencies = uses.iter().map(|(name, kind)| Dependency {
            name: name.to_string(),
            kind: kind.to_string(),
            path: name.starts_with("sealway").then(|| name.into()),
            ..Dependency::default()
        });
        Package {
            name: name.into(),
            dependencies: dependencies.collect(),
            ..Package::default()
        }
    }

    fn check(members: Vec<Package>) -> Vec<String> {
        findings(&Workspace {
            members,
            others: Vec::new(),
        })
    }

    #[test]
    fn lower_floors_may_be_used() {
        let lab = package(
            "sealway-lab",
            &[
                ("sealway-aead", "normal"),
                ("serde", "normal"),
                ("sealway-proxy", "dev"),
            ],
        );
        assert_eq!(
            check(vec![lab, package("sealway-proxy", &[]), package("sealway-aead", &[])]),
            [""; 0]
        );
    }

    #[test]
    fn higher_and_equal_floors_may_not() {
        for (user, used, kind) in [
            ("sealway-aead", "sealway-lab", "normal"),
            ("sealway-aead", "sealway-lab", "dev"),
            ("sealway-session", "sealway-v2ray", "normal"),
            ("sealway-lab", "sealway", "build"),
        ] {
            let found = check(vec![package(user, &[(used, kind)]), package(used, &[])]);
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(
                found[0].contains(user) && found[0].contains(used) && found[0].contains(kind),
                "{found:?}"
            );
        }
    }

    #[test]
    fn an_unknown_crate_and_a_stray_path_are_named() {
        assert!(check(vec![package("sealway-extra", &[])])[0].contains("sealway-extra"));
        assert!(check(vec![package("sealway", &[("sealway-stray", "normal")])])[0].contains("sealway-stray"));
    }
}
