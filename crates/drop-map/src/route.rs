//! The router that the default route leads to.

use std::net::Ipv4Addr;

/// Flags of a route that is up and leads to a router (`RTF_UP`, `RTF_GATEWAY`).
const UP_TO_GATEWAY: u32 = 3;

/// The router of IPv4, where the system says it; only Linux does so here.
pub(super) fn gateway() -> Option<Ipv4Addr> {
    of_table(&std::fs::read_to_string("/proc/net/route").ok()?)
}

/// That of the default route with the least metric in the text of `/proc/net/route` (proc_net(5)).
fn of_table(table: &str) -> Option<Ipv4Addr> {
    let routes = table.lines().skip(1).filter_map(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let hex = |at: usize| u32::from_str_radix(fields.get(at)?, 16).ok();
        let is_default = hex(1)? == 0 && hex(7)? == 0 && hex(3)? & UP_TO_GATEWAY == UP_TO_GATEWAY;
        let metric: u32 = fields.get(6)?.parse().ok()?;
        // As the bytes stand in memory.
        is_default.then_some((metric, Ipv4Addr::from(hex(2)?.to_ne_bytes())))
    });
    routes.min_by_key(|(metric, _)| *metric).map(|(_, gateway)| gateway)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_route_with_the_least_metric_counts() {
        let router = |last: u8| format!("{:08X}", u32::from_ne_bytes([192, 168, 1, last]));
        let table = format!(
            "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n\
             wlan0\t00000000\t{}\t0003\t0\t0\t600\t00000000\t0\t0\t0\n\
             eth0\t00000000\t{}\t0003\t0\t0\t100\t00000000\t0\t0\t0\n\
             tun0\t00000000\t00000000\t0001\t0\t0\t50\t00000000\t0\t0\t0\n\
             eth0\t0001A8C0\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0\n",
            router(1),
            router(2)
        );
        assert_eq!(of_table(&table), Some(Ipv4Addr::new(192, 168, 1, 2)));
        for broken in ["", "Iface\n", "Iface\neth0\n", "Iface\neth0 x y z a b c d\n"] {
            assert_eq!(of_table(broken), None);
        }
    }
}
