//! The first bytes inside the request of a WebSocket, in both styles and both roles.

use crate::common::{target, udp_target};
use crate::lacks::tries;
use crate::matrix::stream;
use crate::programs::Program;
use crate::ways::{Ear, PROTOCOLS, Pair, VLESS, Way};
use serde_json::{Value, json};

/// Exchanges through ways with these settings of server and client; what the client said first must do.
async fn check(programs: [Program; 2], network: &'static str, extra: [Value; 2], is_early: fn(&str) -> bool) {
    if !programs.iter().all(|program| program.there()) {
        return;
    }
    let protocols = [VLESS, PROTOCOLS[1]];
    let ways = protocols.map(|protocol| Way {
        extra: extra.clone(),
        ear: Some(Ear::default()),
        ..Way::new(protocol, network, false)
    });
    let pair = Pair::start(programs, &ways, (target().await, udp_target().await)).await;
    for (way, (door, _)) in ways.iter().zip(&pair.doors) {
        let name = format!("{programs:?} {}", way.name());
        // Less than fits, more than fits, and much more.
        let mut sizes = [(1, 1), (3000, 3000), (100_000, 100_000)];
        let mut tries = tries(programs[0], way);
        if programs[0] == Program::Xray && network == "httpupgrade" {
            // It may lose what reaches it together with the answer to its request, so nothing is sent at once.
            sizes = sizes.map(|(up, _)| (up, 0));
            tries = 5;
        }
        for sizes in sizes {
            assert_eq!(stream(*door, sizes, tries).await, Ok(()), "{name}");
        }
        let heads = way.ear.as_ref().unwrap().heads();
        assert!(
            heads.iter().any(|head| is_early(head)),
            "{name}: nothing came early: {heads:?}"
        );
    }
}

/// The bytes that a header holds in base64.
fn has_header(head: &str, name: &str) -> bool {
    head.lines().any(|line| {
        line.split_once(": ")
            .is_some_and(|(key, value)| key.eq_ignore_ascii_case(name) && value.len() > 16)
    })
}

fn in_protocol(head: &str) -> bool {
    head.starts_with("GET /way HTTP/1.1\r\n") && has_header(head, "Sec-WebSocket-Protocol")
}

fn in_own_header(head: &str) -> bool {
    head.starts_with("GET /way HTTP/1.1\r\n") && has_header(head, "X-Early")
}

fn in_path(head: &str) -> bool {
    head.strip_prefix("GET /way")
        .and_then(|rest| rest.split_once(' '))
        .is_some_and(|(early, _)| early.len() > 16)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn by_a_number_in_the_path() {
    let style = || [json!({}), json!({"path": "/way?ed=2048"})];
    check([Program::Xray, Program::Ours], "ws", style(), in_protocol).await;
    check([Program::Ours, Program::Xray], "ws", style(), in_protocol).await;
}

/// V2Ray 4.34 has no such thing yet: it takes no notice of the settings, and what it sends is plain. Between two of ours
/// the older style is tested in `matrix.rs` beside this folder.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn v2ray_takes_no_notice_of_the_older_settings() {
    let named = || json!({"maxEarlyData": 2048, "earlyDataHeaderName": "X-Early"});
    let plain = |head: &str| head.starts_with("GET /way HTTP/1.1\r\n") && !has_header(head, "X-Early");
    check([Program::V2ray, Program::Ours], "ws", [named(), named()], plain).await;
    let behind = || json!({"maxEarlyData": 2048});
    check([Program::V2ray, Program::Ours], "ws", [behind(), behind()], plain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ours_sends_it_in_the_older_styles() {
    let named = || json!({"maxEarlyData": 2048, "earlyDataHeaderName": "X-Early"});
    check([Program::Ours, Program::Ours], "ws", [named(), named()], in_own_header).await;
    let behind = || json!({"maxEarlyData": 2048});
    check([Program::Ours, Program::Ours], "ws", [behind(), behind()], in_path).await;
}

/// Xray writes behind the request of an HTTP upgrade without waiting for the answer. Its server may lose that, so ours as
/// the client waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_an_http_upgrade() {
    let style = || [json!({}), json!({"path": "/way?ed=2048"})];
    let any = |head: &str| head.starts_with("GET /way HTTP/1.1\r\n");
    check([Program::Xray, Program::Ours], "httpupgrade", style(), any).await;
    check([Program::Ours, Program::Xray], "httpupgrade", style(), any).await;
}
