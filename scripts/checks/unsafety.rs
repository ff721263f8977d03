//! `unsafe` stands in named modules only, and each crate's root says so to the compiler.

use std::path::Path;

use super::source::{Crate, Place};
use super::workspace::{Package, Target, TargetKind};

/// The one module of a crate that may hold `unsafe`, for the crates that have one.
const PLACES: [(&str, &str); 2] = [("sealway-aead", "low"), ("sealway-cuda", "driver")];

/// Where `unsafe` or its lint levels stand against the rule, in code that is not only compiled for tests.
pub fn findings(package: &Package, target: &Target, krate: &Crate, root: &Path) -> Vec<String> {
    let home = (target.kind == TargetKind::Library)
        .then(|| {
            PLACES
                .iter()
                .find(|(name, _)| *name == package.name)
                .map(|(_, module)| *module)
        })
        .flatten();
    let at = |place: &Place| {
        format!(
            "{}:{}",
            place.file.strip_prefix(root).unwrap_or(&place.file).display(),
            place.line
        )
    };
    let at_home = |module: &[String]| home.is_some() && module.first().map(String::as_str) == home;
    let rule = match home {
        Some(module) => format!("in crate `{}` only module `{module}` may", package.name),
        None => format!("nothing in crate `{}` may", package.name),
    };
    let mut findings = Vec::new();
    for place in krate.unsafe_code.iter().filter(|place| !at_home(&place.module)) {
        findings.push(format!("{}: `unsafe`: {rule} hold it", at(place)));
    }
    let wanted = if home.is_some() { "deny" } else { "forbid" };
    let at_root = |level: &str| {
        krate
            .lints
            .iter()
            .any(|l| l.inner && l.module.is_empty() && l.level == level)
    };
    if !at_root(wanted) && target.kind != TargetKind::BuildScript {
        let file = target.root.strip_prefix(root).unwrap_or(&target.root).display();
        findings.push(format!("{file}: the crate's root lacks `#![{wanted}(unsafe_code)]`"));
    }
    for lint in krate
        .lints
        .iter()
        .filter(|l| matches!(l.level.as_str(), "allow" | "expect" | "warn" | "cfg_attr"))
    {
        if !at_home(&lint.module) {
            findings.push(format!(
                "{}: a weaker level of `unsafe_code`: {rule} have it",
                at(&lint.place)
            ));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::source::Lint;
    use super::*;

    fn lint(level: &str, module: &[&str], inner: bool) -> Lint {
        let module: Vec<String> = module.iter().map(|m| m.to_string()).collect();
        Lint {
            level: level.into(),
            place: place(&[]),
            module,
            inner,
        }
    }

    fn place(module: &[&str]) -> Place {
        Place {
            module: module.iter().map(|m| m.to_string()).collect(),
            file: "src/a.rs".into(),
            line: 3,
        }
    }

    fn check(name: &str, kind: TargetKind, krate: &Crate) -> Vec<String> {
        let package = Package {
            name: name.into(),
            ..Package::default()
        };
        findings(
            &package,
            &Target {
                kind,
                root: "src/lib.rs".into(),
            },
            krate,
            Path::new(""),
        )
    }

    #[test]
    fn each_crate_has_its_rule() {
        let forbids = Crate {
            lints: vec![lint("forbid", &[], true)],
            ..Crate::default()
        };
        assert_eq!(check("sealway-lab", TargetKind::Library, &forbids), [""; 0]);
        assert_eq!(check("sealway-aead", TargetKind::Library, &forbids).len(), 1);
        let lints = vec![lint("deny", &[], true), lint("allow", &["low"], false)];
        let denies = Crate {
            lints,
            unsafe_code: vec![place(&["low", "avx2"])],
            ..Crate::default()
        };
        assert_eq!(check("sealway-aead", TargetKind::Library, &denies), [""; 0]);
        assert_eq!(check("sealway-lab", TargetKind::Library, &denies).len(), 3);
    }

    #[test]
    fn unsafe_elsewhere_is_found() {
        let lints = vec![lint("deny", &[], true), lint("allow", &["key"], false)];
        let krate = Crate {
            lints,
            unsafe_code: vec![place(&["key"]), place(&[])],
            ..Crate::default()
        };
        let found = check("sealway-aead", TargetKind::Library, &krate);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].starts_with("src/a.rs:3: `unsafe`"), "{found:?}");
    }

    #[test]
    fn a_binary_beside_a_library_has_no_home_for_unsafe() {
        let krate = Crate {
            lints: vec![lint("forbid", &[], true)],
            ..Crate::default()
        };
        assert_eq!(check("sealway-aead", TargetKind::Binary, &krate), [""; 0]);
        assert_eq!(check("sealway", TargetKind::Binary, &Crate::default()).len(), 1);
        assert_eq!(check("sealway", TargetKind::BuildScript, &Crate::default()), [""; 0]);
    }
}
