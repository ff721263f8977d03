//! The workloads that a program knows.

use super::{Workload, batch};

/// Workloads that a program knows; those of a run of all in the order in which it takes them.
#[derive(Clone, Copy, Debug)]
pub struct Catalogue(pub &'static [&'static Workload]);

impl Catalogue {
    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &'static Workload> + use<> {
        self.0.iter().copied()
    }

    /// Those that a run of all takes.
    pub fn together(&self) -> impl Iterator<Item = &'static Workload> + use<> {
        self.iter().filter(|workload| !workload.alone)
    }

    /// The workload called `name`.
    pub fn named(&self, name: &str) -> Option<&'static Workload> {
        self.iter().find(|workload| workload.name == name)
    }

    /// Names of all peers that any workload knows, each once.
    pub fn peers(&self) -> Vec<&'static str> {
        self.once(|workload| workload.peers)
    }

    /// Names of all programs that any workload looks for, each once.
    pub fn programs(&self) -> Vec<&'static str> {
        self.once(|workload| workload.programs)
    }

    fn once(&self, names: fn(&Workload) -> &'static [&'static str]) -> Vec<&'static str> {
        let mut once: Vec<&'static str> = self.iter().flat_map(names).copied().collect();
        batch::keep_first(&mut once);
        once
    }

    /// Names of the subjects that show what is possible without a peer; of several workloads with the same one it comes
    /// several times.
    pub fn controls(&self) -> impl Iterator<Item = &'static str> + use<> {
        let controls = self.iter().map(|workload| workload.lens.control);
        controls.filter(|control| !control.is_empty())
    }
}
