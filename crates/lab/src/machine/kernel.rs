//! Kernel: release, ticks and accounting, clock source, network settings, limits of this process, C library.

use super::Tree;
use crate::measure::cycles;

/// Notes the facts and gives the kernel release.
pub(super) fn capture(tree: &mut Tree<'_>) -> String {
    let release = release(tree);
    ticks(tree, &release);
    let clocksource = crate::measure::clock::clocksource(tree.root);
    tree.note("kernel.clocksource", clocksource);
    for (name, path) in [
        ("kernel.perf_event_paranoid", "proc/sys/kernel/perf_event_paranoid"),
        ("kernel.aslr", "proc/sys/kernel/randomize_va_space"),
        ("net.core.somaxconn", "proc/sys/net/core/somaxconn"),
        ("net.core.rmem_max", "proc/sys/net/core/rmem_max"),
        ("net.core.wmem_max", "proc/sys/net/core/wmem_max"),
        ("net.tcp_tw_reuse", "proc/sys/net/ipv4/tcp_tw_reuse"),
        ("net.lo.mtu", "sys/class/net/lo/mtu"),
        ("net.lo.gso_max_size", "sys/class/net/lo/gso_max_size"),
    ] {
        tree.note_number(name, path);
    }
    for (name, path) in [
        (
            "kernel.transparent_hugepages",
            "sys/kernel/mm/transparent_hugepage/enabled",
        ),
        ("net.congestion_control", "proc/sys/net/ipv4/tcp_congestion_control"),
        ("net.tcp_rmem", "proc/sys/net/ipv4/tcp_rmem"),
        ("net.tcp_wmem", "proc/sys/net/ipv4/tcp_wmem"),
        ("net.port_range", "proc/sys/net/ipv4/ip_local_port_range"),
    ] {
        tree.note_text(name, path);
    }
    let pmu = tree.names("sys/bus/event_source/devices");
    let has_counters = |name: &String| name.starts_with("cpu") || name.starts_with("armv8") || name.starts_with("arm_");
    let listed = (!pmu.is_empty()).then(|| pmu.iter().any(has_counters));
    tree.note("kernel.cycle_counter", listed);
    if tree.is_live() {
        tree.note("kernel.cycles", cycles::access(listed).fact());
    }
    if let Some(text) = tree.text("proc/self/limits") {
        for (name, row) in [
            ("limit.open_files", "Max open files"),
            ("limit.processes", "Max processes"),
            ("limit.locked_memory", "Max locked memory"),
            ("limit.stack", "Max stack size"),
            ("limit.address_space", "Max address space"),
        ] {
            tree.note(name, soft_limit(&text, row));
        }
    }
    libc(tree);
    release
}

fn release(tree: &mut Tree<'_>) -> String {
    tree.note_text("kernel.name", "proc/sys/kernel/ostype");
    if let Some(release) = tree.text("proc/sys/kernel/osrelease") {
        return release;
    }
    live_release(tree).unwrap_or_default()
}

fn live_release(tree: &mut Tree<'_>) -> Option<String> {
    if !tree.is_live() {
        return None;
    }
    let name = rustix::system::uname();
    tree.note("kernel.name", Some(name.sysname().to_string_lossy().into_owned()));
    Some(name.release().to_string_lossy().into_owned())
}

/// Timer rate and the kind of CPU time accounting, from the kernel's configuration where it is readable.
///
/// With interrupt accounting, soft interrupts belong to no process; without it, the interrupted one pays.
fn ticks(tree: &mut Tree<'_>, release: &str) {
    // The release becomes part of a path: take it only if it is a plain name.
    if release.is_empty() || release.contains(['/', '\0']) {
        return;
    }
    let paths = [
        format!("boot/config-{release}"),
        format!("lib/modules/{release}/config"),
    ];
    let Some(text) = paths.iter().find_map(|path| tree.text(path)) else {
        return;
    };
    let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    tree.note("kernel.hz", value("CONFIG_HZ").and_then(|hz| hz.parse::<u64>().ok()));
    tree.note(
        "kernel.irq_accounting",
        Some(value("CONFIG_IRQ_TIME_ACCOUNTING") == Some("y")),
    );
    let kind = if value("CONFIG_VIRT_CPU_ACCOUNTING_GEN") == Some("y") {
        Some("generic")
    } else if value("CONFIG_VIRT_CPU_ACCOUNTING_NATIVE") == Some("y") {
        Some("native")
    } else {
        (value("CONFIG_TICK_CPU_ACCOUNTING") == Some("y")).then_some("tick")
    };
    tree.note("kernel.cpu_accounting", kind);
}

/// A limit of `/proc/self/limits`, the first number after its name; `None` for unlimited or unknown.
fn soft_limit(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_ascii_whitespace().next()?.parse().ok()
}

/// C library: the kind this program was built for, and the version of the one it runs with where the file tells.
fn libc(tree: &mut Tree<'_>) {
    let kind = [
        (cfg!(target_env = "gnu"), "gnu"),
        (cfg!(target_env = "musl"), "musl"),
        (cfg!(target_env = "msvc"), "msvc"),
    ];
    tree.note("libc.kind", kind.iter().find(|(on, _)| *on).map(|(_, name)| *name));
    let Some(maps) = tree.text("proc/self/maps") else {
        return;
    };
    let Some(path) = maps.lines().find_map(|line| {
        let path = line.split_ascii_whitespace().nth(5)?;
        let name = path.rsplit('/').next()?;
        (name == "libc.so.6" || name.starts_with("libc-2")).then(|| path.to_owned())
    }) else {
        return;
    };
    let Ok(bytes) = std::fs::read(tree.path(&path)) else {
        return;
    };
    tree.note("libc.version", glibc_version(&bytes));
}

/// The version in the banner that every GNU C library carries: `… release version 2.36.`
fn glibc_version(bytes: &[u8]) -> Option<String> {
    const BANNER: &[u8] = b"GNU C Library";
    const VERSION: &[u8] = b"release version ";
    let at = bytes.windows(BANNER.len()).position(|window| window == BANNER)?;
    let banner = bytes.get(at..)?.get(..200).unwrap_or(bytes.get(at..)?);
    let start = banner.windows(VERSION.len()).position(|window| window == VERSION)? + VERSION.len();
    let digits: Vec<u8> = banner[start..]
        .iter()
        .copied()
        .take_while(|b| b.is_ascii_digit() || *b == b'.')
        .collect();
    let text = String::from_utf8(digits).ok()?;
    let text = text.trim_end_matches('.');
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn glibc_banner() {
        let file = b"\x7fELF\0\0GNU C Library (Distribution GLIBC 2.36-9) stable release version 2.36.\nCopyright\0";
        assert_eq!(glibc_version(file).as_deref(), Some("2.36"));
        for file in [
            &b""[..],
            b"GNU C Library",
            b"GNU C Library release version ",
            b"release version 2.36",
        ] {
            assert_eq!(glibc_version(file), None);
        }
    }

    #[test]
    fn soft_limits() {
        let text = "Limit                     Soft Limit           Hard Limit           Units     \n\
                    Max stack size            8388608              unlimited            bytes     \n\
                    Max open files            1024                 524288               files     \n\
                    Max address space         unlimited            unlimited            bytes     \n";
        for (name, limit) in [
            ("Max stack size", Some(8_388_608)),
            ("Max open files", Some(1024)),
            ("Max address space", None),
            ("Max processes", None),
        ] {
            assert_eq!(soft_limit(text, name), limit, "{name}");
        }
    }
}
