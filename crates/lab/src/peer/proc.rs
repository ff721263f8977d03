//! What programs need of the system, and what `/proc` says about them: private files, ports, memory, sockets.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, BufRead, BufReader, Read as _, Seek as _, SeekFrom, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::measure::cpu::process_cpu_of;
use crate::measure::parse;

/// Most generations of children that are followed, and most processes of a role: programs here have one or two.
const MAX_PROCESSES: usize = 256;

/// States of a socket in the kernel's tables.
const LISTENS: &str = "0A";
const IS_OPEN: &str = "01";

/// Writes a new file that nobody else may read.
pub(crate) fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?.write_all(text.as_bytes())
}

/// The last `lines` lines of a text, at most `bytes` bytes of it.
pub(crate) fn tail(text: &[u8], lines: usize, bytes: usize) -> String {
    let start = text.len().saturating_sub(bytes);
    let text = String::from_utf8_lossy(&text[start..]);
    let all: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

/// The last `bytes` of a file, however long it is.
pub(crate) fn end_of(path: &Path, bytes: u64) -> io::Result<Vec<u8>> {
    let mut file = fs::File::open(path)?;
    let start = file.metadata()?.len().saturating_sub(bytes);
    file.seek(SeekFrom::Start(start))?;
    let mut end = Vec::new();
    file.take(bytes).read_to_end(&mut end)?;
    Ok(end)
}

/// Raises the number of files that this process, and whatever it starts from now on, may have open to the most that the
/// system allows, once: how many that are.
pub(crate) fn raise_files() -> u64 {
    static MOST: OnceLock<u64> = OnceLock::new();
    *MOST.get_or_init(|| {
        let limit = getrlimit(Resource::Nofile);
        let wanted = Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        };
        let raised = setrlimit(Resource::Nofile, wanted).is_ok();
        let now = if raised { limit.maximum } else { limit.current };
        now.unwrap_or(u64::MAX)
    })
}

/// A process and its descendants, itself first.
pub(crate) fn family(pid: u32) -> Vec<u32> {
    let mut found = vec![pid];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        next += 1;
        let Ok(tasks) = fs::read_dir(format!("/proc/{parent}/task")) else {
            continue;
        };
        for task in tasks.filter_map(Result::ok) {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            let children = children.split_whitespace().filter_map(|word| word.parse::<u32>().ok());
            found.extend(children.take(MAX_PROCESSES.saturating_sub(found.len())));
        }
    }
    found
}

/// CPU time of a process and its living descendants, user and system together; `None` if the process is gone.
pub(crate) fn cpu(pid: u32) -> Option<Duration> {
    let time = |pid| process_cpu_of(pid).map(|(_, time)| time);
    let mut times = family(pid).into_iter().map(time);
    Some(times.next()?? + times.flatten().sum::<Duration>())
}

/// Memory of a role in bytes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Memory {
    /// The most that was resident since the last reset, or since the start where the system allows no reset
    /// (`VmHWM`); of several processes the sum.
    pub peak: u64,
    /// What is resident now, pages shared with others divided among them (`Pss`); `None` where the system does not tell.
    pub pss: Option<u64>,
}

/// Memory of a process and its descendants; `None` if the process is gone.
pub(crate) fn memory(pid: u32) -> Option<Memory> {
    let mut sum = Memory { peak: 0, pss: Some(0) };
    for (i, pid) in family(pid).into_iter().enumerate() {
        let Some(peak) = kib(&format!("/proc/{pid}/status"), "VmHWM") else {
            if i == 0 {
                return None;
            }
            continue;
        };
        sum.peak += peak;
        let pss = kib(&format!("/proc/{pid}/smaps_rollup"), "Pss");
        sum.pss = sum.pss.zip(pss).map(|(sum, pss)| sum + pss);
    }
    Some(sum)
}

/// Sets the peak of a process and its descendants back to what is resident now, where the system allows it.
pub(crate) fn reset_peak(pid: u32) {
    for pid in family(pid) {
        // Without the right to, the peak is that of the whole life.
        let _ = fs::write(format!("/proc/{pid}/clear_refs"), "5");
    }
}

/// A figure of a file of `/proc` that is in KiB, as bytes.
fn kib(path: &str, name: &str) -> Option<u64> {
    parse::meminfo(&fs::read_to_string(path).ok()?, name)
}

/// True if process `pid` itself listens at a TCP port of 127.0.0.1. Nothing connects to find out: a connection would be
/// served.
pub(crate) fn listens(pid: u32, port: u16) -> bool {
    listens_at(pid, (Ipv4Addr::LOCALHOST, port).into())
}

/// The same of any address.
pub(crate) fn listens_at(pid: u32, address: SocketAddr) -> bool {
    has_socket(pid, address, 1, LISTENS)
}

/// True if process `pid` itself has an open connection to a TCP port of 127.0.0.1.
pub(crate) fn connected(pid: u32, port: u16) -> bool {
    let address = (Ipv4Addr::LOCALHOST, port).into();
    has_socket(pid, address, 2, IS_OPEN)
}

/// True if a process has a socket of that state with `address` in that column of its family's table.
fn has_socket(pid: u32, address: SocketAddr, column: usize, state: &str) -> bool {
    let table = if address.is_ipv4() {
        "/proc/net/tcp"
    } else {
        "/proc/net/tcp6"
    };
    let Ok(table) = fs::File::open(table) else { return false };
    let wanted = sockets(BufReader::new(table), column, address, state);
    if wanted.is_empty() {
        return false;
    }
    let open = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten();
    open.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok())
        .filter_map(|target| socket(target.to_str()?))
        .any(|inode| wanted.contains(&inode))
}

/// `socket:[123]`
fn socket(link: &str) -> Option<u64> {
    link.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

/// Inodes of the sockets of that state that have `address` in column `column`, out of the text of `/proc/net/tcp`.
///
/// The kernel lists what listens before all else, and nothing is read beyond it for a listener: closed connections stay in
/// the table for a minute, tens of thousands of them after many short ones.
fn sockets(table: impl BufRead, column: usize, address: SocketAddr, state: &str) -> BTreeSet<u64> {
    // Addresses are written in words, as the machine holds them in memory.
    let octets = match address.ip() {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    let word = |bytes: &[u8; 4]| format!("{:08X}", u32::from_ne_bytes(*bytes));
    let words: String = octets.as_chunks().0.iter().map(word).collect();
    let wanted = format!("{words}:{:04X}", address.port());
    let mut found = BTreeSet::new();
    for line in table.lines().skip(1).map_while(Result::ok) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match (words.get(column), words.get(3)) {
            (Some(address), Some(&of)) if of == state && *address == wanted => {
                found.extend(words.get(9).and_then(|inode| inode.parse::<u64>().ok()));
            }
            (_, Some(&of)) if state == LISTENS && of != LISTENS => break,
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn listeners_are_read_from_the_table() {
        let line = |address: [u8; 4], port: u16, state: &str, inode: u64| {
            let address = u32::from_ne_bytes(address);
            format!(
                "   0: {address:08X}:{port:04X} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000     0        0 \
                 {inode} 1 0000000000000000 100 0 0 10 0\n"
            )
        };
        let table = [
            "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
                .to_owned(),
            line([127, 0, 0, 1], 8080, "0A", 11),
            "nonsense\n".to_owned(),
            line([127, 0, 0, 2], 8080, "0A", 13),
            line([127, 0, 0, 1], 8081, "0A", 14),
            line([127, 0, 0, 1], 8080, "01", 12),
            line([127, 0, 0, 1], 8080, "0A", 15),
        ]
        .concat();
        let of = |state, address: &str| sockets(table.as_bytes(), 1, address.parse().unwrap(), state);
        let listeners = |address| of(LISTENS, address);
        assert_eq!(of(IS_OPEN, "127.0.0.1:8080"), BTreeSet::from([12]));
        // The last one stands where the kernel puts none: nobody has read as far.
        assert_eq!(listeners("127.0.0.1:8080"), BTreeSet::from([11]));
        assert_eq!(listeners("127.0.0.2:8080"), BTreeSet::from([13]));
        assert_eq!(listeners("127.0.0.1:9"), BTreeSet::new());
        assert_eq!(socket("socket:[77]"), Some(77));
        assert_eq!(socket("/dev/null"), None);
    }

    #[test]
    fn this_process_listens_where_it_does() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let me = std::process::id();
        assert!(listens(me, port));
        assert!(!listens(1, port), "another process does not");
        assert!(!connected(me, port));
        let connection = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        assert!(connected(me, port));
        drop(connection);
        drop(listener);
        assert!(!listens(me, port));
        if let Ok(six) = std::net::TcpListener::bind("[::1]:0") {
            assert!(listens_at(me, six.local_addr().unwrap()));
        }
        let memory = memory(me).unwrap();
        assert!(memory.peak > 0 && memory.pss.is_none_or(|pss| pss > 0));
        reset_peak(me);
        assert_eq!(super::memory(u32::MAX), None);
        assert!(cpu(me).unwrap() > Duration::ZERO && cpu(u32::MAX).is_none());
    }

    #[test]
    fn the_tail_is_the_last_lines() {
        assert_eq!(tail(b"a\n\nb\nc\n", 2, 100), "b\nc");
        assert_eq!(tail(b"abcdef", 2, 3), "def");
        assert_eq!(tail(b"", 2, 3), "");
        assert_eq!(tail(b"x\xff", 2, 1), "\u{fffd}");
    }

    #[test]
    fn of_a_long_file_only_the_end_is_read() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "abcdef").unwrap();
        assert_eq!(end_of(file.path(), 2).unwrap(), b"ef");
        assert_eq!(end_of(file.path(), 20).unwrap(), b"abcdef");
    }
}
