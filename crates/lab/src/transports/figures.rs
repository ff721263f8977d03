//! What a window has shown, and the figures that follow.

use std::time::Duration;

use super::traffic::PIECE;
use crate::run::Counted;

/// How often the CPU clocks of programs are read in a window.
const STEP: Duration = Duration::from_millis(50);

/// How many steps a window is read in: however long it is, its last one is not a short one.
pub(super) fn steps(window: Duration) -> u32 {
    (window.as_secs_f64() / STEP.as_secs_f64()).floor().max(1.0) as u32
}

/// What a window moved, and what that cost.
#[derive(Debug)]
pub(super) struct Measured {
    /// Length of the window in seconds, by the clock of whoever received.
    pub(super) wall_s: f64,
    /// Bytes of each stream that its receiver was given in that time.
    pub(super) each: Vec<u64>,
    /// The programs, the client first.
    pub(super) roles: Vec<Spent>,
}

/// What a program took.
#[derive(Debug)]
pub(super) struct Spent {
    pub(super) role: &'static str,
    /// CPUs that it kept busy on the average, by the clock of its own host.
    pub(super) busy: f64,
    /// The same in its busiest step.
    pub(super) busiest: f64,
    /// Most memory in bytes.
    pub(super) memory: u64,
}

impl Measured {
    /// The figures. CPU time is that of the receiver's window: what a program kept busy, times its length.
    pub(super) fn counted(&self) -> Counted {
        let bytes: u64 = self.each.iter().copied().fold(0, u64::saturating_add);
        let gigabytes = bytes as f64 / 1e9;
        let cpu_s: f64 = self.roles.iter().map(|role| role.busy * self.wall_s).sum();
        let mut figures = Vec::new();
        for role in &self.roles {
            let [cpu, busy, busiest, memory] = metrics(role.role);
            figures.extend([
                (cpu, role.busy * self.wall_s / gigabytes),
                (busy, role.busy),
                (busiest, role.busiest),
                (memory, role.memory as f64),
            ]);
        }
        if !self.roles.is_empty() {
            let memory = self.roles.iter().map(|role| role.memory).fold(0, u64::saturating_add);
            figures.extend([("cpu_per_gb", cpu_s / gigabytes), ("memory", memory as f64)]);
        }
        if self.each.len() > 1 {
            figures.push(("fairness", fairness(&self.each)));
        }
        // Without a byte delivered there is no cost of one: the runner refuses such a window.
        figures.retain(|(_, value)| value.is_finite());
        Counted {
            ops: bytes.div_ceil(PIECE as u64),
            bytes,
            wall_s: self.wall_s,
            cpu_s,
            figures,
            tails: Vec::new(),
        }
    }
}

/// The metrics of a program: CPU time for 10^9 B, CPUs kept busy on the average and at most, memory.
fn metrics(role: &str) -> [&'static str; 4] {
    match role {
        "client" => [
            "cpu_per_gb_client",
            "cpu_busy_client",
            "cpu_busy_peak_client",
            "memory_client",
        ],
        "server" => [
            "cpu_per_gb_server",
            "cpu_busy_server",
            "cpu_busy_peak_server",
            "memory_server",
        ],
        _ => [
            "cpu_per_gb_front",
            "cpu_busy_front",
            "cpu_busy_peak_front",
            "memory_front",
        ],
    }
}

/// Jain's index: 1 if all streams got the same, 1/n if one got all.
pub(super) fn fairness(each: &[u64]) -> f64 {
    let sum: f64 = each.iter().map(|&bytes| bytes as f64).sum();
    let squares: f64 = each.iter().map(|&bytes| bytes as f64 * bytes as f64).sum();
    sum * sum / (each.len() as f64 * squares)
}
