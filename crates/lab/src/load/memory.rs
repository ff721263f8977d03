//! What connections that lie idle cost the kernel: the buffers of sockets.

use std::path::Path;

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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

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
