//! What connections that lie idle cost: memory of processes, and of the kernel's socket buffers.

use std::path::Path;

/// Memory of process `pid` in bytes, pages that it shares divided among those that share them; where the kernel does not
/// tell, all pages it has. `None` if the process is gone or is not ours to ask.
pub(crate) fn of_process(root: &Path, pid: u32) -> Option<u64> {
    let folder = root.join(format!("proc/{pid}"));
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).ok();
    read("smaps_rollup")
        .and_then(|text| kilobytes(&text, "Pss:"))
        .or_else(|| read("status").and_then(|text| kilobytes(&text, "VmRSS:")))
}

/// Memory in the buffers of all TCP sockets of the machine, bytes. The kernel counts whole pages, and not the sockets
/// themselves.
pub(crate) fn of_sockets(root: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(root.join("proc/net/sockstat")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("TCP:"))?;
    let mut words = line.split_whitespace();
    words.find(|word| *word == "mem")?;
    let pages: u64 = words.next()?.parse().ok()?;
    pages.checked_mul(rustix::param::page_size() as u64)
}

fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let number: u64 = line.split_whitespace().next()?.parse().ok()?;
    number.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn shared_pages_are_divided_where_the_kernel_tells() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("proc/7");
        std::fs::create_dir_all(&folder).unwrap();
        assert_eq!(of_process(root.path(), 7), None);
        std::fs::write(folder.join("status"), "Name:\ta\nVmRSS:\t    5000 kB\n").unwrap();
        assert_eq!(of_process(root.path(), 7), Some(5000 * 1024));
        let rollup = "55d0-7ffc ---p 00000000 00:00 0 [rollup]\nRss:    4000 kB\nPss:    3000 kB\nPss_Dirty: 1 kB\n";
        std::fs::write(folder.join("smaps_rollup"), rollup).unwrap();
        assert_eq!(of_process(root.path(), 7), Some(3000 * 1024));
        assert!(of_process(Path::new("/"), std::process::id()).unwrap() > 0);
    }

    #[test]
    fn socket_buffers_are_counted_in_pages() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("proc/net");
        std::fs::create_dir_all(&folder).unwrap();
        let text = "sockets: used 300\nTCP: inuse 9 orphan 0 tw 4 alloc 12 mem 3\nUDP: inuse 1 mem 2\n";
        std::fs::write(folder.join("sockstat"), text).unwrap();
        assert_eq!(of_sockets(root.path()), Some(3 * rustix::param::page_size() as u64));
        std::fs::write(folder.join("sockstat"), "UDP: inuse 1 mem 2\n").unwrap();
        assert_eq!(of_sockets(root.path()), None);
    }
}
