#![allow(clippy::unwrap_used)]

use super::*;
use serde_json::json;

fn write(root: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

const C: &str = "sys/devices/system/cpu";

fn server() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let cpuinfo = "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 106\nmodel name\t: Example  CPU @ 2.0GHz\n\
                   stepping\t: 6\nmicrocode\t: 0xd0003a5\ncpu MHz\t\t: 1998.123\nflags\t\t: fpu aes hypervisor avx2\n\n\
                   processor\t: 1\nmodel name\t: Example  CPU @ 2.0GHz\n";
    write(
        root.path(),
        &[
            ("proc/cpuinfo", cpuinfo),
            (
                "proc/meminfo",
                "MemTotal:  2048 kB\nSwapTotal: 0 kB\nHugepagesize: 2048 kB\n",
            ),
            ("proc/self/status", "Name:\tx\nCpus_allowed_list:\t0-2\n"),
            (
                "proc/self/limits",
                "Max open files            1024                 4096                 files\n",
            ),
            ("proc/self/cgroup", "0::/kubepods/x\n"),
            ("proc/self/mountinfo", "25 1 0:22 / /cg rw - cgroup2 cgroup2 rw\n"),
            ("cg/kubepods/cpu.max", "200000 100000\n"),
            ("cg/kubepods/x/memory.max", "4096\n"),
            ("proc/sys/kernel/osrelease", "6.1.0-18-amd64\n"),
            ("proc/sys/kernel/ostype", "Linux\n"),
            ("proc/sys/kernel/hostname", "secret-host\n"),
            ("proc/sys/net/ipv4/ip_local_port_range", "32768\t60999\n"),
            ("proc/sys/net/ipv4/tcp_congestion_control", "cubic\n"),
            ("proc/sys/net/core/somaxconn", "4096\n"),
            ("proc/self/environ", "USER=secret-user\n"),
            ("sys/class/net/eth0/address", "00:16:3e:00:00:01\n"),
            ("sys/class/net/lo/mtu", "65536\n"),
            ("sys/class/dmi/id/sys_vendor", "QEMU\n"),
            ("sys/class/dmi/id/product_serial", "secret-serial\n"),
            (
                "boot/config-6.1.0-18-amd64",
                "CONFIG_HZ_250=y\nCONFIG_HZ=250\nCONFIG_TICK_CPU_ACCOUNTING=y\n# CONFIG_IRQ_TIME_ACCOUNTING is not set\n",
            ),
            (&format!("{C}/online"), "0-3\n"),
            (&format!("{C}/cpu0/topology/core_id"), "0\n"),
            (&format!("{C}/cpu0/topology/physical_package_id"), "0\n"),
            (&format!("{C}/cpu1/topology/core_id"), "0\n"),
            (&format!("{C}/cpu1/topology/physical_package_id"), "0\n"),
            (&format!("{C}/cpu2/topology/core_id"), "0\n"),
            (&format!("{C}/cpu2/topology/physical_package_id"), "1\n"),
            (&format!("{C}/cpufreq/boost"), "1\n"),
            (&format!("{C}/cpu0/cpufreq/scaling_governor"), "schedutil\n"),
            (&format!("{C}/cpu1/cpufreq/scaling_governor"), "powersave\n"),
            (&format!("{C}/smt/active"), "1\n"),
            (&format!("{C}/cpu0/cache/index0/level"), "1\n"),
            (&format!("{C}/cpu0/cache/index0/type"), "Data\n"),
            (&format!("{C}/cpu0/cache/index0/size"), "48K\n"),
            (&format!("{C}/cpu0/cache/index3/level"), "3\n"),
            (&format!("{C}/cpu0/cache/index3/type"), "Unified\n"),
            (&format!("{C}/cpu0/cache/index3/size"), "32768K\n"),
            (&format!("{C}/cpu0/cache/index3/shared_cpu_list"), "0-3\n"),
            (&format!("{C}/vulnerabilities/meltdown"), "Not affected\n"),
            (
                &format!("{C}/vulnerabilities/spectre_v2"),
                "Mitigation: Enhanced IBRS\n",
            ),
            ("sys/devices/system/node/online", "0-1\n"),
            (
                "sys/devices/system/clocksource/clocksource0/current_clocksource",
                "tsc\n",
            ),
        ],
    );
    root
}

#[test]
fn a_server() {
    let root = server();
    let machine = capture(root.path());
    assert_eq!(machine.cpu, "Example CPU @ 2.0GHz");
    assert_eq!((machine.cores, machine.memory), (3, 2 << 20));
    assert_eq!(machine.kernel, "6.1.0-18-amd64");
    let expected = json!({
        "cpu.vendor": "GenuineIntel", "cpu.family": "6", "cpu.model": "106", "cpu.stepping": "6",
        "cpu.microcode": "0xd0003a5", "cpu.sockets": 2, "cpu.cores": 2, "cpu.threads": 3,
        "cpu.allowed": "0-2", "cpu.online": "0-3", "cpu.governor": "powersave,schedutil", "cpu.turbo": true,
        "cpu.smt": true, "cpu.caches": ["L1d 48K", "L3 32768K shared by 0-3"],
        "cpu.mitigations": ["spectre_v2: Mitigation: Enhanced IBRS"],
        "numa.nodes": 2, "host.hypervisor": "qemu", "host.container": "kubernetes",
        "cgroup.version": 2, "cgroup.cpus": 2.0, "cgroup.memory": 4096, "memory.swap": 0,
        "kernel.hz": 250, "kernel.irq_accounting": false, "kernel.cpu_accounting": "tick",
        "kernel.clocksource": "tsc", "net.port_range": "32768 60999", "net.congestion_control": "cubic",
        "net.core.somaxconn": 4096, "net.lo.mtu": 65536, "limit.open_files": 1024,
    });
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(machine.facts.get(name), Some(value), "{name}");
    }
    assert!(!machine.facts.contains_key("host.power"));
}

#[test]
fn nothing_private_is_captured() {
    let root = server();
    let text = serde_json::to_string(&capture(root.path())).unwrap();
    for private in ["secret", "00:16:3e", "eth0", "/home", &root.path().to_string_lossy()] {
        assert!(!text.contains(private), "{private} in {text}");
    }
}

#[test]
fn the_key_stays_when_readings_wobble_and_changes_with_the_machine() {
    let root = server();
    let key = capture(root.path()).key;
    assert_eq!(key.len(), 16);
    let change = |path: &str, text: &str| {
        let other = server();
        write(other.path(), &[(path, text)]);
        capture(other.path()).key
    };
    assert_eq!(change("proc/sys/kernel/osrelease", "6.1.99-cloud\n"), key);
    assert_eq!(
        change(&format!("{C}/cpu0/cpufreq/scaling_governor"), "performance\n"),
        key
    );
    assert_eq!(change("proc/meminfo", "MemTotal: 4096 kB\n"), key);
    assert_ne!(change("proc/sys/kernel/osrelease", "6.2.0\n"), key);
    assert_ne!(change("proc/self/status", "Cpus_allowed_list:\t0\n"), key);
    assert_ne!(change("sys/class/dmi/id/sys_vendor", "VMware, Inc.\n"), key);
    assert_ne!(change("proc/cpuinfo", "model name: Other\n"), key);
}

#[test]
fn an_arm_board_and_a_laptop() {
    let root = tempfile::tempdir().unwrap();
    write(
        root.path(),
        &[
            (
                "proc/cpuinfo",
                "processor\t: 0\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x3\nCPU part\t: 0xd0c\nCPU revision\t: 1\n",
            ),
            (&format!("{C}/online"), "0-7\n"),
            ("sys/class/power_supply/AC/type", "Mains\n"),
            ("sys/class/power_supply/AC/online", "0\n"),
            ("sys/class/power_supply/BAT0/type", "Battery\n"),
            ("sys/class/power_supply/mouse/type", "Battery\n"),
            ("sys/class/power_supply/mouse/scope", "Device\n"),
        ],
    );
    let machine = capture(root.path());
    assert_eq!(machine.cpu, "Arm implementer 0x41 part 0xd0c");
    assert_eq!(machine.cores, 8);
    assert_eq!(machine.facts["cpu.variant"], "0x3");
    assert_eq!(machine.facts["host.power"], "battery");
    write(root.path(), &[("sys/class/power_supply/AC/online", "1\n")]);
    assert_eq!(capture(root.path()).facts["host.power"], "mains");
}

#[test]
fn an_empty_tree_gives_the_build_facts_only() {
    let root = tempfile::tempdir().unwrap();
    let machine = capture(root.path());
    assert_eq!((machine.cpu.as_str(), machine.cores, machine.memory), ("", 0, 0));
    let others: Vec<&String> = machine
        .facts
        .keys()
        .filter(|name| !name.starts_with("build.") && *name != "libc.kind" && *name != "kernel.name")
        .collect();
    assert_eq!(others, ["host.hypervisor"]);
    assert_eq!(
        machine.facts["build.rustc"].as_str().unwrap().split(' ').next(),
        Some("rustc")
    );
    assert!(machine.facts.contains_key("build.target"));
}

#[test]
fn this_machine() {
    let machine = capture(Path::new("/"));
    assert!(machine.cores >= 1);
    assert!(!machine.arch.is_empty());
    assert!(!machine.kernel.is_empty());
}

#[test]
fn kernel_versions() {
    assert_eq!(major_minor("6.1.0-18-amd64"), "6.1");
    assert_eq!(major_minor("5.15-rc1"), "5.15");
    assert_eq!(major_minor("14.1-RELEASE"), "14.1");
    assert_eq!(major_minor("6.1"), "6.1");
    assert_eq!(major_minor("23"), "23");
    assert_eq!(major_minor(""), "");
}

#[test]
fn warnings_before_any_window() {
    let root = server();
    let codes = |machine: &Machine, cpus| {
        let clock = ClockFacts {
            cost_ns: 25.0,
            step_ns: 20,
        };
        warnings(machine, &clock, cpus)
            .into_iter()
            .map(|warning| warning.code)
            .collect::<Vec<_>>()
    };
    let mut machine = capture(root.path());
    assert_eq!(codes(&machine, 2), ["shared-cpu", "cpu-quota", "governor"]);
    assert_eq!(codes(&machine, 8), ["cpu-quota", "governor"]);
    machine.cores = 2;
    machine.facts.insert("cpu.governor".to_owned(), json!("performance"));
    assert!(codes(&machine, 8).is_empty());
    machine.facts.insert("kernel.clocksource".to_owned(), json!("acpi_pm"));
    machine.facts.insert("host.power".to_owned(), json!("battery"));
    assert_eq!(codes(&machine, 8), ["clocksource", "battery"]);
    assert!(codes(&Machine::default(), 4).is_empty());
}
