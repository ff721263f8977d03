use std::net::{Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use super::*;

fn set(nets: &[&str]) -> IpSet {
    let mut builder = IpSet::builder();
    for net in nets {
        builder.net(net.parse().unwrap());
    }
    builder.build()
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn both_ends_of_a_network_are_in_it() {
    let all = set(&[
        "192.0.2.0/24",
        "10.0.0.0/8",
        "2001:db8::/32",
        "255.255.255.255/32",
        "::/128",
    ]);
    for inside in [
        "192.0.2.0",
        "192.0.2.255",
        "10.255.255.255",
        "2001:db8::",
        "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff",
        "255.255.255.255",
        "::",
        "::ffff:192.0.2.7",
    ] {
        assert!(all.matches(ip(inside)), "{inside}");
    }
    for outside in [
        "192.0.1.255",
        "192.0.3.0",
        "9.255.255.255",
        "11.0.0.0",
        "2001:db9::",
        "::1",
        "0.0.0.0",
    ] {
        assert!(!all.matches(ip(outside)), "{outside}");
    }
}

#[test]
fn families_are_apart() {
    let v4 = set(&["0.0.0.0/0"]);
    assert!(v4.matches(ip("255.255.255.255")) && v4.matches(ip("::ffff:1.2.3.4")) && !v4.matches(ip("::1")));
    assert!(v4.has_family_of(ip("1.1.1.1")) && !v4.has_family_of(ip("::1")));
    let v6 = set(&["::/0"]);
    assert!(v6.matches(ip("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff")) && !v6.matches(ip("1.2.3.4")));
    assert!(set(&["::ffff:192.0.2.0/120"]).matches(ip("192.0.2.9")));
    assert!(set(&[]).is_empty() && !set(&[]).matches(ip("::")));
}

#[test]
fn neighbours_become_one_range() {
    assert_eq!(set(&["10.0.0.0/9", "10.128.0.0/9", "10.3.0.0/16"]).len(), 1);
    assert_eq!(set(&["10.0.0.0/24", "10.0.2.0/24"]).len(), 2);
}

#[test]
fn a_range_takes_eight_bytes_and_its_part_of_the_index() {
    let mut builder = IpSet::builder();
    for i in 0..8192u32 {
        builder.net(IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::from(i << 16), 24)));
    }
    let all = builder.build();
    assert_eq!(all.len(), 8192);
    assert!(all.memory() <= 8192 * 12 + 256, "{}", all.memory());
}

proptest! {
    #[test]
    fn sets_answer_as_their_networks_one_by_one(
        v4 in proptest::collection::vec((any::<u32>(), 0u8..=32), 0..60),
        v6 in proptest::collection::vec((any::<u128>(), 0u8..=128), 0..60),
        far in proptest::collection::vec(any::<u128>(), 20),
        narrow in 4u8..=32,
    ) {
        // Most networks are narrow, or one would hide the others.
        let v4 = v4.iter().map(|&(ip, bits)| Ipv4Net::new_assert(Ipv4Addr::from(ip), bits.max(narrow)).into());
        let v6 = v6.iter().map(|&(ip, bits)| ipnet::Ipv6Net::new_assert(Ipv6Addr::from(ip), bits.max(narrow)).into());
        let nets: Vec<IpNet> = v4.chain(v6).collect();
        let mut builder = IpSet::builder();
        for net in &nets {
 builder.net(*net);
 }
        let all = builder.build();
        let near = nets.iter().flat_map(|net| {
            let ends = [net.network(), net.broadcast()];
            ends.into_iter().flat_map(|ip| match ip {
                IpAddr::V4(ip) => [-1, 0, 1].map(|d| IpAddr::from(Ipv4Addr::from(ip.to_bits().wrapping_add_signed(d)))),
                IpAddr::V6(ip) => [-1, 0, 1].map(|d| IpAddr::from(Ipv6Addr::from(ip.to_bits().wrapping_add_signed(d)))),
            })
        });
        let far = far.iter().flat_map(|&n| [IpAddr::from(Ipv6Addr::from(n)), IpAddr::from(Ipv4Addr::from(n as u32))]);
        for ip in near.chain(far) {
            let wanted = nets.iter().any(|net| canonical(*net).contains(&ip.to_canonical()));
            prop_assert_eq!(all.matches(ip), wanted, "{}", ip);
        }
    }
}
