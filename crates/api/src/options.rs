//! What an API has, and where it is.

use sealway_proxy::settings::{Listen, Rule, ServerTls};

pub use sealway_v2ray::config::{API_LISTENER as LISTENER, ApiService as Service};

/// What an API has, and where.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The tag by which rules lead to it. Empty: none.
    pub tag: String,
    /// Where it listens, besides.
    pub listen: Option<Listen>,
    /// TLS of what listens.
    pub tls: Option<ServerTls>,
    /// The services it has.
    pub services: Vec<Service>,
    /// Show private keys, ids, passwords, short ids and headers where inbounds and outbounds are listed.
    pub expose_secrets: bool,
}

impl Options {
    /// The tag that rules lead to it by, whether it was given one or not.
    pub(crate) fn own_tag(&self) -> &str {
        match self.tag.as_str() {
            "" => LISTENER,
            tag => tag,
        }
    }

    /// The rule that leads from its listener to it, if it has one. It goes before all others.
    pub(crate) fn rule(&self) -> Option<Rule> {
        self.listen.as_ref().map(|_| Rule {
            inbound_tags: vec![LISTENER.to_owned()],
            outbound_tag: self.own_tag().to_owned(),
            ..Rule::default()
        })
    }
}
