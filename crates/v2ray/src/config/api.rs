//! `api`: the management API.

use super::context::{Cx, nearest, quoted};
use super::inbound::Inbound;
use super::metrics::ServiceListen;
use super::protocol::InboundProtocol;
use super::routing::{Routing, RuleTarget};
use super::scalar::{Name, Texts};
use super::schema::Kind;
use super::table::{Decode, object};
use crate::json::{Value, members};
use crate::problem::{At, Position};

/// The tag of the API's own listener, and of the API itself where it has none. No inbound or outbound beside an API can have it.
pub const API_LISTENER: &str = "api.listen";

/// Declares the services with their names.
macro_rules! services {
    ($($(#[doc = $doc:literal])* $Name:ident),*) => {
        /// A service of the management API.
        #[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
        pub enum ApiService {
            $($(#[doc = $doc])* $Name,)*
        }

        impl ApiService {
            /// All of them.
            pub const ALL: &'static [ApiService] = &[$(ApiService::$Name),*];

            /// Its name.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(ApiService::$Name => stringify!($Name),)*
                }
            }
        }
    };
}

services! {
    /// Inbounds, outbounds and users.
    HandlerService,
    /// Counters, and users that are online.
    StatsService,
    /// Rules and balancers.
    RoutingService,
    /// Log files.
    LoggerService,
    /// What measuring outbounds has found.
    ObservatoryService,
    /// Which services and messages there are.
    ReflectionService
}

object! {
    /// TLS around the management API at `listen`. Whoever calls must show a certificate. The files are read at the start.
    pub struct ApiTls: "api.tls" {
        /// The file with the certificate and its chain, PEM.
        certificate: String = "certificateFile", required;
        /// The file with its key, PEM.
        key: String = "keyFile", required;
        /// The file with the authorities that certificates of clients are from, PEM.
        client_authorities: String = "clientCaFile", required;
    }
}

object! {
    /// The management API over gRPC. Whoever reaches it can do everything: it listens on this machine only, unless it asks for
    /// certificates of clients or is told otherwise.
    struct ApiSettings: "api" {
        /// The tag by which rules lead to it, as if it were an outbound.
        tag: At<Name> = "tag", default "\"\"";
        /// Where it listens, besides whatever rules lead to `tag`. The file of a unix socket is for its owner alone if no mode stands
        /// behind its path.
        listen: Option<At<ServiceListen>> = "listen";
        /// Which services it has: `HandlerService`, `StatsService`, `RoutingService`, `LoggerService`, `ObservatoryService`,
        /// `ReflectionService`.
        services: Texts = "services";
        /// Show private keys, ids, passwords, short ids of REALITY and values of headers to whoever lists inbounds, and of outbounds ids,
        /// short ids and headers. Ours.
        expose_secrets: bool = "exposeSecrets", default "false";
        /// Let other machines call without a certificate. Ours.
        allow_remote: bool = "allowRemote", default "false";
        /// TLS, with certificates of clients. Ours.
        tls: Option<ApiTls> = "tls";
    }
}

/// The management API.
#[derive(Clone, Debug, PartialEq)]
pub struct Api {
    /// The tag by which rules lead to it. Empty: none.
    pub tag: String,
    /// Where it listens, besides.
    pub listen: Option<ServiceListen>,
    /// Which services it has, each once.
    pub services: Vec<ApiService>,
    /// Whether secrets are shown to whoever lists inbounds and outbounds.
    pub expose_secrets: bool,
    /// Whether other machines may call without a certificate.
    pub allow_remote: bool,
    /// TLS of what listens.
    pub tls: Option<ApiTls>,
    /// Where it is configured.
    pub at: Position,
}

impl Api {
    /// Whether two configurations say the same of it, wherever they say it.
    pub fn is_same(one: Option<&Api>, other: Option<&Api>) -> bool {
        let placed = |api: &Api| Api {
            at: Position::default(),
            ..api.clone()
        };
        one.map(placed) == other.map(placed)
    }
}

/// An object without a key is an API that is switched off.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct MaybeApi(pub(crate) Option<Api>);

impl Decode for MaybeApi {
    fn kind() -> Kind {
        Kind::Object(ApiSettings::TABLE)
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        let at = value.at;
        let off = members(&value).iter().all(|member| member.value.is_null());
        let s = ApiSettings::decode(value, cx)?;
        if off {
            return Some(MaybeApi(None));
        }
        if s.tag.value.0.is_empty() && s.listen.is_none() {
            let hint = "write a `tag` that rules lead to, or `listen`";
            cx.error(at, "nobody can reach the API", hint);
            return None;
        }
        if cx.tags.outbounds.contains_key(s.tag.value.0.as_str()) {
            let text = format!("an outbound has the tag {}", quoted(&s.tag.value));
            cx.error_in("tag", s.tag.at, text, "give the API a tag of its own");
            return None;
        }
        if let Some(listen) = &s.listen
            && !listen.value.is_this_machine()
            && s.tls.is_none()
            && !s.allow_remote
        {
            let text = "other machines reach this address, and whoever does can read and change everything";
            cx.error_in("listen", listen.at, text, HINT);
            return None;
        }
        if [&cx.tags.inbounds, &cx.tags.outbounds]
            .iter()
            .any(|tags| tags.contains_key(API_LISTENER))
        {
            let own = quoted(API_LISTENER);
            let text = format!("an inbound or outbound has the tag {own}, which is that of the API's own listener");
            cx.error(at, text, "choose another one");
            return None;
        }
        let services = services(&s.services, at, cx);
        Some(MaybeApi(Some(Api {
            tag: s.tag.value.0,
            listen: s.listen.map(|listen| listen.value),
            services,
            expose_secrets: s.expose_secrets,
            allow_remote: s.allow_remote,
            tls: s.tls,
            at,
        })))
    }
}

const HINT: &str =
    "listen on 127.0.0.1 or a unix socket, ask for certificates of clients, or write \"allowRemote\": true under `api`";

fn services(given: &Texts, at: Position, cx: &mut Cx<'_>) -> Vec<ApiService> {
    let mut services = Vec::new();
    for name in &given.0 {
        match ApiService::ALL
            .iter()
            .find(|service| service.as_str().eq_ignore_ascii_case(name))
        {
            Some(service) if !services.contains(service) => services.push(*service),
            Some(_) => {}
            None => {
                let near = nearest(name, ApiService::ALL.iter().map(|service| service.as_str()));
                let hint = near.map(|near| format!("did you mean {}?", quoted(near)));
                let text = format!("there is no service {}", quoted(name));
                cx.warn_in("services", name.at, text, hint.unwrap_or_default());
            }
        }
    }
    if services.is_empty() {
        cx.warn(
            at,
            "the API has no service",
            "name them: \"services\": [\"StatsService\"]",
        );
    }
    services
}

/// Tells of ways to the API that anybody may take who reaches a port, and of an API that nothing leads to.
pub(crate) fn check(api: &Api, inbounds: &[(usize, Inbound)], routing: &Routing, cx: &mut Cx<'_>) {
    let leads = |to: &RuleTarget| matches!(to, RuleTarget::Outbound(tag) if *tag == api.tag);
    let rules = || routing.rules.iter().filter(|rule| leads(&rule.to));
    if api.listen.is_none() && rules().next().is_none() {
        let text = format!("no rule leads to {}, so nobody can reach the API", quoted(&api.tag));
        let hint = "add a rule with the tag of an inbound and this `outboundTag`, or write `listen`";
        cx.within("api", |cx| cx.warn(api.at, text, hint));
    }
    if api.allow_remote {
        return;
    }
    for (i, inbound) in inbounds {
        // Accounts, certificates and a rule about addresses of clients are ways to say who may come.
        let open = matches!(inbound.protocol, InboundProtocol::Dokodemo(_)) || inbound.protocol.open().is_some();
        let known = inbound.stream.tls.as_ref().is_some_and(|tls| tls.verify_client);
        let led = rules().any(|rule| {
            rule.sources.is_empty() && (rule.inbound_tags.is_empty() || rule.inbound_tags.contains(&inbound.tag))
        });
        if open && led && !known && !inbound.listen.is_this_machine() {
            let text = "a rule leads from here to the management API, and whoever reaches the port can read and change everything";
            cx.within("inbounds", |cx| cx.at_index(*i, |cx| cx.error(inbound.at, text, HINT)));
        }
    }
}
