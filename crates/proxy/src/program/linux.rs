//! Programs by their sockets, as Linux tells of them.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use sealway_v2ray::Network;

use super::Program;

/// The program whose socket has this address.
pub(super) fn find(network: Network, client: SocketAddr) -> Option<Program> {
    let inode = inode(network, client)?;
    let wanted = format!("socket:[{inode}]");
    for entry in fs::read_dir("/proc").ok()?.flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        // Those of other users do not open.
        let Ok(held) = fs::read_dir(entry.path().join("fd")) else {
            continue;
        };
        let holds = held.flatten().any(|fd| {
            let target = fs::read_link(fd.path());
            target.is_ok_and(|target| target.as_os_str() == wanted.as_str())
        });
        if holds {
            let path = fs::read_link(entry.path().join("exe")).ok()?;
            let path = path.into_os_string().into_string().ok()?;
            // So it is called when the file was replaced meanwhile, as an update does.
            let path = path.strip_suffix(" (deleted)").unwrap_or(&path).to_owned();
            return Some(Program { pid, path });
        }
    }
    None
}

/// The number of the socket that has this address.
fn inode(network: Network, client: SocketAddr) -> Option<u64> {
    let tables = match (network, client.is_ipv4()) {
        // An IPv6 socket may have an IPv4 address.
        (Network::Tcp, true) => ["tcp", "tcp6"].as_slice(),
        (Network::Udp, true) => &["udp", "udp6"],
        (Network::Tcp, false) => &["tcp6"],
        (Network::Udp, false) => &["udp6"],
    };
    let in_table = |any: bool| {
        tables.iter().find_map(|table| {
            let table = BufReader::new(fs::File::open(format!("/proc/net/{table}")).ok()?);
            let lines = table.lines().map_while(Result::ok);
            lines.skip(1).find_map(|line| {
                let (address, inode) = entry(&line)?;
                let here = address == client || any && address.port() == client.port() && address.ip().is_unspecified();
                (here && inode != 0).then_some(inode)
            })
        })
    };
    // A socket for datagrams may have every address, and send from one.
    in_table(false).or_else(|| in_table(network == Network::Udp))
}

/// The local address and the number of a socket, of a line of the system's table.
fn entry(line: &str) -> Option<(SocketAddr, u64)> {
    let mut words = line.split_ascii_whitespace();
    let address = words.nth(1)?;
    let inode = words.nth(7)?.parse().ok()?;
    let (ip, port) = address.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    // Words of 32 bits, each in this machine's order.
    let word = |at: usize| {
        let digits = ip.get(at * 8..at * 8 + 8)?;
        Some(u32::from_str_radix(digits, 16).ok()?.to_ne_bytes())
    };
    let ip = match ip.len() {
        8 => IpAddr::from(Ipv4Addr::from(word(0)?)),
        32 => {
            let words = [word(0)?, word(1)?, word(2)?, word(3)?];
            let mut bytes = [0; 16];
            bytes.copy_from_slice(words.as_flattened());
            IpAddr::from(Ipv6Addr::from(bytes))
        }
        _ => return None,
    };
    Some((SocketAddr::new(ip.to_canonical(), port), inode))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read() {
        let v4 = "   3: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 81234 1 0000000000000000 100 0 0 10 0";
        let v6 = "   0: B80D0120000000000000000007000000:20FB 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 77 1";
        let mapped =
            "1: 0000000000000000FFFF00000100007F:0050 0000000000000000FFFF00000100007F:0051 01 0:0 0:0 0 0 0 9 1";
        if cfg!(target_endian = "little") {
            assert_eq!(entry(v4), Some(("127.0.0.1:8080".parse().unwrap(), 81234)));
            assert_eq!(entry(v6), Some(("[2001:db8::7]:8443".parse().unwrap(), 77)));
            assert_eq!(entry(mapped), Some(("127.0.0.1:80".parse().unwrap(), 9)));
        }
        for wrong in [
            "",
            "x",
            "1: 0100007F 0 0 0 0 0 0 0 1",
            "1: 01:0050 0 0 0 0 0 0 0 1",
            "1: zz00007F:0050 0 0 0 0 0 0 0 1",
        ] {
            assert_eq!(entry(wrong), None, "{wrong}");
        }
    }
}
