//! Threads that stay on CPUs of the user's choice, and the memory nodes that these belong to.
//!
//! Left alone, the system moves threads as it likes. One that stays keeps its caches, and on a machine with several nodes its
//! memory: a page lies in the node of the thread that writes to it first, and arenas and slabs are first written to by the
//! threads that work with them.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use rustix::thread::CpuSet;

use crate::measure::parse::list;
use crate::measure::place;
use crate::run::CellError;

/// Which CPUs threads are to stay on. Made from text: `auto`, or numbers and ranges such as `0,2-3`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Pin {
    /// All that this process may use, node by node.
    Auto,
    /// These, in this order.
    Cpus(Vec<usize>),
}

/// Why threads cannot be kept where they were asked to stay.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum PinError {
    /// It is neither `auto` nor a list of CPUs.
    Text,
    /// This process may not use a CPU, or there is none with this number.
    NotAllowed {
        /// Its number.
        cpu: usize,
        /// Those that this process may use.
        allowed: Vec<usize>,
    },
    /// The system does not tell which CPUs this process may use.
    Unknown(rustix::io::Errno),
}

impl fmt::Display for PinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PinError::Text => write!(
                f,
                "give auto, or CPUs as numbers below {} and ranges, such as 0,2-3",
                CpuSet::MAX_CPU
            ),
            PinError::NotAllowed { cpu, allowed } => {
                let allowed = ranges(allowed);
                write!(f, "there is no CPU {cpu} for this process: it may use {allowed}")
            }
            PinError::Unknown(error) => write!(f, "the system does not say which CPUs this process may use: {error}"),
        }
    }
}

impl std::error::Error for PinError {}

impl FromStr for Pin {
    type Err = PinError;

    fn from_str(text: &str) -> Result<Self, PinError> {
        if text == "auto" {
            return Ok(Pin::Auto);
        }
        list(text, CpuSet::MAX_CPU).map(Pin::Cpus).ok_or(PinError::Text)
    }
}

/// A memory node and its CPUs.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Node {
    number: usize,
    cpus: Vec<usize>,
}

/// The memory nodes of the machine whose files lie below `root`; none where the system does not tell.
fn nodes(root: &Path) -> Vec<Node> {
    let folder = root.join("sys/devices/system/node");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).ok();
    let numbers = read("online").and_then(|text| list(text.trim(), CpuSet::MAX_CPU));
    let node = |number| {
        let cpus = read(&format!("node{number}/cpulist"))?;
        let cpus = list(cpus.trim(), CpuSet::MAX_CPU).unwrap_or_default();
        Some(Node { number, cpus })
    };
    numbers.unwrap_or_default().into_iter().filter_map(node).collect()
}

/// CPUs that threads take in turn: the first thread the first of them, and again from the start when all are taken.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Places {
    cpus: Vec<usize>,
    nodes: Vec<Node>,
}

impl Places {
    /// The CPUs that were asked for, on this machine.
    ///
    /// # Errors
    /// [`PinError::NotAllowed`] for one that this process may not use.
    pub fn find(pin: &Pin) -> Result<Places, PinError> {
        Places::among(pin, place::allowed().map_err(PinError::Unknown)?, nodes(Path::new("/")))
    }

    fn among(pin: &Pin, allowed: Vec<usize>, nodes: Vec<Node>) -> Result<Places, PinError> {
        let cpus = match pin {
            Pin::Cpus(cpus) => cpus.clone(),
            Pin::Auto => {
                let mut cpus = allowed.clone();
                // Those of no node come last.
                cpus.sort_by_key(|cpu| {
                    nodes
                        .iter()
                        .position(|node| node.cpus.contains(cpu))
                        .unwrap_or(nodes.len())
                });
                cpus
            }
        };
        match cpus.iter().find(|cpu| !allowed.contains(cpu)) {
            Some(&cpu) => Err(PinError::NotAllowed { cpu, allowed }),
            None => Ok(Places { cpus, nodes }),
        }
    }

    /// Keeps the calling thread, which is number `thread`, on its CPU.
    pub(crate) fn keep(&self, thread: usize) -> Result<(), CellError> {
        let Some(&cpu) = self.cpus.get(thread % self.cpus.len().max(1)) else {
            return Ok(());
        };
        place::stay(&[cpu])
            .map_err(|error| CellError::failed(format_args!("a thread could not be kept on CPU {cpu}: {error}")))
    }

    /// What figures with these places are of, for the hash of their definition.
    pub(crate) fn definition(&self) -> String {
        let cpus: Vec<String> = self.cpus.iter().map(usize::to_string).collect();
        format!("cpus={}", cpus.join(","))
    }
}

/// As [`Places::keep`], where places were asked for.
pub(crate) fn keep(places: Option<&Places>, thread: usize) -> Result<(), CellError> {
    places.map_or(Ok(()), |places| places.keep(thread))
}

impl fmt::Display for Places {
    /// `threads stay on the CPUs 0-1 in turn; the machine has one memory node`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "threads stay on the CPUs {} in turn; ", ranges(&self.cpus))?;
        match self.nodes.as_slice() {
            [] => f.write_str("the system tells of no memory nodes"),
            [_] => f.write_str("the machine has one memory node"),
            nodes => {
                write!(f, "the machine has {} memory nodes: ", nodes.len())?;
                let words = nodes.iter().map(|node| match node.cpus.as_slice() {
                    [] => format!("{} without CPUs", node.number),
                    cpus => format!("{} with {}", node.number, ranges(cpus)),
                });
                f.write_str(&words.collect::<Vec<_>>().join(", "))
            }
        }
    }
}

/// `0-3,8`.
fn ranges(cpus: &[usize]) -> String {
    let stretches = cpus.chunk_by(|a, b| *b == a + 1).map(|stretch| match stretch {
        [first, .., last] => format!("{first}-{last}"),
        one => one.iter().map(usize::to_string).collect(),
    });
    stretches.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn lists_are_numbers_and_ranges() {
        assert_eq!("auto".parse(), Ok(Pin::Auto));
        assert_eq!("3,0-1".parse(), Ok(Pin::Cpus(vec![3, 0, 1])));
        for text in [
            "",
            "a",
            "-1",
            "1-",
            "2-1",
            "0,,1",
            "1024",
            "0-1024",
            "99999999999999999999",
            "+1",
        ] {
            assert_eq!(text.parse::<Pin>(), Err(PinError::Text), "{text}");
        }
        assert!(PinError::Text.to_string().contains("below 1024"));
    }

    #[test]
    fn a_thread_stays_where_it_was_put() {
        let may = place::allowed().unwrap();
        let places = Places::find(&Pin::Auto).unwrap();
        std::thread::spawn(move || {
            // More threads than CPUs, so that they start again with the first.
            for thread in 0..places.cpus.len() + 1 {
                places.keep(thread).unwrap();
                assert_eq!(place::allowed().unwrap(), [places.cpus[thread % places.cpus.len()]]);
            }
        })
        .join()
        .unwrap();
        assert_eq!(place::allowed().unwrap(), may, "other threads are left alone");
    }

    #[test]
    fn cpus_that_are_not_there_are_refused() {
        let missing = CpuSet::MAX_CPU - 1;
        let error = Places::find(&Pin::Cpus(vec![missing])).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("there is no CPU 1023 for this process: it may use "),
            "{error}"
        );
        let error = Places::among(&Pin::Cpus(vec![0, 7]), vec![0, 1, 2, 5], Vec::new()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "there is no CPU 7 for this process: it may use 0-2,5"
        );
    }

    /// A machine whose nodes have every other CPU.
    #[test]
    fn nodes_are_filled_one_after_the_other() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(nodes(root.path()), []);
        let folder = root.path().join("sys/devices/system/node");
        for (number, cpus) in [(0, "0,2\n"), (1, "1,3\n"), (2, "\n")] {
            let node = folder.join(format!("node{number}"));
            std::fs::create_dir_all(&node).unwrap();
            std::fs::write(node.join("cpulist"), cpus).unwrap();
        }
        std::fs::write(folder.join("online"), "0-2\n").unwrap();
        let places = |pin: &str| Places::among(&pin.parse().unwrap(), (0..5).collect(), nodes(root.path())).unwrap();
        let auto = places("auto");
        assert_eq!(auto.cpus, [0, 2, 1, 3, 4]);
        assert_eq!(
            auto.to_string(),
            "threads stay on the CPUs 0,2,1,3-4 in turn; \
             the machine has 3 memory nodes: 0 with 0,2, 1 with 1,3, 2 without CPUs"
        );
        std::fs::write(folder.join("online"), "0\n").unwrap();
        let one = places("1,0").to_string();
        assert_eq!(
            one,
            "threads stay on the CPUs 1,0 in turn; the machine has one memory node"
        );
    }
}
