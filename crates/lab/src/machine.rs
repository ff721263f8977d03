//! What the machine is: everything that may explain a figure and can be read without a privilege.
//!
//! Facts are read below a root folder (`/` for this machine, a made-up tree in tests). A fact that cannot be read is
//! absent. Never captured: host and user names, addresses, serial numbers, environment variables other than our own
//! switch, and paths.

mod build;
mod cpu;
mod host;
mod kernel;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::format::{count, hex};
use crate::measure::{ClockFacts, WarningCode, clock};
use crate::result::{Machine, Warning};

/// Captures the machine below `root`.
///
/// On Linux nearly everything is read from files; elsewhere the result has architecture, kernel, CPU count and build
/// facts only. `flags` stays empty: the engine knows best what it can use.
pub fn capture(root: &Path) -> Machine {
    let mut tree = Tree::new(root);
    let cpu = cpu::capture(&mut tree);
    let release = kernel::capture(&mut tree);
    let hypervisor = host::capture(&mut tree);
    build::capture(&mut tree);
    let memory = tree
        .text("proc/meminfo")
        .and_then(|text| crate::measure::parse::meminfo(&text, "MemTotal"));
    let key = key(&[
        &cpu.model,
        &cpu.microcode,
        &cpu.cores.to_string(),
        major_minor(&release),
        &hypervisor,
    ]);
    Machine {
        key,
        cpu: cpu.model,
        flags: Vec::new(),
        cores: cpu.cores,
        kernel: release,
        memory: memory.unwrap_or(0),
        arch: std::env::consts::ARCH.to_owned(),
        facts: tree.facts,
    }
}

/// What a reader must know about a machine before any window: shared CPUs, a quota, the clock, clock policy.
///
/// `cpus` is the number of CPUs usable at once. What windows show comes from the runner instead.
pub fn warnings(machine: &Machine, clock_facts: &ClockFacts, cpus: u32) -> Vec<Warning> {
    let mut found = Vec::new();
    if cpus < 4 {
        let text = format!("Subjects, lab and system share {}.", count(cpus as usize, "CPU"));
        found.push(WarningCode::SharedCpu.warn("machine", &text));
    }
    let quota = machine.facts.get("cgroup.cpus").and_then(Value::as_f64);
    if let Some(limit) = quota.filter(|limit| *limit < f64::from(machine.cores)) {
        let text = format!("A quota allows {limit:.2} of {} CPUs.", machine.cores);
        found.push(WarningCode::Quota.warn("machine", &text));
    }
    found.extend(clock::warnings(clock_facts, machine.text("kernel.clocksource")));
    if let Some(name) = machine.text("cpu.governor").filter(|name| *name != "performance") {
        found.push(WarningCode::Governor.warn("machine", &format!("The governor is {name}.")));
    }
    if machine.text("host.power") == Some("battery") {
        found.push(WarningCode::Battery.warn("machine", "The machine runs on battery."));
    }
    found
}

/// Key of a machine: the first 16 hex digits of SHA-256 over the parts, each ended by a line break.
///
/// The parts are CPU model, microcode, CPUs, kernel `major.minor` and hypervisor. Readings that wobble between boots
/// (clock speed, free memory) are no part of it, or the history of one machine would split.
fn key(parts: &[&str]) -> String {
    let lines: String = parts.iter().map(|part| format!("{part}\n")).collect();
    hex(&Sha256::digest(lines)[..8])
}

/// `6.1` of `6.1.0-18-amd64`; the whole text where there are no two numbers.
fn major_minor(release: &str) -> &str {
    let mut dots = release.match_indices(['.', '-']);
    match (dots.next(), dots.next()) {
        (Some((_, ".")), Some((end, _))) => &release[..end],
        _ => release,
    }
}

/// The file tree that is read, and the facts found so far.
struct Tree<'a> {
    root: &'a Path,
    facts: BTreeMap<String, Value>,
}

impl<'a> Tree<'a> {
    fn new(root: &'a Path) -> Self {
        Self {
            root,
            facts: BTreeMap::new(),
        }
    }

    /// True when the tree is this machine itself, so that system calls tell about it too.
    fn is_live(&self) -> bool {
        self.root == Path::new("/")
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// Trimmed text of a file; `None` if it cannot be read, is empty, or is not text.
    fn text(&self, path: &str) -> Option<String> {
        let text = std::fs::read_to_string(self.path(path)).ok()?;
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    fn number(&self, path: &str) -> Option<u64> {
        self.text(path)?.parse().ok()
    }

    /// Sorted names in a folder.
    fn names(&self, path: &str) -> Vec<String> {
        let Ok(folder) = std::fs::read_dir(self.path(path)) else {
            return Vec::new();
        };
        let mut names: Vec<String> = folder
            .filter_map(Result::ok)
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        names.sort();
        names
    }

    /// Notes a fact, if there is one.
    fn note(&mut self, name: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.facts.insert(name.to_owned(), value.into());
        }
    }

    /// Notes the text of a file, in one line with single spaces.
    fn note_text(&mut self, name: &str, path: &str) {
        let text = self
            .text(path)
            .map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
        self.note(name, text);
    }

    /// Notes the number in a file.
    fn note_number(&mut self, name: &str, path: &str) {
        let number = self.number(path);
        self.note(name, number);
    }
}

#[cfg(test)]
#[path = "machine/tests.rs"]
mod tests;
