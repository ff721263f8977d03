//! What stands around the kernel: hypervisor, container, control group limits, memory, power.

use super::Tree;
use crate::measure::cgroup::Cgroup;
use crate::measure::{energy, parse};

/// Notes the facts and gives the name of the hypervisor.
pub(super) fn capture(tree: &mut Tree<'_>) -> String {
    let hypervisor = hypervisor(tree);
    tree.note("host.hypervisor", Some(hypervisor.clone()));
    let container = container(tree);
    tree.note("host.container", container);
    if let Some(group) = Cgroup::locate(tree.root, "cpu") {
        tree.note("cgroup.version", Some(group.version()));
        tree.note("cgroup.cpus", group.cpu_limit());
    }
    let memory = Cgroup::locate(tree.root, "memory").and_then(|group| group.memory_limit());
    tree.note("cgroup.memory", memory);
    if let Some(info) = tree.text("proc/meminfo") {
        tree.note("memory.swap", parse::meminfo(&info, "SwapTotal"));
        tree.note("memory.huge_page", parse::meminfo(&info, "Hugepagesize"));
    }
    tree.note("host.energy", energy::access(tree.root).fact());
    let power = power(tree);
    tree.note("host.power", power);
    hypervisor
}

/// Name of the hypervisor: from the firmware's maker and product, else from the clock source or the CPU's flag:
/// `unnamed` is a hypervisor that hides its name, `none` a machine of metal, `unknown` one that does not tell.
fn hypervisor(tree: &Tree<'_>) -> String {
    let kind = tree.text("sys/hypervisor/type").unwrap_or_default();
    let maker = tree.text("sys/class/dmi/id/sys_vendor").unwrap_or_default();
    let product = tree.text("sys/class/dmi/id/product_name").unwrap_or_default();
    let release = tree
        .text("proc/sys/kernel/osrelease")
        .unwrap_or_default()
        .to_ascii_lowercase();
    if release.contains("microsoft") {
        return "wsl".to_owned();
    }
    let firmware = format!("{maker} {product}").to_ascii_lowercase();
    // More special names first: clouds that build on KVM also name themselves.
    for (sign, name) in [
        ("amazon ec2", "amazon"),
        ("google compute", "google"),
        ("microsoft corporation virtual", "hyper-v"),
        ("alibaba", "alibaba"),
        ("digitalocean", "digitalocean"),
        ("hetzner", "hetzner"),
        ("openstack", "openstack"),
        ("vmware", "vmware"),
        ("virtualbox", "virtualbox"),
        ("innotek", "virtualbox"),
        ("parallels", "parallels"),
        ("bhyve", "bhyve"),
        ("apple virtualization", "apple"),
        ("qemu", "qemu"),
        ("kvm", "kvm"),
        ("xen", "xen"),
    ] {
        if firmware.contains(sign) {
            return name.to_owned();
        }
    }
    if !kind.is_empty() {
        return kind;
    }
    // Only x86 tells by a flag of the CPU that a hypervisor is there; without that list nothing is known.
    let info = tree.text("proc/cpuinfo").unwrap_or_default();
    let flags = info.lines().find(|line| line.starts_with("flags"));
    let flagged = flags.map(|line| line.split_ascii_whitespace().any(|flag| flag == "hypervisor"));
    let clocksource = crate::measure::clock::clocksource(tree.root).unwrap_or_default();
    match (clocksource.as_str(), flagged) {
        ("kvm-clock", _) => "kvm",
        ("xen", _) => "xen",
        ("hyperv_clocksource_tsc_page", _) => "hyper-v",
        (_, Some(true)) => "unnamed",
        (_, Some(false)) => "none",
        (_, None) => "unknown",
    }
    .to_owned()
}

/// Kind of container, as far as its usual traces show.
fn container(tree: &Tree<'_>) -> Option<&'static str> {
    if tree.path(".dockerenv").exists() {
        return Some("docker");
    }
    if tree.path("run/.containerenv").exists() {
        return Some("podman");
    }
    let groups = tree.text("proc/self/cgroup").unwrap_or_default();
    [
        ("kubepods", "kubernetes"),
        ("docker", "docker"),
        ("libpod", "podman"),
        ("lxc", "lxc"),
        ("containerd", "containerd"),
    ]
    .iter()
    .find(|(sign, _)| groups.contains(sign))
    .map(|(_, name)| *name)
}

/// `mains` or `battery`; `None` where there is no battery to run from.
fn power(tree: &Tree<'_>) -> Option<&'static str> {
    let base = "sys/class/power_supply";
    let (mut battery, mut mains) = (false, None);
    for name in tree.names(base) {
        let read = |file: &str| tree.text(&format!("{base}/{name}/{file}"));
        match read("type").as_deref() {
            // Mice and keyboards have batteries too; theirs have the scope of a device.
            Some("Battery") if read("scope").as_deref() != Some("Device") => {
                battery = true;
                if mains.is_none() && read("status").as_deref() == Some("Discharging") {
                    mains = Some(false);
                }
            }
            Some("Mains" | "USB") => {
                if let Some(online) = read("online") {
                    mains = Some(mains == Some(true) || online == "1");
                }
            }
            _ => {}
        }
    }
    match (battery, mains) {
        (true, Some(false)) => Some("battery"),
        (_, Some(true)) | (true, None) => Some("mains"),
        _ => None,
    }
}
