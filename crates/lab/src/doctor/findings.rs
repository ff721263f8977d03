//! What the doctor looks at, and what it says about it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;

use super::Surroundings;
use crate::format::count;
use crate::measure::{clock, cycles, energy};
use crate::peer::program::{INSTALLER, OF_ROOT};
use crate::run::{Mark, Outcome};

/// How a finding stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Nothing to do.
    Ok,
    /// The system does not tell; nothing can be said.
    Unknown,
    /// Read figures with this in mind.
    Attention,
    /// Figures of this machine are not to be believed before it is changed.
    Bad,
}

/// One thing the doctor looked at.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Finding {
    /// Stable name, such as `governor`.
    pub name: &'static str,
    /// How it stands.
    pub state: State,
    /// What was found, with its numbers.
    pub text: String,
    /// What to do; empty when nothing.
    pub advice: String,
    /// The command that would change it; empty where there is none. The doctor itself changes nothing.
    pub command: String,
}

/// A program the lab can use, and whether it is on PATH.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Peer {
    /// Name of the program.
    pub name: &'static str,
    /// Found on PATH and executable.
    pub present: bool,
}

/// Looks for programs in the folders of `path` (the value of `PATH`) and where only root looks; starts nothing.
pub fn find_peers(programs: &[&'static str], path: Option<&OsStr>) -> Vec<Peer> {
    let folders: Vec<PathBuf> = path
        .into_iter()
        .flat_map(std::env::split_paths)
        .chain(OF_ROOT.map(PathBuf::from))
        .collect();
    programs
        .iter()
        .map(|name| {
            let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
            // An empty entry means the current folder to a shell; a measurement must not depend on that.
            let present = folders.iter().any(|f| f.is_absolute() && is_program(&f.join(&file)));
            Peer { name, present }
        })
        .collect()
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata()
        .is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

/// All findings, in a fixed order.
pub fn examine(around: &Surroundings, outcome: &Outcome) -> Vec<Finding> {
    let found = [
        ("build", build(around)),
        ("cpus", cpus(around)),
        ("clock", clock_finding(around)),
        ("clocksource", clock_source(around)),
        ("cpu-speed", speed(outcome)),
        ("preemption", preemption(outcome)),
        ("steal", steal(outcome)),
        ("quota", quota(around, outcome)),
        ("governor", governor(around)),
        ("power", power(around)),
        ("energy", energy(around)),
        ("cycles", cycles(around)),
        ("peers", peers(around)),
    ];
    found.map(|(name, finding)| Finding { name, ..finding }).into()
}

/// A finding without a name.
fn finding(state: State, text: impl Into<String>) -> Finding {
    Finding {
        name: "",
        state,
        text: text.into(),
        advice: String::new(),
        command: String::new(),
    }
}

impl Finding {
    /// What to do, unless all is well.
    fn advise(mut self, advice: &str, command: &str) -> Self {
        if self.state != State::Ok {
            self.advice = advice.to_owned();
            self.command = command.to_owned();
        }
        self
    }
}

fn build(around: &Surroundings) -> Finding {
    let machine = &around.machine;
    let profile = machine.text("build.profile").unwrap_or("unknown profile");
    match machine.facts.get("build.debug_assertions").and_then(Value::as_bool) {
        Some(false) => finding(State::Ok, format!("built for speed ({profile})")),
        Some(true) => finding(State::Bad, format!("built for debugging ({profile})")).advise(
            "Figures of a debugging build say nothing. Build with optimisation.",
            "cargo build --release",
        ),
        None => finding(State::Unknown, "the build does not tell how it was made"),
    }
}

fn cpus(around: &Surroundings) -> Finding {
    let cpus = count(around.cpus as usize, "CPU");
    if around.cpus >= 4 {
        return finding(State::Ok, cpus);
    }
    finding(State::Attention, format!("{cpus}, shared by subjects, lab and system")).advise(
        "Believe ratios and CPU time before absolute rates; close other programs. For records use 4 CPUs or more.",
        "",
    )
}

fn clock_finding(around: &Surroundings) -> Finding {
    let facts = around.clock;
    let fine = facts.cost_ns <= 1_000.0 && (1..=10_000).contains(&facts.step_ns);
    let state = if fine { State::Ok } else { State::Attention };
    let text = format!("a reading costs {:.0} ns, steps of {} ns", facts.cost_ns, facts.step_ns);
    finding(state, text).advise("Use long windows; do not read single operations.", "")
}

fn clock_source(around: &Surroundings) -> Finding {
    match around.machine.text("kernel.clocksource") {
        None => finding(State::Unknown, "the system does not tell"),
        Some(name) if clock::is_direct(name) => finding(State::Ok, name),
        Some(name) => finding(State::Attention, format!("{name}, not the CPU's own counter")).advise(
            "Find out why the kernel chose it; on bare metal the counter may be marked unstable.",
            "dmesg | grep -i clocksource",
        ),
    }
}

/// A window in five disturbed is more than medians over nine rounds can bear with confidence.
const TOO_MANY: f64 = 0.2;

/// Number of windows with a mark, and how that stands.
fn marked(outcome: &Outcome, mark: Mark) -> (usize, State) {
    let windows = &outcome.windows;
    let hits = windows.iter().filter(|window| window.has(mark.code())).count();
    let state = match hits {
        0 => State::Ok,
        _ if hits as f64 > TOO_MANY * windows.len() as f64 => State::Bad,
        _ => State::Attention,
    };
    (hits, state)
}

fn speed(outcome: &Outcome) -> Finding {
    let Some(spread) = outcome.canary_spread() else {
        return finding(State::Unknown, "too few canaries ran");
    };
    let (hits, state) = marked(outcome, Mark::Canary);
    let all = outcome.windows.len();
    let text = format!("spread {:.1} %, {hits} of {all} windows over 3 % off", spread * 100.0);
    finding(state, text).advise(
        "Close other programs, let the machine cool, or fix its clock speed.",
        "",
    )
}

fn preemption(outcome: &Outcome) -> Finding {
    if outcome.windows.is_empty() {
        return finding(State::Unknown, "no window ran");
    }
    let (hits, state) = marked(outcome, Mark::Preempted);
    let text = format!("{hits} of {} windows had to share their CPU", outcome.windows.len());
    finding(state, text).advise(
        "Other programs run. See which, and close them.",
        "top -b -n 1 | head -15",
    )
}

fn steal(outcome: &Outcome) -> Finding {
    let shares: Vec<f64> = outcome.noise.iter().filter_map(|noise| noise.steal).collect();
    if shares.is_empty() {
        return finding(State::Unknown, "the system does not tell");
    }
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    let worst = shares.iter().copied().fold(0.0, f64::max);
    let state = if mean > 0.05 {
        State::Bad
    } else if mean > 0.01 || worst > 0.05 {
        State::Attention
    } else {
        State::Ok
    };
    let text = format!("{:.1} % on average, {:.1} % at worst", mean * 100.0, worst * 100.0);
    finding(state, text).advise(
        "The hypervisor gives CPU time to neighbours. Measure at another time or on a dedicated host.",
        "vmstat 1 5",
    )
}

fn quota(around: &Surroundings, outcome: &Outcome) -> Finding {
    let lost: f64 = outcome.noise.iter().filter_map(|noise| noise.throttled_s).sum();
    let periods: u64 = outcome.noise.iter().filter_map(|noise| noise.throttled_periods).sum();
    let cores = around.machine.cores;
    let limit = around.machine.facts.get("cgroup.cpus").and_then(Value::as_f64);
    let found = match limit {
        _ if lost > 0.0 || periods > 0 => {
            let text = format!("a CPU quota struck {periods} times and took {lost:.2} s");
            finding(State::Bad, text)
        }
        Some(limit) if limit < f64::from(cores) => {
            let text = format!("a quota of {limit:.2} CPUs of {cores}; it did not strike in the check");
            finding(State::Attention, text)
        }
        Some(limit) => finding(
            State::Ok,
            format!("a quota of {limit:.2} CPUs, not below the CPUs allowed"),
        ),
        None => finding(State::Ok, "no CPU quota shows"),
    };
    found.advise(
        "Raise the container's CPU limit, or measure outside of it.",
        "docker update --cpus 0 CONTAINER",
    )
}

fn governor(around: &Surroundings) -> Finding {
    match around.machine.text("cpu.governor") {
        None => finding(
            State::Unknown,
            "the system does not tell, as is usual in a virtual machine",
        ),
        Some("performance") => finding(State::Ok, "performance"),
        Some(name) => finding(State::Attention, format!("{name}: the clock follows the load")).advise(
            "Warm-up hides most of it. For records, hold the clock up.",
            "sudo cpupower frequency-set -g performance",
        ),
    }
}

fn power(around: &Surroundings) -> Finding {
    match around.machine.text("host.power") {
        Some("battery") => finding(State::Attention, "on battery").advise("Connect the mains.", ""),
        Some(other) => finding(State::Ok, format!("on {other}")),
        None => finding(State::Ok, "no battery"),
    }
}

fn energy(around: &Surroundings) -> Finding {
    match around.machine.text("host.energy") {
        None => finding(State::Unknown, "no counter shows, as is usual in a virtual machine"),
        Some("open") => finding(State::Ok, "the processor packages tell theirs"),
        Some(_) => finding(State::Unknown, "only root may read the counters of the packages (CVE-2020-8694)").advise(
            "Joules are left out; nothing else changes. This lets all users of the machine read them until its next start:",
            energy::OPEN,
        ),
    }
}

fn cycles(around: &Surroundings) -> Finding {
    match around.machine.text("kernel.cycles") {
        None => finding(State::Unknown, "no counter shows, as is usual in a virtual machine"),
        Some("open") => finding(State::Ok, "the processor counts those of a thread"),
        Some(_) => finding(
            State::Unknown,
            "only root may open the counter, or a container forbids it",
        )
        .advise(
            "Cycles are left out; nothing else changes. This lets all users count their own until the next start:",
            cycles::OPEN,
        ),
    }
}

fn peers(around: &Surroundings) -> Finding {
    let names = |present: bool| {
        let found = around.peers.iter().filter(|peer| peer.present == present);
        match found.map(|peer| peer.name).collect::<Vec<_>>() {
            none if none.is_empty() => "none".to_owned(),
            found => found.join(", "),
        }
    };
    let has_openssl = around.peers.iter().any(|peer| peer.name == "openssl" && peer.present);
    let state = if has_openssl { State::Ok } else { State::Attention };
    let text = format!(
        "present: {}; absent ({INSTALLER} gets all but sshd): {}",
        names(true),
        names(false)
    );
    finding(state, text).advise(
        "Without openssl the cipher tables have in-process peers only.",
        INSTALLER,
    )
}
