//! Commands that read configurations.

use std::net::IpAddr;

use sealway_v2ray::config::{self, File};
use sealway_v2ray::shadowsocks::Method;
use serde_json::Value;
use zeroize::Zeroizing;

use super::{Failed, Flags, Print, TypedMessage, alter, said};
use crate::client::connect::Caller;
use crate::compiled::typed;
use crate::proto::xray::app::router::routing_rule::TargetTag;
use crate::proto::xray::app::router::{Cidr, Config, GeoIp, RoutingRule};
use crate::proto::xray::common::protocol::{SecurityConfig, SecurityType};
use crate::proto::xray::proxy::{shadowsocks, shadowsocks_2022, socks, trojan, vless, vmess};
use crate::proto::{User, handler, ip_bytes};
use crate::wipe::Secret;

/// Longest file that is read, bytes.
const MAX_FILE: u64 = 32 << 20;

/// All of a file that has at most so many bytes.
pub(super) fn whole(name: &str, most: u64) -> Result<Zeroizing<Vec<u8>>, Failed> {
    let failed = |error: &dyn std::fmt::Display| Failed::File(format!("failed to load {name}: {error}"));
    let size = std::fs::metadata(name).map_err(|error| failed(&error))?.len();
    if size > most {
        return Err(failed(&format_args!("it has {size} bytes; at most {most} are read")));
    }
    std::fs::read(name).map(Zeroizing::new).map_err(|error| failed(&error))
}

/// A configuration, as plain JSON.
pub(super) fn read(name: &str) -> Result<Secret, Failed> {
    let text = whole(name, MAX_FILE)?;
    let file = File { name, text: &text };
    let plain = config::plain(&file).map_err(|problem| Failed::File(problem.to_string()))?;
    Ok(Secret::from(plain))
}

/// The value of a key, whatever its letter case.
pub(super) fn get<'v>(value: &'v Value, key: &str) -> &'v Value {
    let mut members = value.as_object().into_iter().flatten();
    let found = members.rfind(|(name, _)| name.eq_ignore_ascii_case(key));
    found.map_or(&Value::Null, |(_, value)| value)
}

pub(super) fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    get(value, key).as_array().map_or(&[], Vec::as_slice)
}

pub(super) fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    get(value, key).as_str().unwrap_or_default()
}

/// The tags that words stand for: a file for those in it.
pub(super) fn tags(words: &[String], of: &str) -> Result<Vec<String>, Failed> {
    let mut tags = Vec::new();
    for word in words {
        match std::path::Path::new(word).is_file() {
            true => {
                let file = read(word)?;
                tags.extend(list(&file, of).iter().map(|one| text(one, "tag").to_owned()));
            }
            false => tags.push(word.clone()),
        }
    }
    Ok(tags)
}

/// Adds the users of inbounds.
pub(super) async fn add_users(flags: &Flags, caller: &Caller, print: Print<'_>) -> Result<(), Failed> {
    let mut added = 0;
    for name in &flags.words {
        let file = read(name)?;
        for inbound in list(&file, "inbounds") {
            let tag = text(inbound, "tag");
            print(&format!("processing inbound: {tag}\n"));
            if tag.is_empty() {
                print("the inbound has no tag\n");
                continue;
            }
            for client in users(inbound) {
                match user(inbound, client) {
                    Ok(user) => {
                        print(&format!("add user: {}\n", user.email));
                        let operation = handler::AddUserOperation { user: Some(user) };
                        let kind = "xray.app.proxyman.command.AddUserOperation";
                        match alter(caller, tag, kind, &operation).await {
                            Ok(()) => {
                                print("result: ok\n");
                                added += 1;
                            }
                            Err(status) => print(&format!("{}\n", said(&status))),
                        }
                    }
                    Err(what) => print(&format!("{what}\n")),
                }
            }
        }
    }
    print(&format!("Added {added} user(s) in total.\n"));
    Ok(())
}

/// The users of an inbound, by whatever name its protocol has for them.
pub(super) fn users(inbound: &Value) -> &[Value] {
    let settings = get(inbound, "settings");
    let named = ["clients", "users", "accounts"];
    let found = named.into_iter().map(|key| list(settings, key));
    found.into_iter().find(|list| !list.is_empty()).unwrap_or_default()
}

/// A user of an inbound in compiled form.
pub(super) fn user(inbound: &Value, client: &Value) -> Result<User, String> {
    let settings = get(inbound, "settings");
    let own = |key: &str| text(client, key).to_owned();
    let account = match text(inbound, "protocol").to_ascii_lowercase().as_str() {
        "vless" => {
            let mut account = vless::Account::default();
            account.id = own("id");
            account.flow = match text(client, "flow") {
                "" => text(settings, "flow").to_owned(),
                flow => flow.to_owned(),
            };
            typed("xray.proxy.vless.Account", &account)
        }
        "vmess" => {
            let mut account = vmess::Account::default();
            account.id = own("id");
            account.security_settings = Some(SecurityConfig {
                r#type: SecurityType::Auto.into(),
            });
            account.tests_enabled = own("experiments");
            typed("xray.proxy.vmess.Account", &account)
        }
        "trojan" => typed(
            "xray.proxy.trojan.Account",
            &trojan::Account {
                password: own("password"),
            },
        ),
        "shadowsocks" => {
            let named = match text(client, "method") {
                "" => text(settings, "method"),
                own => own,
            };
            let method = Method::named(named).ok_or_else(|| format!("{named:?} is no method of Shadowsocks"))?;
            shadowsocks_account(method, own("password"))
        }
        "socks" | "mixed" | "http" => typed(
            "xray.proxy.socks.Account",
            &socks::Account {
                username: own("user"),
                password: own("pass"),
            },
        ),
        other => return Err(format!("inbounds of the protocol {other:?} have no users")),
    };
    let level = get(client, "level").as_u64().unwrap_or_default();
    Ok(User {
        level: u32::try_from(level).map_err(|_| format!("{level} is no level"))?,
        email: own("email"),
        account: Some(account),
    })
}

fn shadowsocks_account(method: Method, password: String) -> TypedMessage {
    if method.is_2022() {
        let account = shadowsocks_2022::Account { key: password };
        return typed("xray.proxy.shadowsocks_2022.Account", &account);
    }
    let cipher = match method {
        Method::Aes256Gcm => shadowsocks::CipherType::Aes256Gcm,
        Method::ChaCha20Poly1305 => shadowsocks::CipherType::Chacha20Poly1305,
        Method::XChaCha20Poly1305 => shadowsocks::CipherType::Xchacha20Poly1305,
        _ => shadowsocks::CipherType::Aes128Gcm,
    };
    let account = shadowsocks::Account {
        password,
        cipher_type: cipher.into(),
        iv_check: false,
    };
    typed("xray.proxy.shadowsocks.Account", &account)
}

/// A rule about addresses of clients.
pub(super) fn source_rule(rule_tag: &str, flags: &Flags) -> Result<TypedMessage, Failed> {
    let network = |word: &String| {
        let (ip, prefix) = word
            .split_once('/')
            .map_or((word.as_str(), None), |(ip, bits)| (ip, Some(bits)));
        let wrong = || Failed::Usage(format!("{word:?} is no IP address"));
        let ip: IpAddr = ip.parse().map_err(|_| wrong())?;
        let most = if ip.is_ipv4() { 32 } else { 128 };
        let prefix = prefix.map_or(Ok(most), str::parse).map_err(|_| wrong())?;
        (prefix <= most)
            .then_some(Cidr {
                ip: ip_bytes(ip),
                prefix,
            })
            .ok_or_else(wrong)
    };
    let cidr = flags.words.iter().map(network).collect::<Result<Vec<_>, _>>()?;
    let source = GeoIp {
        cidr,
        ..Default::default()
    };
    let inbound = Some(flags.text("inbound")).filter(|tag| !tag.is_empty());
    let rule = RoutingRule {
        rule_tag: rule_tag.to_owned(),
        inbound_tag: inbound.map(str::to_owned).into_iter().collect(),
        source_geoip: vec![prost::Message::encode_to_vec(&source)],
        target_tag: Some(TargetTag::Tag(flags.text("outbound").to_owned())),
        ..Default::default()
    };
    let config = Config {
        rule: vec![rule],
        ..Default::default()
    };
    Ok(typed("xray.app.router.Config", &config))
}
