//! Processor: model, topology, caches, clock policy, mitigations.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use serde_json::Value;

use super::Tree;
use crate::measure::parse;

/// What the machine key needs.
pub(super) struct CpuFacts {
    pub(super) model: String,
    pub(super) microcode: String,
    pub(super) cores: u32,
}

const CPUS: &str = "sys/devices/system/cpu";

pub(super) fn capture(tree: &mut Tree<'_>) -> CpuFacts {
    let info = tree.text("proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| cpuinfo(&info, name);
    let model = model(tree, &info);
    let microcode = field("microcode");
    tree.note("cpu.vendor", field("vendor_id").or_else(|| field("CPU implementer")));
    tree.note("cpu.family", field("cpu family").or_else(|| field("CPU architecture")));
    tree.note("cpu.model", field("model").or_else(|| field("CPU part")));
    tree.note("cpu.stepping", field("stepping").or_else(|| field("CPU revision")));
    tree.note("cpu.variant", field("CPU variant"));
    tree.note("cpu.microcode", microcode.clone());
    topology(tree);
    caches(tree);
    let status = tree.text("proc/self/status").unwrap_or_default();
    let allowed = parse::status(&status, "Cpus_allowed_list").map(str::to_owned);
    let online = tree.text(&format!("{CPUS}/online"));
    let cores = allowed
        .as_deref()
        .and_then(parse::list_len)
        .or_else(|| online.as_deref().and_then(parse::list_len))
        .or_else(|| tree.is_live().then(crate::run::cpus))
        .unwrap_or(0);
    tree.note("cpu.allowed", allowed);
    tree.note("cpu.online", online);
    tree.note_text("cpu.isolated", &format!("{CPUS}/isolated"));
    policy(tree);
    mitigations(tree);
    CpuFacts {
        model,
        microcode: microcode.unwrap_or_default(),
        cores,
    }
}

/// First value of a `name : value` line of `/proc/cpuinfo`.
fn cpuinfo(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        let value = value.trim();
        (key.trim_end() == name && !value.is_empty()).then(|| value.to_owned())
    })
}

/// The model's name; on machines that only have numbers, those in one stable text.
fn model(tree: &Tree<'_>, info: &str) -> String {
    let field = |name: &str| cpuinfo(info, name);
    if let Some(name) = field("model name")
        .or_else(|| field("cpu model"))
        .or_else(|| field("uarch"))
    {
        return name.split_whitespace().collect::<Vec<_>>().join(" ");
    }
    if let (Some(maker), Some(part)) = (field("CPU implementer"), field("CPU part")) {
        return format!("{} implementer {maker} part {part}", arm_maker(&maker))
            .trim()
            .to_owned();
    }
    // Boards with a device tree name themselves there, with a trailing zero byte.
    let board = tree
        .text("proc/device-tree/model")
        .map(|text| text.trim_end_matches('\0').to_owned());
    board.or_else(|| field("cpu")).unwrap_or_default()
}

/// Maker of an Arm core by the implementer number of its identification register.
fn arm_maker(number: &str) -> &'static str {
    match number {
        "0x41" => "Arm",
        "0x46" => "Fujitsu",
        "0x48" => "HiSilicon",
        "0x4e" => "NVIDIA",
        "0x51" => "Qualcomm",
        "0x61" => "Apple",
        "0x6d" => "Microsoft",
        "0xc0" => "Ampere",
        _ => "",
    }
}

/// Names of the folders of single CPUs: `cpu0`, `cpu1`, …
fn cpu_folders(tree: &Tree<'_>) -> Vec<String> {
    let is_cpu = |name: &String| {
        name.strip_prefix("cpu")
            .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
    };
    tree.names(CPUS).into_iter().filter(is_cpu).collect()
}

fn topology(tree: &mut Tree<'_>) {
    let (mut threads, mut cores, mut sockets) = (0_u64, BTreeSet::new(), BTreeSet::new());
    for name in cpu_folders(tree) {
        let base = format!("{CPUS}/{name}/topology");
        let (Some(core), Some(socket)) = (
            tree.text(&format!("{base}/core_id")),
            tree.text(&format!("{base}/physical_package_id")),
        ) else {
            continue; // offline
        };
        threads += 1;
        cores.insert((socket.clone(), core));
        sockets.insert(socket);
    }
    if threads > 0 {
        tree.note("cpu.sockets", Some(sockets.len()));
        tree.note("cpu.cores", Some(cores.len()));
        tree.note("cpu.threads", Some(threads));
    }
    tree.note_text("numa.online", "sys/devices/system/node/online");
    let nodes = tree
        .text("sys/devices/system/node/online")
        .and_then(|list| parse::list_len(&list));
    tree.note("numa.nodes", nodes);
}

/// Caches of the first CPU, such as `L1d 32K`, with the CPUs that share the last level.
fn caches(tree: &mut Tree<'_>) {
    let base = format!("{CPUS}/cpu0/cache");
    let mut found: Vec<Value> = Vec::new();
    for name in tree.names(&base).iter().filter(|name| name.starts_with("index")) {
        let read = |file: &str| tree.text(&format!("{base}/{name}/{file}"));
        let (Some(level), Some(size)) = (read("level"), read("size")) else {
            continue;
        };
        let kind = match read("type").as_deref() {
            Some("Data") => "d",
            Some("Instruction") => "i",
            _ => "",
        };
        let shared = read("shared_cpu_list")
            .map(|list| format!(" shared by {list}"))
            .unwrap_or_default();
        found.push(Value::String(format!("L{level}{kind} {size}{shared}")));
    }
    if !found.is_empty() {
        tree.note("cpu.caches", Some(found));
    }
}

/// Clock policy: governor, driver, turbo, SMT, clock limits (not the clock of this moment, which wobbles).
fn policy(tree: &mut Tree<'_>) {
    let mut governors = BTreeSet::new();
    for name in cpu_folders(tree) {
        governors.extend(tree.text(&format!("{CPUS}/{name}/cpufreq/scaling_governor")));
    }
    let governors: Vec<String> = governors.into_iter().collect();
    tree.note("cpu.governor", (!governors.is_empty()).then(|| governors.join(",")));
    tree.note_text("cpu.frequency_driver", &format!("{CPUS}/cpu0/cpufreq/scaling_driver"));
    tree.note_number(
        "cpu.frequency_max_khz",
        &format!("{CPUS}/cpu0/cpufreq/cpuinfo_max_freq"),
    );
    tree.note_text(
        "cpu.energy_preference",
        &format!("{CPUS}/cpu0/cpufreq/energy_performance_preference"),
    );
    let turbo = tree
        .number(&format!("{CPUS}/intel_pstate/no_turbo"))
        .map(|off| off == 0)
        .or_else(|| tree.number(&format!("{CPUS}/cpufreq/boost")).map(|on| on != 0));
    tree.note("cpu.turbo", turbo);
    tree.note_text("cpu.smt_control", &format!("{CPUS}/smt/control"));
    let smt = tree.number(&format!("{CPUS}/smt/active")).map(|on| on != 0);
    tree.note("cpu.smt", smt);
}

/// Mitigations in effect, by name; the names of issues that do not affect this CPU are left out.
fn mitigations(tree: &mut Tree<'_>) {
    let base = format!("{CPUS}/vulnerabilities");
    let mut found = BTreeMap::new();
    let names = tree.names(&base);
    for name in &names {
        if let Some(state) = tree.text(&format!("{base}/{name}"))
            && state != "Not affected"
        {
            found.insert(name.clone(), state);
        }
    }
    if !names.is_empty() {
        let list: Vec<String> = found.iter().map(|(name, state)| format!("{name}: {state}")).collect();
        tree.note("cpu.mitigations", Some(list));
    }
}
