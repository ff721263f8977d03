//! Inbounds, outbounds and rules of files, sent in compiled form.

use prost::Message;
use serde_json::{Value, json};

use super::files::{get, list, read, text, user, users};
use super::{Caller, Failed, Flags, Print, add_rules, failed, show};
use crate::compiled::{self, Refused, open, typed, write};
use crate::proto::xray::app::proxyman::ReceiverConfig;
use crate::proto::xray::common::protocol::ServerEndpoint;
use crate::proto::xray::proxy::{http, shadowsocks, shadowsocks_2022, socks, trojan};
use crate::proto::xray::transport::internet::tls;
use crate::proto::{InboundHandlerConfig, OutboundHandlerConfig, TypedMessage, User, handler};
use crate::wipe::Secret;

/// Longest file of a certificate or key, bytes.
const MAX_PEM: u64 = 1 << 20;

/// What files hold under a key.
fn all(flags: &Flags, key: &str, what: &str) -> Result<Vec<Secret>, Failed> {
    let mut all = Vec::new();
    for name in &flags.words {
        let file = read(name)?;
        all.extend(list(&file, key).iter().cloned().map(Secret::from));
    }
    match all.is_empty() {
        true => Err(Failed::File(format!("no valid {what} found"))),
        false => Ok(all),
    }
}

fn unbuilt(why: impl std::fmt::Display) -> Failed {
    Failed::File(format!("failed to build conf: {why}"))
}

/// Refuses what the other end would read as something else.
fn same<T: PartialEq>(read: Result<T, Refused>, wanted: &T) -> Result<(), Failed> {
    match read.map_err(unbuilt)? == *wanted {
        true => Ok(()),
        false => Err(unbuilt("not supported: it has settings that are lost in compiled form")),
    }
}

/// Adds the inbounds of files.
pub(super) async fn inbounds(flags: &Flags, caller: &Caller, print: Print<'_>) -> Result<(), Failed> {
    let add = Add {
        key: "inbounds",
        what: "inbound",
        path: path!(handler "AddInbound"),
        answer: "xray.app.proxyman.command.AddInboundResponse",
    };
    let request = |file: &Value| inbound(file).map(|inbound| handler::AddInboundRequest { inbound: Some(inbound) });
    add.each::<_, handler::AddInboundResponse>(flags, caller, print, request)
        .await
}

/// Adds the outbounds of files.
pub(super) async fn outbounds(flags: &Flags, caller: &Caller, print: Print<'_>) -> Result<(), Failed> {
    let add = Add {
        key: "outbounds",
        what: "outbound",
        path: path!(handler "AddOutbound"),
        answer: "xray.app.proxyman.command.AddOutboundResponse",
    };
    let request = |file: &Value| {
        outbound(file).map(|outbound| handler::AddOutboundRequest {
            outbound: Some(outbound),
        })
    };
    add.each::<_, handler::AddOutboundResponse>(flags, caller, print, request)
        .await
}

/// How something is added of which files hold a list.
struct Add {
    key: &'static str,
    what: &'static str,
    path: &'static str,
    /// The name of the answer.
    answer: &'static str,
}

impl Add {
    /// Adds one after another, up to the first that fails.
    async fn each<Q, A>(
        &self,
        flags: &Flags,
        caller: &Caller,
        print: Print<'_>,
        request: impl Fn(&Value) -> Result<Q, Failed>,
    ) -> Result<(), Failed>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        for file in all(flags, self.key, self.what)? {
            print(&format!("adding: {}\n", text(&file, "tag")));
            let called = caller.call::<Q, A>(self.path, request(&file)?).await;
            let answer = called.map_err(failed(&format!("add {}", self.what)))?;
            show(print, self.answer, &answer)?;
        }
        Ok(())
    }
}

/// Adds the rules of files.
pub(super) async fn rules(flags: &Flags, caller: &Caller, print: Print<'_>) -> Result<(), Failed> {
    for name in &flags.words {
        let file = read(name)?;
        let routing = get(&file, "routing");
        if routing.is_null() {
            let what = "failed to add routing rule: config did not have \"routing\" field";
            return Err(Failed::File(what.to_owned()));
        }
        let of = |key: &str| list(routing, key).to_vec();
        let (rules, balancers) = compiled::rules_of_file(of("rules"), of("balancers")).map_err(unbuilt)?;
        let config = write::rules(&rules, &balancers).map_err(unbuilt)?;
        add_rules(caller, config, flags.on("append"), print).await?;
    }
    Ok(())
}

/// An inbound of a file in compiled form.
fn inbound(file: &Value) -> Result<InboundHandlerConfig, Failed> {
    let wanted = compiled::inbound_of_file(file.clone()).map_err(unbuilt)?;
    let mut sent = write::inbound(&wanted, true);
    if let Some(proxy) = &mut sent.proxy_settings {
        *proxy = with_passwords(proxy, file).map_err(unbuilt)?;
    }
    same(compiled::inbound(&sent), &wanted)?;
    if let Some(receiver) = &mut sent.receiver_settings {
        *receiver = with_certificates(receiver)?;
    }
    Ok(sent)
}

/// Settings of an inbound with the passwords of the file, of which the engine keeps only what became of them.
fn with_passwords(proxy: &TypedMessage, file: &Value) -> Result<TypedMessage, String> {
    let settings = get(file, "settings");
    let own = || text(settings, "password").to_owned();
    let people = || -> Result<Vec<User>, String> {
        match users(file) {
            // A single user stands among the settings.
            [] => Ok(vec![user(file, settings)?]),
            all => all.iter().map(|one| user(file, one)).collect(),
        }
    };
    let kind = proxy.r#type.as_str();
    let broken = |refused: Refused| refused.to_string();
    Ok(match kind {
        "xray.proxy.trojan.ServerConfig" => {
            let mut config: trojan::ServerConfig = open(proxy).map_err(broken)?;
            config.users = match config.users.is_empty() {
                true => Vec::new(),
                false => people()?,
            };
            typed(kind, &config)
        }
        "xray.proxy.shadowsocks.ServerConfig" => {
            let mut config: shadowsocks::ServerConfig = open(proxy).map_err(broken)?;
            config.users = people()?;
            typed(kind, &config)
        }
        "xray.proxy.shadowsocks_2022.ServerConfig" => {
            let mut config: shadowsocks_2022::ServerConfig = open(proxy).map_err(broken)?;
            config.key = own();
            typed(kind, &config)
        }
        "xray.proxy.shadowsocks_2022.MultiUserServerConfig" => {
            let mut config: shadowsocks_2022::MultiUserServerConfig = open(proxy).map_err(broken)?;
            config.key = own();
            config.users = people()?;
            typed(kind, &config)
        }
        _ => proxy.clone(),
    })
}

/// The same with what is in the files of certificates and keys, since the other end may not have them.
fn with_certificates(receiver: &TypedMessage) -> Result<TypedMessage, Failed> {
    let mut config: ReceiverConfig = open(receiver).map_err(unbuilt)?;
    let security = config
        .stream_settings
        .iter_mut()
        .flat_map(|stream| &mut stream.security_settings);
    for settings in security.filter(|one| one.r#type == "xray.transport.internet.tls.Config") {
        let mut tls: tls::Config = open(settings).map_err(unbuilt)?;
        for one in &mut tls.certificate {
            for (path, content) in [
                (&one.certificate_path, &mut one.certificate),
                (&one.key_path, &mut one.key),
            ] {
                if !path.is_empty() {
                    *content = super::files::whole(path, MAX_PEM)?.to_vec();
                }
            }
        }
        *settings = typed(&settings.r#type, &tls);
    }
    Ok(typed(&receiver.r#type, &config))
}

/// An outbound of a file in compiled form.
fn outbound(file: &Value) -> Result<OutboundHandlerConfig, Failed> {
    let wanted = compiled::outbound_of_file(file.clone()).map_err(unbuilt)?;
    let mut sent = write::outbound(&wanted, true);
    if let Some(proxy) = &mut sent.proxy_settings {
        *proxy = with_password(proxy, get(file, "settings")).map_err(unbuilt)?;
    }
    same(compiled::outbound(&sent), &wanted)?;
    Ok(sent)
}

/// Settings of an outbound with the password of the file.
fn with_password(proxy: &TypedMessage, settings: &Value) -> Result<TypedMessage, String> {
    let server = list(settings, "servers").first().unwrap_or(settings);
    let person = list(server, "users").first().unwrap_or(server);
    // As an inbound would have it.
    let known = |protocol: &str, settings: &Value| user(&json!({ "protocol": protocol }), settings);
    let put = |endpoint: &mut Option<ServerEndpoint>, user: User| {
        if let Some(endpoint) = endpoint {
            endpoint.user = Some(user);
        }
    };
    let kind = proxy.r#type.as_str();
    let broken = |refused: Refused| refused.to_string();
    Ok(match kind {
        "xray.proxy.trojan.ClientConfig" => {
            let mut config: trojan::ClientConfig = open(proxy).map_err(broken)?;
            put(&mut config.server, known("trojan", server)?);
            typed(kind, &config)
        }
        "xray.proxy.shadowsocks.ClientConfig" => {
            let mut config: shadowsocks::ClientConfig = open(proxy).map_err(broken)?;
            let user = known("shadowsocks", server)?;
            if user
                .account
                .as_ref()
                .is_some_and(|account| account.r#type.contains("2022"))
            {
                let to = config.server.unwrap_or_default();
                let mut config = shadowsocks_2022::ClientConfig::default();
                (config.address, config.port) = (to.address, to.port);
                config.method = text(server, "method").to_owned();
                config.key = text(server, "password").to_owned();
                return Ok(typed("xray.proxy.shadowsocks_2022.ClientConfig", &config));
            }
            put(&mut config.server, user);
            typed(kind, &config)
        }
        "xray.proxy.socks.ClientConfig" if !text(person, "user").is_empty() => {
            let mut config: socks::ClientConfig = open(proxy).map_err(broken)?;
            put(&mut config.server, known("socks", person)?);
            typed(kind, &config)
        }
        "xray.proxy.http.ClientConfig" if !text(person, "user").is_empty() => {
            let mut config: http::ClientConfig = open(proxy).map_err(broken)?;
            let mut user = known("http", person)?;
            if let Some(account) = &mut user.account {
                account.r#type = "xray.proxy.http.Account".to_owned();
            }
            put(&mut config.server, user);
            typed(kind, &config)
        }
        _ => proxy.clone(),
    })
}

#[cfg(test)]
mod tests;
