//! The oldest compiler: one statement for the workspace, and no dependency that needs a newer one.

use super::workspace::Workspace;

type Version = (u32, u32, u32);

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

/// The stated version, and the packages that do not fit it.
pub fn findings(workspace: &Workspace) -> Result<(String, Vec<String>), String> {
    let first = &workspace.members[0];
    let stated = first
        .rust_version
        .clone()
        .ok_or_else(|| format!("crate `{}` states no rust-version", first.name))?;
    let ours = version(&stated).ok_or_else(|| format!("`{stated}` is no version"))?;
    let mut findings = Vec::new();
    for member in &workspace.members {
        if member.rust_version.as_ref() != Some(&stated) {
            findings.push(format!("crate `{}` does not state rust-version {stated}", member.name));
        }
    }
    for other in &workspace.others {
        let Some(needs) = &other.rust_version else { continue };
        match version(needs) {
            Some(needed) if needed <= ours => {}
            Some(_) => {
                let (name, version) = (&other.name, &other.version);
                findings.push(format!("{name} {version} needs Rust {needs}, newer than our {stated}"));
            }
            None => findings.push(format!("{} states a rust-version that is none: `{needs}`", other.name)),
        }
    }
    Ok((stated, findings))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::super::workspace::Package;
    use super::*;

    fn package(name: &str, rust: Option<&str>) -> Package {
        Package {
            name: name.into(),
            rust_version: rust.map(str::to_string),
            ..Package::default()
        }
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
        let (ours, found) = findings(&Workspace { members, others }).unwrap();
        assert_eq!(ours, "1.95");
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("new"), "{found:?}");
        let members = vec![
            package("a", Some("1.95")),
            package("b", Some("1.90")),
            package("c", None),
        ];
        assert_eq!(
            findings(&Workspace {
                members,
                others: vec![]
            })
            .unwrap()
            .1
            .len(),
            2
        );
        assert!(
            findings(&Workspace {
                members: vec![package("a", None)],
                others: vec![]
            })
            .is_err()
        );
    }
}
