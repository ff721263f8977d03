//! What makes a stack in a configuration, for those who are told to use it.

use super::Stack;
use super::config::{Facts, local};

/// Keys that tell stacks apart, and where they stand in a client's outbound.
const KEYS: [(&str, &str); 7] = [
    ("protocol", "/protocol"),
    ("network", "/streamSettings/network"),
    ("header", "/streamSettings/tcpSettings/header"),
    ("mode", "/streamSettings/xhttpSettings/mode"),
    ("mux", "/mux"),
    ("security", "/streamSettings/security"),
    ("method", "/settings/servers/0/method"),
];

impl Stack {
    /// What to write for it in a configuration: `"protocol": "vless", "network": "tcp", "security": "tls"`. TLS agrees
    /// on its cipher by itself, so nothing is said of that.
    pub(crate) fn settings(&self) -> String {
        let client = Facts::sample(*self).client(1, local(2), local(3));
        let outbound = &client["outbounds"][0];
        let key = |(key, place): (&str, &str)| Some(format!("\"{key}\": {}", outbound.pointer(place)?));
        let mut keys: Vec<String> = KEYS.into_iter().filter_map(key).collect();
        if let Some(word) = outbound.pointer("/settings/vnext/0/users/0/security") {
            keys.push(format!("and for the user \"security\": {word}"));
        }
        keys.join(", ")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::mem::discriminant;

    use sealway_v2ray::config::{File, Options, load};
    use serde_json::{Value, json};

    use super::*;

    /// Kinds of protocol and network of a client's outbound as our own reader has it, and whether it has TLS.
    fn kinds(config: &Value) -> impl PartialEq + std::fmt::Debug {
        let text = config.to_string();
        let (name, text) = ("config.json", text.as_bytes());
        let loaded = load(&[File { name, text }], &Options::default());
        let read = loaded.config.unwrap_or_else(|| panic!("{:?}", loaded.problems));
        let outbound = &read.outbounds[0];
        let tls = outbound.stream.tls.is_some();
        (
            discriminant(&outbound.protocol),
            discriminant(&outbound.stream.transport),
            tls,
        )
    }

    #[test]
    fn what_is_advised_makes_the_stack() {
        for stack in Stack::ALL
            .into_iter()
            .filter(|stack| stack.is_proxy() && stack.authenticated())
        {
            let whole = Facts::sample(stack).client(1, local(2), local(9));
            let advised = stack.settings();
            let (keys, user) = advised.split_once(", and for the user ").unwrap_or((&advised, ""));
            let read = |keys: &str| serde_json::from_str::<Value>(&format!("{{{keys}}}")).unwrap();
            let (keys, user) = (read(keys), read(user));
            // An outbound of a server, its user and what is advised.
            let mut settings = whole["outbounds"][0]["settings"].clone();
            for (place, key, word) in [
                ("/vnext/0/users/0", "security", &user["security"]),
                ("/servers/0", "method", &keys["method"]),
            ] {
                let Some(place) = settings.pointer_mut(place).and_then(Value::as_object_mut) else {
                    continue;
                };
                place.remove(key);
                place.extend((!word.is_null()).then(|| (key.to_owned(), word.clone())));
            }
            assert_eq!(settings, whole["outbounds"][0]["settings"], "{advised}");
            let mut stream = json!({ "network": keys["network"] });
            if stack.tls {
                stream["security"] = keys["security"].clone();
            }
            let mut config = whole.clone();
            config["outbounds"][0] =
                json!({ "protocol": keys["protocol"], "settings": settings, "streamSettings": stream });
            assert_eq!(kinds(&config), kinds(&whole), "{advised}");
        }
        let of = |stack: Stack| stack.settings();
        assert_eq!(
            of(Stack::VLESS_XHTTP_ONE_TLS),
            r#""protocol": "vless", "network": "xhttp", "mode": "stream-one", "security": "tls""#
        );
        assert_eq!(
            of(Stack::VMESS_AES_WS),
            r#""protocol": "vmess", "network": "ws", and for the user "security": "aes-128-gcm""#
        );
        assert_eq!(
            of(Stack::SS_AES),
            r#""protocol": "shadowsocks", "network": "tcp", "method": "aes-256-gcm""#
        );
    }
}
