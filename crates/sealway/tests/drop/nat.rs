//! Two of ours behind NATs meet at a relay and go on directly, in network namespaces of their own.

use std::path::Path;

use crate::common::namespace::in_namespace;
use crate::common::{self, PROGRAM, private_folder};

fn script(script: &str, arguments: &[&str]) {
    let work = private_folder();
    let mut all = vec![Path::new(PROGRAM), work.path()];
    all.extend(arguments.iter().map(Path::new));
    in_namespace(script, &all);
}

fn way(case: &str) {
    script("drop/nat/ways.sh", &[case]);
}

#[test]
fn nats_that_keep_ports_are_gone_through() {
    way("keeping");
}

#[test]
fn an_end_that_stays_with_the_relay_is_let() {
    way("unwanted");
}

#[test]
fn nats_with_random_ports_leave_it_to_the_relay() {
    way("random");
}

#[test]
fn one_nat_with_random_ports_does_too() {
    way("half-random");
}

/// A router that opens ports, by the program that plays it.
fn opened(by: &str, router: &str) {
    match std::process::Command::new(router).arg("--version").output() {
        Ok(_) => way(&format!("opened-{by}")),
        Err(_) => common::peer_is_missing(&format!("there is no {router} (scripts/install-peers)")),
    }
}

#[test]
fn a_router_that_opens_ports_by_pcp_is_asked() {
    opened("pcp", "miniupnpd");
}

#[test]
fn a_router_that_opens_ports_by_nat_pmp_alone_is_asked() {
    opened("nat-pmp", "python3");
}

#[test]
fn a_router_that_opens_ports_by_upnp_is_asked() {
    opened("upnp", "miniupnpd");
}

#[test]
fn a_nat_behind_a_nat_is_gone_through() {
    way("nested");
}

#[test]
fn two_ends_behind_one_nat_meet_at_home() {
    way("one-home");
}

#[test]
fn two_homes_of_one_provider_that_leads_nobody_back_stay_with_the_relay() {
    way("no-way-back");
}

#[test]
fn two_homes_of_one_provider_that_leads_them_back_meet_there() {
    way("led-back");
}

#[test]
fn firewalls_before_ends_of_ipv6_are_gone_through() {
    way("firewalls");
}

/// Reset three times, and cut without a word once.
#[test]
fn a_direct_path_that_breaks_under_load_loses_nothing() {
    script("drop/nat/breaks.sh", &["4", "80mbit", "100"]);
}

fn mount(options: &[&str]) {
    match Path::new("/dev/fuse").exists() {
        true => script("drop/nat/mount.sh", options),
        false => common::peer_is_missing("there is no /dev/fuse"),
    }
}

#[test]
fn what_is_shared_goes_directly_and_a_break_is_not_noticed() {
    mount(&[]);
}

#[test]
fn a_mount_that_stays_with_the_relay_is_let() {
    mount(&["--no-direct"]);
}
