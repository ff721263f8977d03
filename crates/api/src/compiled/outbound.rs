//! Outbounds.

use serde_json::{Value, json};

use super::json::{Keys, address, strategy};
use super::open::{expect, open};
use super::user::{self, Account};
use super::{Refused, stream, unsupported};
use crate::proto::xray::app::proxyman::SenderConfig;
use crate::proto::xray::common::protocol::{SecurityType, ServerEndpoint};
use crate::proto::xray::proxy::{blackhole, freedom, http, shadowsocks, shadowsocks_2022, socks, trojan, vless, vmess};
use crate::proto::{OutboundHandlerConfig, TypedMessage, canonical};

/// An outbound as `config.json` has it.
pub(super) fn read(compiled: &OutboundHandlerConfig) -> Result<Value, Refused> {
    let mut keys = Keys::default();
    keys.text("tag", &compiled.tag);
    if compiled.sender_settings.is_some() {
        let sender: SenderConfig = expect(compiled.sender_settings.as_ref(), "xray.app.proxyman.SenderConfig")?;
        let via = address(sender.via.as_ref())?;
        match sender.via_cidr.as_str() {
            "" => keys.text("sendThrough", &via),
            // It is "/64" or "64", by version.
            bits => keys.put("sendThrough", format!("{via}/{}", bits.trim_start_matches('/'))),
        };
        if let Some(stream) = &sender.stream_settings {
            keys.put("streamSettings", stream::read(stream)?);
        }
        if let Some(proxy) = sender.proxy_settings.filter(|proxy| !proxy.tag.is_empty()) {
            let transport = proxy.transport_layer_proxy;
            keys.put(
                "proxySettings",
                json!({ "tag": proxy.tag, "transportLayer": transport }),
            );
        }
        if let Some(mux) = &sender.multiplex_settings {
            let mut of_mux = Keys::default();
            of_mux
                .flag("enabled", mux.enabled)
                .number("concurrency", mux.concurrency)
                .number("xudpConcurrency", mux.xudp_concurrency)
                .text("xudpProxyUDP443", &mux.xudp_proxy_udp443);
            keys.put("mux", of_mux.done());
        }
        if sender.target_strategy != 0 {
            keys.put("targetStrategy", strategy(sender.target_strategy)?);
        }
    }
    let Some(proxy) = &compiled.proxy_settings else {
        return Err(Refused::Broken("proxy_settings is missing".to_owned()));
    };
    let (protocol, settings) = protocol(proxy)?;
    keys.put("protocol", protocol).put("settings", settings);
    Ok(keys.done())
}

fn protocol(proxy: &TypedMessage) -> Result<(&'static str, Value), Refused> {
    Ok(match &*canonical(&proxy.r#type) {
        "xray.proxy.freedom.Config" => ("freedom", freedom(&open(proxy)?)?),
        "xray.proxy.blackhole.Config" => {
            let config: blackhole::Config = open(proxy)?;
            let answer = match config.response.as_ref().map(|one| canonical(&one.r#type)).as_deref() {
                None | Some("xray.proxy.blackhole.NoneResponse") => "none",
                Some("xray.proxy.blackhole.HTTPResponse") => "http",
                Some(other) => return unsupported(format!("the answer {other}")),
            };
            ("blackhole", json!({ "response": { "type": answer } }))
        }
        "xray.proxy.vless.outbound.Config" => {
            let config: vless::outbound::Config = open(proxy)?;
            ("vless", server(config.vnext.as_ref())?)
        }
        "xray.proxy.vmess.outbound.Config" => {
            let config: vmess::outbound::Config = open(proxy)?;
            ("vmess", server(config.receiver.as_ref())?)
        }
        "xray.proxy.trojan.ClientConfig" => {
            let config: trojan::ClientConfig = open(proxy)?;
            ("trojan", server(config.server.as_ref())?)
        }
        "xray.proxy.shadowsocks.ClientConfig" => {
            let config: shadowsocks::ClientConfig = open(proxy)?;
            ("shadowsocks", server(config.server.as_ref())?)
        }
        "xray.proxy.shadowsocks_2022.ClientConfig" => {
            let config: shadowsocks_2022::ClientConfig = open(proxy)?;
            if config.udp_over_tcp {
                return unsupported("udp_over_tcp of xray.proxy.shadowsocks_2022.ClientConfig");
            }
            let mut keys = Keys::default();
            keys.text("address", &address(config.address.as_ref())?)
                .number("port", config.port)
                .text("method", &config.method)
                .text("password", &config.key);
            ("shadowsocks", keys.done())
        }
        "xray.proxy.socks.ClientConfig" => {
            let config: socks::ClientConfig = open(proxy)?;
            ("socks", server(config.server.as_ref())?)
        }
        "xray.proxy.http.ClientConfig" => {
            let config: http::ClientConfig = open(proxy)?;
            let mut settings = server(config.server.as_ref())?;
            for header in config.header {
                settings["headers"][header.key] = header.value.into();
            }
            ("http", settings)
        }
        other => return unsupported(format!("the outbound {other}")),
    })
}

/// A server and who we are there, whose keys stand side by side.
fn server(endpoint: Option<&ServerEndpoint>) -> Result<Value, Refused> {
    let Some(endpoint) = endpoint else {
        return Err(Refused::Broken("the server is missing".to_owned()));
    };
    let mut keys = Keys::default();
    keys.text("address", &address(endpoint.address.as_ref())?)
        .number("port", endpoint.port);
    let Some(given) = &endpoint.user else {
        return Ok(keys.done());
    };
    keys.number("level", given.level).text("email", &given.email);
    match user::account(given)? {
        Account::Vless { id, flow, seed } => {
            keys.text("id", &id)
                .put("encryption", "none")
                .text("flow", &flow)
                .list("testseed", &seed);
            let ready = given.account.as_ref().map(open::<vless::Account>);
            keys.number("testpre", ready.transpose()?.map_or(0, |account| account.testpre));
        }
        Account::Vmess { id } => {
            let account = given.account.as_ref().map(open::<vmess::Account>).transpose()?;
            let account = account.unwrap_or_default();
            let security = account.security_settings.map_or(0, |settings| settings.r#type);
            let security = match SecurityType::try_from(security) {
                Ok(SecurityType::Aes128Gcm) => "aes-128-gcm",
                Ok(SecurityType::Chacha20Poly1305) => "chacha20-poly1305",
                Ok(SecurityType::None) => "none",
                Ok(SecurityType::Zero) => "zero",
                _ => "auto",
            };
            keys.text("id", &id)
                .put("security", security)
                .text("experiments", &account.tests_enabled);
        }
        Account::Trojan { password } => {
            keys.text("password", &password);
        }
        Account::Shadowsocks { password, method } => {
            keys.text("password", &password)
                .text("method", method.map_or("", |method| method.name()));
        }
        Account::Named { user, pass } => {
            keys.text("user", &user).text("pass", &pass);
        }
    }
    Ok(keys.done())
}

fn freedom(config: &freedom::Config) -> Result<Value, Refused> {
    let mut keys = Keys::default();
    keys.put("domainStrategy", strategy(config.domain_strategy)?)
        .number("userLevel", config.user_level)
        .number("proxyProtocol", config.proxy_protocol);
    let target = config
        .destination_override
        .as_ref()
        .and_then(|given| given.server.as_ref());
    if let Some(target) = target {
        let host = match address(target.address.as_ref())? {
            host if host.contains(':') => format!("[{host}]"),
            host => host,
        };
        let port = Some(target.port).filter(|port| *port != 0);
        let port = port.map(|port| port.to_string()).unwrap_or_default();
        keys.put("redirect", format!("{host}:{port}"));
    }
    if let Some(given) = &config.fragment {
        let mut fragment = Keys::default();
        match (given.packets_from, given.packets_to) {
            (0, 1) => fragment.put("packets", "tlshello"),
            (from, to) => fragment.span("packets", from, to),
        };
        fragment
            .put("length", format!("{}-{}", given.length_min, given.length_max))
            .put("interval", format!("{}-{}", given.interval_min, given.interval_max))
            .span("maxSplit", given.max_split_min, given.max_split_max);
        keys.put("fragment", fragment.done());
    }
    let noises = config.noises.iter().map(|given| {
        let mut noise = Keys::default();
        match given.packet.is_empty() {
            true => noise
                .put("type", "rand")
                .put("packet", format!("{}-{}", given.length_min, given.length_max)),
            false => noise
                .put("type", "hex")
                .put("packet", sealway_v2ray::text::hex(&given.packet)),
        };
        noise
            .put("delay", format!("{}-{}", given.delay_min, given.delay_max))
            .text("applyTo", &given.apply_to);
        noise.done()
    });
    keys.list("noises", &noises.collect::<Vec<_>>());
    Ok(keys.done())
}
