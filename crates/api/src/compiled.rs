//! Inbounds, outbounds, users and rules in the compiled form that the family's programs send to each other.
//!
//! Reading goes through `config.json`: a compiled message becomes the JSON that means the same, and that is read as a file
//! would be, so that both have the same values, checks and words. Writing goes from [`sealway_proxy::settings`] straight to
//! the messages.

mod inbound;
mod json;
mod open;
mod outbound;
mod routing;
mod security;
mod stream;
mod transport;
mod user;
pub(crate) mod write;

#[cfg(test)]
pub(crate) mod tests;

use std::fmt;

use sealway_proxy::settings::{Balancer, Inbound, InboundProtocol, Outbound, Rule, Settings, ShadowsocksUsers};
use sealway_v2ray::config::{self, File, Options};
use serde_json::{Value, json};
use zeroize::Zeroizing;

use crate::proto::{InboundHandlerConfig, OutboundHandlerConfig, TypedMessage};
use crate::wipe::Secret;

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use inbound::MAX_PORTS;
pub(crate) use open::{open, typed};
pub(crate) use user::new_user;

/// Why a compiled message is not taken.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Refused {
    /// It is not what it says it is.
    Broken(String),
    /// It asks for something that is not supported here.
    Unsupported(String),
    /// It was read, and what it says is wrong.
    Wrong(String),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Broken(what) => write!(f, "cannot be decoded: {what}"),
            Refused::Unsupported(what) => write!(f, "not supported: {what}"),
            Refused::Wrong(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for Refused {}

fn unsupported<T>(what: impl Into<String>) -> Result<T, Refused> {
    Err(Refused::Unsupported(what.into()))
}

/// Reads a compiled inbound.
///
/// # Errors
/// [`Refused`] names what is wrong with it.
pub fn inbound(compiled: &InboundHandlerConfig) -> Result<Inbound, Refused> {
    let (value, nobody) = inbound::read(compiled)?;
    let mut inbound = inbound_of_file(value)?;
    // As a file, a method of 2022 without users is one that a single key opens.
    if let InboundProtocol::Shadowsocks(shadowsocks) = &mut inbound.protocol
        && let (true, ShadowsocksUsers::One(own)) = (nobody, &shadowsocks.users)
    {
        shadowsocks.users = ShadowsocksUsers::Many(own.id.clone(), Vec::new());
    }
    Ok(inbound)
}

/// Reads an inbound as a file has it.
pub(crate) fn inbound_of_file(value: Value) -> Result<Inbound, Refused> {
    let mut settings = load(json!({ "inbounds": [value], "outbounds": [{ "protocol": "blackhole" }] }))?;
    // They stand beside it.
    match settings.limits.is_empty() {
        true => settings.inbounds.pop().ok_or_else(nothing),
        false => unsupported("limits of users in compiled form"),
    }
}

/// Reads a compiled outbound.
///
/// # Errors
/// [`Refused`] names what is wrong with it.
pub fn outbound(compiled: &OutboundHandlerConfig) -> Result<Outbound, Refused> {
    outbound_of_file(outbound::read(compiled)?)
}

/// Reads an outbound as a file has it.
pub(crate) fn outbound_of_file(value: Value) -> Result<Outbound, Refused> {
    // Those that it dials through are there already.
    let mut all = vec![value.clone()];
    let through = [
        &value["proxySettings"]["tag"],
        &value["streamSettings"]["sockopt"]["dialerProxy"],
    ];
    let through: std::collections::BTreeSet<_> = through.into_iter().filter_map(Value::as_str).collect();
    let others = through
        .into_iter()
        .filter(|tag| !tag.is_empty() && value["tag"] != **tag);
    all.extend(others.map(|tag| json!({ "tag": tag, "protocol": "freedom" })));
    let settings = load(json!({ "inbounds": [], "outbounds": all }))?;
    settings.outbounds.into_iter().next().ok_or_else(nothing)
}

/// Reads compiled rules and balancers. Whether there are the outbounds and balancers that they lead to is not looked at.
///
/// # Errors
/// [`Refused`] names what is wrong with them.
pub fn rules(compiled: &TypedMessage) -> Result<(Vec<Rule>, Vec<Balancer>), Refused> {
    let (rules, balancers) = routing::read(compiled)?;
    rules_of_file(rules, balancers)
}

/// Reads rules and balancers as a file has them, in the same way.
pub(crate) fn rules_of_file(rules: Vec<Value>, balancers: Vec<Value>) -> Result<(Vec<Rule>, Vec<Balancer>), Refused> {
    let asked = balancers.len();
    let settings = load(routing::document(rules, balancers))?;
    let balancers = settings.balancers.into_iter().take(asked).collect();
    Ok((settings.rules, balancers))
}

fn nothing() -> Refused {
    Refused::Broken("nothing is in it".to_owned())
}

/// Reads a document as a file is read.
fn load(document: Value) -> Result<Settings, Refused> {
    let document = Secret::from(document);
    let text = Zeroizing::new(document.to_string());
    let file = File {
        name: "compiled",
        text: text.as_bytes(),
    };
    let loaded = config::load(&[file], &Options::default());
    let Some(config) = &loaded.config else {
        let problems: Vec<_> = loaded
            .errors()
            .map(|problem| format!("{}: {}", problem.path, problem.text))
            .collect();
        return match problems.iter().any(|problem| problem.contains("not supported yet")) {
            true => unsupported(problems.join("; ")),
            false => Err(Refused::Wrong(problems.join("; "))),
        };
    };
    Settings::from_config(config).map_err(|error| Refused::Wrong(error.to_string()))
}
