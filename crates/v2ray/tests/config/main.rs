//! `config.json` by its public face.
#![allow(clippy::unwrap_used)]

mod api;
mod chains;
mod dns;
mod files;
mod freedom;
mod geo;
mod guards;
mod hostile;
mod http;
mod metrics;
mod moving;
mod problems;
mod reality_links;
mod refusals;
mod shadowsocks;
mod sniffing;
mod transports;
mod trojan;
mod values;
mod vision;
mod xhttp;

use sealway_v2ray::config::{Config, File, Loaded, Options, load};

/// The one variable of the tests' environment.
fn env(name: &str) -> Option<String> {
    (name == "PORT").then(|| "4430".to_owned())
}

fn read(text: &str) -> Loaded {
    let options = Options {
        strict: false,
        env: &env,
    };
    load(
        &[File {
            name: "c.json",
            text: text.as_bytes(),
        }],
        &options,
    )
}

/// The problems as they are shown, but for what `guards` is about: inbounds here are open unless that matters.
fn told(loaded: &Loaded) -> Vec<String> {
    let told = loaded.problems.iter().map(ToString::to_string);
    told.filter(|line| !line.contains(OPEN) && !line.contains(REFUSED))
        .collect()
}

/// What is said of proxies that anyone can use.
const OPEN: &str = "whoever reaches the port may use this proxy";
/// What is said of tunnels that the guard of private addresses would close.
const REFUSED: &str = "is a private address, which clients from outside may not reach";

/// A configuration without any problem.
#[track_caller]
fn good(text: &str) -> Config {
    let loaded = read(text);
    assert_eq!(told(&loaded), Vec::<String>::new());
    loaded.config.unwrap()
}

/// The problems of a configuration with errors.
#[track_caller]
fn bad(text: &str) -> Vec<String> {
    let loaded = read(text);
    assert!(loaded.config.is_none(), "{:?}", loaded.problems);
    assert!(loaded.errors().next().is_some());
    told(&loaded)
}

/// The problems of a configuration that can be used all the same.
#[track_caller]
fn warned(text: &str) -> Vec<String> {
    let loaded = read(text);
    assert!(loaded.config.is_some(), "{:?}", loaded.problems);
    told(&loaded)
}

/// One inbound and one outbound, which is enough for a configuration.
fn with(inbound: &str, outbound: &str) -> String {
    format!("{{\"inbounds\":[{inbound}],\"outbounds\":[{outbound}]}}")
}

const SOCKS: &str = r#"{"port":1080,"protocol":"socks"}"#;
const FREEDOM: &str = r#"{"protocol":"freedom"}"#;
const ID: &str = "b831381d-6324-4d53-ad4f-8cda48b30811";

/// One inbound beside a freedom outbound.
fn inbound(text: &str) -> String {
    with(text, FREEDOM)
}

/// One outbound beside a socks inbound.
fn outbound(text: &str) -> String {
    with(SOCKS, text)
}
