//! Circles of modules: of the modules that stand side by side in one place, none may need, through others, what needs it. So
//! each can be read, tested and moved with nothing but what is below it.
//!
//! A module and what is inside it count as one; what a module and its parent use of each other does not count.

use std::collections::{BTreeMap, BTreeSet};

use super::source::Crate;

/// Kernels of one instruction set belong together: what stands below this module of a crate is left out.
const KERNELS: &str = "low";

/// Deep enough for names that are passed on from module to module.
const PASSES: usize = 8;

/// What uses what, of the modules in one place: the place, and for each module those that it uses.
type Edges = BTreeMap<Vec<String>, BTreeMap<String, BTreeSet<String>>>;

/// The modules of a crate that stand in circles.
pub fn findings(package: &str, krate: &Crate) -> Vec<String> {
    let mut findings = Vec::new();
    for (place, edges) in &edges(krate) {
        for circle in circles(edges) {
            let names: Vec<&str> = circle.iter().map(String::as_str).collect();
            let place = [&["crate".to_string()], place.as_slice()].concat().join("::");
            findings.push(format!(
                "`{package}`: modules of `{place}` use each other in a circle: {}",
                names.join(", ")
            ));
        }
    }
    findings
}

fn edges(krate: &Crate) -> Edges {
    let mut edges = Edges::new();
    let relative = krate.relative.iter().filter(|found| {
        // Of the paths that begin anywhere, those count that begin with a module or a name of where they stand.
        let here = found.place.module.as_slice();
        found.path.get(here.len()).is_some_and(|first| {
            let child = [here, std::slice::from_ref(first)].concat();
            is_module(krate, &child) || import(krate, here, first).is_some()
        })
    });
    for found in krate.uses.iter().chain(relative) {
        if found.place.module.first().is_some_and(|first| first == KERNELS) {
            continue;
        }
        let (user, used) = (&found.place.module, home(krate, &found.path, PASSES));
        let together = user.iter().zip(&used).take_while(|(a, b)| a == b).count();
        if let (Some(user), Some(other)) = (user.get(together), used.get(together)) {
            let place = edges.entry(used[..together].to_vec()).or_default();
            place.entry(user.clone()).or_default().insert(other.clone());
        }
    }
    edges
}

fn is_module(krate: &Crate, path: &[String]) -> bool {
    krate.modules.iter().any(|(known, _)| known == path)
}

fn import<'a>(krate: &'a Crate, module: &[String], name: &str) -> Option<&'a [String]> {
    let mut imports = krate.imports.iter();
    let found = imports.find(|(user, known, _)| user == module && known == name);
    found.map(|(_, _, behind)| behind.as_slice())
}

/// The module that defines what `path` names.
fn home(krate: &Crate, path: &[String], passes: usize) -> Vec<String> {
    let mut here: Vec<String> = Vec::new();
    for (place, part) in path.iter().enumerate() {
        let inner = [here.as_slice(), std::slice::from_ref(part)].concat();
        if is_module(krate, &inner) {
            here = inner;
            continue;
        }
        let passed_on = import(krate, &here, part).filter(|behind| *behind != inner && passes > 0);
        if let Some(behind) = passed_on {
            let rest = path.get(place + 1..).unwrap_or_default();
            return home(krate, &[behind, rest].concat(), passes - 1);
        }
        break;
    }
    here
}

/// Groups of modules of which each reaches all others of its group.
fn circles(edges: &BTreeMap<String, BTreeSet<String>>) -> Vec<BTreeSet<String>> {
    let reach = |from: &String| {
        let mut seen: BTreeSet<&String> = BTreeSet::new();
        let mut open: Vec<&String> = edges.get(from).into_iter().flatten().collect();
        while let Some(module) = open.pop() {
            if seen.insert(module) {
                open.extend(edges.get(module).into_iter().flatten());
            }
        }
        seen
    };
    let reached: BTreeMap<&String, BTreeSet<&String>> = edges.keys().map(|module| (module, reach(module))).collect();
    let mut found: Vec<BTreeSet<String>> = Vec::new();
    for (module, others) in &reached {
        if !others.contains(module) || found.iter().any(|circle| circle.contains(*module)) {
            continue;
        }
        let back = |other: &&&String| reached.get(**other).is_some_and(|reached| reached.contains(module));
        found.push(others.iter().filter(back).map(|other| (*other).clone()).collect());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(edges: &[(&str, &str)]) -> Vec<Vec<String>> {
        let mut map: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (user, used) in edges {
            map.entry(user.to_string()).or_default().insert(used.to_string());
        }
        let found = circles(&map);
        found.into_iter().map(|circle| circle.into_iter().collect()).collect()
    }

    #[test]
    fn circles_are_found_and_trees_are_not() {
        assert_eq!(of(&[("a", "b"), ("b", "c"), ("a", "c")]), [[""; 0]; 0]);
        assert_eq!(of(&[("a", "b"), ("b", "a"), ("c", "a")]), [["a", "b"]]);
        assert_eq!(
            of(&[("a", "b"), ("b", "c"), ("c", "a"), ("x", "y"), ("y", "x"), ("c", "x")]),
            [vec!["a", "b", "c"], vec!["x", "y"]]
        );
    }

    /// Modules `a`, `b` and `b::inner`; `a` uses `b::inner` by a name that `b` passes on, and `b::inner` uses `a`.
    #[test]
    fn names_that_are_passed_on_count_where_they_are_defined() {
        let words = |text: &str| text.split("::").map(str::to_string).collect::<Vec<_>>();
        let place = |module: &str| super::super::source::Place {
            module: words(module),
            file: Default::default(),
            line: 1,
        };
        let uses = [
            ("a", "b::Name"),
            ("b::inner", "a::f"),
            ("b::inner", "b::helper"),
            ("b", "b::inner::Name"),
        ];
        let krate = Crate {
            modules: ["a", "b", "b::inner"]
                .map(|module| (words(module), Default::default()))
                .into(),
            imports: vec![(words("b"), "Name".into(), words("b::inner::Name"))],
            uses: uses
                .iter()
                .map(|(user, path)| super::super::source::Use {
                    place: place(user),
                    path: words(path),
                })
                .collect(),
            ..Crate::default()
        };
        let found = findings("x", &krate);
        assert_eq!(found, ["`x`: modules of `crate` use each other in a circle: a, b"]);
    }
}
