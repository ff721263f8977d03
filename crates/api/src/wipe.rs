//! Keys, passwords and ids on their way: they are overwritten when what holds them ends. What the library of HTTP/2 keeps of a call
//! is not ours to overwrite.

use std::ops::Deref;

use serde_json::Value;
use zeroize::Zeroize;

use crate::proto::TypedMessage;
use crate::proto::xray::proxy::{http, shadowsocks, shadowsocks_2022, socks, trojan, vless, vmess};
use crate::proto::xray::transport::internet::{reality, tls};

/// Messages that overwrite these fields when they end.
macro_rules! wiped {
    ($($Message:ty { $($field:ident),+ })*) => {
        $(impl Drop for $Message {
            fn drop(&mut self) {
                $(self.$field.zeroize();)+
            }
        })*
    };
}

wiped! {
    TypedMessage { value }
    http::Account { password }
    reality::Config { private_key, mldsa65_seed }
    shadowsocks::Account { password }
    shadowsocks_2022::Account { key }
    shadowsocks_2022::ClientConfig { key }
    shadowsocks_2022::MultiUserServerConfig { key }
    shadowsocks_2022::ServerConfig { key }
    socks::Account { password }
    tls::Certificate { key }
    trojan::Account { password }
    vless::Account { id }
    vmess::Account { id }
}

/// JSON whose texts are overwritten when it ends.
#[derive(Clone, Debug, Default)]
pub(crate) struct Secret(Value);

impl From<Value> for Secret {
    fn from(value: Value) -> Secret {
        Secret(value)
    }
}

impl Deref for Secret {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.0
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        wipe(&mut self.0);
    }
}

/// Overwrites all texts. Documents are not deeper than their readers let them be.
fn wipe(value: &mut Value) {
    match value {
        Value::String(text) => text.zeroize(),
        Value::Array(all) => all.iter_mut().for_each(wipe),
        Value::Object(members) => members.values_mut().for_each(wipe),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn no_text_is_left() {
        let mut value = json!({ "a": ["b", { "c": "d", "e": 1 }], "f": "g", "h": null });
        wipe(&mut value);
        assert_eq!(value, json!({ "a": ["", { "c": "", "e": 1 }], "f": "", "h": null }));
    }
}
