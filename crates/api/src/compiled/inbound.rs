//! Inbounds.

use serde_json::{Value, json};

use super::json::{Keys, address, networks, ports};
use super::open::{expect, open};
use super::stream::{self, sniffing};
use super::user::{self, Account};
use super::{Refused, unsupported};
use crate::proto::xray::app::proxyman::ReceiverConfig;
use crate::proto::xray::proxy::{dokodemo, http, shadowsocks, shadowsocks_2022, socks, trojan, vless, vmess};
use crate::proto::{InboundHandlerConfig, TypedMessage, User, canonical};

/// Ports of an inbound.
pub(crate) const MAX_PORTS: usize = 65_536;

/// An inbound as `config.json` has it, and whether nobody may use it yet.
pub(super) fn read(compiled: &InboundHandlerConfig) -> Result<(Value, bool), Refused> {
    let receiver: ReceiverConfig = expect(compiled.receiver_settings.as_ref(), "xray.app.proxyman.ReceiverConfig")?;
    let Some(proxy) = &compiled.proxy_settings else {
        return Err(Refused::Broken("proxy_settings is missing".to_owned()));
    };
    let (protocol, settings, nobody) = protocol(proxy)?;
    // The one protocol for which Xray sets it.
    if receiver.receive_original_destination && settings["followRedirect"] != true {
        return unsupported("receive_original_destination of xray.app.proxyman.ReceiverConfig");
    }
    let mut keys = Keys::default();
    keys.text("tag", &compiled.tag)
        .text("listen", &address(receiver.listen.as_ref())?)
        .put("protocol", protocol)
        .put("settings", settings);
    if let Some(list) = &receiver.port_list {
        let all: u64 = list
            .range
            .iter()
            .map(|range| u64::from(range.to.saturating_sub(range.from)) + 1)
            .sum();
        if all > MAX_PORTS as u64 {
            return Err(Refused::Wrong(format!(
                "{all} ports; at most {MAX_PORTS} are listened on"
            )));
        }
        keys.text("port", &ports(list));
    }
    if let Some(stream) = &receiver.stream_settings {
        keys.put("streamSettings", stream::read(stream)?);
    }
    if let Some(given) = &receiver.sniffing_settings {
        keys.put("sniffing", sniffing(given)?);
    }
    Ok((keys.done(), nobody))
}

fn protocol(proxy: &TypedMessage) -> Result<(&'static str, Value, bool), Refused> {
    let mut keys = Keys::default();
    let mut nobody = false;
    let word = match &*canonical(&proxy.r#type) {
        "xray.proxy.vless.inbound.Config" => {
            let config: vless::inbound::Config = open(proxy)?;
            let decryption = match config.decryption.as_str() {
                "" => "none",
                given => given,
            };
            keys.put("clients", users(&config.clients)?)
                .put("decryption", decryption);
            let fallbacks = config.fallbacks.into_iter().map(|one| trojan::Fallback {
                name: one.name,
                alpn: one.alpn,
                path: one.path,
                r#type: one.r#type,
                dest: one.dest,
                xver: one.xver,
            });
            keys.list("fallbacks", &fallbacks.map(fallback).collect::<Vec<_>>());
            "vless"
        }
        "xray.proxy.vmess.inbound.Config" => {
            let config: vmess::inbound::Config = open(proxy)?;
            keys.put("clients", users(&config.user)?);
            let level = config.default.map_or(0, |default| default.level);
            keys.put("default", json!({ "level": level }));
            "vmess"
        }
        "xray.proxy.trojan.ServerConfig" => {
            let config: trojan::ServerConfig = open(proxy)?;
            keys.put("clients", users(&config.users)?);
            keys.list(
                "fallbacks",
                &config.fallbacks.into_iter().map(fallback).collect::<Vec<_>>(),
            );
            "trojan"
        }
        "xray.proxy.shadowsocks.ServerConfig" => {
            let config: shadowsocks::ServerConfig = open(proxy)?;
            keys.put("clients", users(&config.users)?)
                .list("network", &networks(&config.network)?);
            "shadowsocks"
        }
        "xray.proxy.shadowsocks_2022.ServerConfig" => {
            let config: shadowsocks_2022::ServerConfig = open(proxy)?;
            keys.text("method", &config.method)
                .text("password", &config.key)
                .text("email", &config.email)
                .number("level", config.level)
                .list("network", &networks(&config.network)?);
            "shadowsocks"
        }
        "xray.proxy.shadowsocks_2022.MultiUserServerConfig" => {
            let config: shadowsocks_2022::MultiUserServerConfig = open(proxy)?;
            nobody = config.users.is_empty();
            keys.text("method", &config.method)
                .text("password", &config.key)
                .put("clients", users(&config.users)?)
                .list("network", &networks(&config.network)?);
            "shadowsocks"
        }
        "xray.proxy.socks.ServerConfig" => {
            let config: socks::ServerConfig = open(proxy)?;
            let closed = config.auth_type == socks::AuthType::Password as i32;
            keys.put("auth", if closed { "password" } else { "noauth" })
                .put("accounts", accounts(&config.accounts))
                .text("ip", &address(config.address.as_ref())?)
                .flag("udp", config.udp_enabled)
                .number("userLevel", config.user_level);
            "socks"
        }
        "xray.proxy.http.ServerConfig" => {
            let config: http::ServerConfig = open(proxy)?;
            keys.put("accounts", accounts(&config.accounts))
                .flag("allowTransparent", config.allow_transparent)
                .number("userLevel", config.user_level);
            "http"
        }
        "xray.proxy.dokodemo.Config" => {
            let config: dokodemo::Config = open(proxy)?;
            if !config.port_map.is_empty() {
                return unsupported("port_map of xray.proxy.dokodemo.Config");
            }
            keys.text("address", &address(config.address.as_ref())?)
                .number("port", config.port)
                .list("network", &networks(&config.networks)?)
                .flag("followRedirect", config.follow_redirect)
                .number("userLevel", config.user_level);
            "dokodemo-door"
        }
        other => return unsupported(format!("the inbound {other}")),
    };
    Ok((word, keys.done(), nobody))
}

fn accounts(list: &std::collections::BTreeMap<String, String>) -> Vec<Value> {
    let list = list.iter().map(|(user, pass)| json!({ "user": user, "pass": pass }));
    list.collect()
}

fn fallback(one: trojan::Fallback) -> Value {
    let mut keys = Keys::default();
    keys.text("name", &one.name)
        .text("alpn", &one.alpn)
        .text("path", &one.path)
        .text("type", &one.r#type)
        .text("dest", &one.dest)
        .number("xver", one.xver);
    keys.done()
}

fn users(list: &[User]) -> Result<Vec<Value>, Refused> {
    let one = |given: &User| {
        user::check_email(&given.email)?;
        let mut keys = Keys::default();
        keys.text("email", &given.email).number("level", given.level);
        match user::account(given)? {
            Account::Vless { id, flow, seed } => {
                keys.text("id", &id).put("flow", flow).list("testseed", &seed);
            }
            Account::Vmess { id } => {
                keys.text("id", &id);
            }
            Account::Trojan { password } => {
                keys.text("password", &password);
            }
            Account::Shadowsocks { password, method } => {
                keys.text("password", &password);
                if let Some(method) = method {
                    keys.put("method", method.name());
                }
            }
            Account::Named { .. } => return unsupported("names and passwords as accounts of this inbound"),
        }
        Ok(keys.done())
    };
    list.iter().map(one).collect()
}
