//! Share links as outbounds, and outbounds as share links.

mod xhttp;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value, json};

use super::context::quoted;
use super::outbound::Outbound;
use super::protocol::{shadowsocks, trojan, vless, vmess};
use super::read_outbound;
use super::reality::{ClientReality, Reality};
use super::sockopt::{DomainStrategy, Sockopt};
use super::tls::{Tls, TlsVersion};
use super::transport::{EarlyData, Front, Grpc, Http, Transport, Upgrade};
use crate::http::front;
use crate::link::{Credential, Link, LinkError, Made, Scheme};
use crate::problem::{Problem, Severity};
use crate::text::hex;
use crate::{Address, h2};

/// The parameters of a link that an outbound is made of.
const READ: &str = "flow sni alpn fp ech pcs vcn allowInsecure pbk sid spx pqv \
    headerType host path seed serviceName mode authority extra fm plugin";

impl Link {
    /// The outbound as it stands in a configuration, with the link's name as its tag.
    pub fn to_json(&self) -> Value {
        let mut settings = match self.scheme {
            Scheme::Shadowsocks => shadowsocks::of_link(self),
            Scheme::Trojan => trojan::of_link(self),
            Scheme::Vless => vless::of_link(self),
            Scheme::Vmess => vmess::of_link(self),
        };
        settings["address"] = self.address.to_string().into();
        settings["port"] = self.port.into();
        match &self.user {
            Credential::Id(id) => settings["id"] = id.to_string().into(),
            Credential::Password(password) => settings["password"] = password.as_str().into(),
        }
        let mut outbound = json!({
            "protocol": self.scheme.protocol(),
            "settings": settings,
            "streamSettings": self.stream(),
        });
        if !self.name.is_empty() {
            outbound["tag"] = self.name.as_str().into();
        }
        outbound
    }

    /// The outbound, and warnings about what in it has no effect.
    ///
    /// # Errors
    /// [`LinkError::Outbound`] if the link asks for something that is wrong or not supported yet.
    pub fn to_outbound(&self) -> Result<(Outbound, Vec<Problem>), LinkError> {
        let (outbound, mut problems) = read_outbound(&self.to_json().to_string());
        match outbound {
            Some(outbound) => {
                problems.extend(self.unread());
                Ok((outbound, problems))
            }
            None => {
                problems.retain(|problem| problem.severity == Severity::Error);
                Err(LinkError::Outbound(problems))
            }
        }
    }

    /// Tells of what the link says and no outbound is made of.
    fn unread(&self) -> Option<Problem> {
        let names = self
            .parameters
            .keys()
            .filter(|name| !READ.split(' ').any(|read| read == *name));
        let names: Vec<String> = names.take(8).map(|name| quoted(name)).collect();
        (!names.is_empty()).then(|| Problem {
            severity: Severity::Warning,
            file: "link".to_owned(),
            line: 1,
            column: 1,
            path: String::new(),
            text: format!("the link says {}, which nothing reads", names.join(", ")),
            hint: String::new(),
        })
    }

    /// The name for TLS: `sni`, or else, as programs that make links take it, the name that the request to the server has.
    fn server_name(&self) -> &str {
        let host = if self.network == "grpc" { "authority" } else { "host" };
        let is_name = |host: &&str| matches!(Address::parse(host), Ok(Address::Domain(_)));
        match self.parameter("sni") {
            "" => self.list(host).into_iter().find(is_name).unwrap_or_default(),
            name => name,
        }
    }

    fn stream(&self) -> Value {
        let mut stream = Map::new();
        let text = |name: &str| Value::from(self.parameter(name));
        let given = |pairs: &[(&str, &str)]| {
            let mut map = Map::new();
            for (key, parameter) in pairs {
                if !self.parameter(parameter).is_empty() {
                    map.insert((*key).to_owned(), text(parameter));
                }
            }
            map
        };
        stream.insert("network".into(), self.network.as_str().into());
        stream.insert("security".into(), self.security.as_str().into());
        let http = || {
            let mut map = given(&[("path", "path"), ("host", "host")]);
            if let Some(Value::String(path)) = map.get_mut("path") {
                // A link may hold what no request can. It goes out as other programs send it.
                *path = path.replace(' ', "%20").replace('#', "%23");
            }
            map
        };
        let mut put = |key: &str, map: Map<String, Value>| {
            if !map.is_empty() {
                stream.insert(key.to_owned(), Value::Object(map));
            }
        };
        match self.network.as_str() {
            "raw" => {
                let mut header = given(&[("type", "headerType")]);
                if self.parameter("headerType") == "http" {
                    header.insert("request".into(), self.front());
                }
                if !header.is_empty() {
                    put(
                        "rawSettings",
                        Map::from_iter([("header".to_owned(), Value::Object(header))]),
                    );
                }
            }
            "ws" => put("wsSettings", http()),
            "httpupgrade" => put("httpupgradeSettings", http()),
            "grpc" => {
                let mut map = given(&[("serviceName", "serviceName"), ("authority", "authority")]);
                if self.parameter("mode") == "multi" {
                    map.insert("multiMode".into(), true.into());
                }
                put("grpcSettings", map);
            }
            "http" => put("httpSettings", given(&[("path", "path"), ("host", "host")])),
            "xhttp" | "splithttp" => put("xhttpSettings", xhttp::of_link(http(), self)),
            "kcp" => put("kcpSettings", given(&[("seed", "seed")])),
            _ => {}
        }
        if !self.parameter("fm").is_empty() {
            put("finalmask", Map::from_iter([("settings".to_owned(), text("fm"))]));
        }
        match self.security.as_str() {
            "tls" => {
                let mut tls = given(&[
                    ("alpn", "alpn"),
                    ("fingerprint", "fp"),
                    ("echConfigList", "ech"),
                    ("pinnedPeerCertSha256", "pcs"),
                    ("verifyPeerCertByName", "vcn"),
                ]);
                if !self.server_name().is_empty() {
                    tls.insert("serverName".into(), self.server_name().into());
                }
                if self.parameter("allowInsecure") == "1" {
                    tls.insert("allowInsecure".into(), true.into());
                }
                put("tlsSettings", tls);
            }
            "reality" => put(
                "realitySettings",
                given(&[
                    ("serverName", "sni"),
                    ("fingerprint", "fp"),
                    ("publicKey", "pbk"),
                    ("shortId", "sid"),
                    ("spiderX", "spx"),
                    ("mldsa65Verify", "pqv"),
                ]),
            ),
            _ => {}
        }
        Value::Object(stream)
    }

    /// The link for an outbound, in the URI form.
    ///
    /// # Errors
    /// [`LinkError::NoLink`] if the protocol has no links.
    pub fn from_outbound(outbound: &Outbound) -> Result<Made, LinkError> {
        let mut left_out = Vec::new();
        let mut link = outbound.protocol.link(&mut left_out).map_err(|protocol| {
            let article = if protocol == "http" { "an" } else { "a" };
            LinkError::NoLink {
                what: format!("{article} {protocol} outbound"),
            }
        })?;
        link.name = outbound.tag.clone();
        match &outbound.stream.transport {
            Transport::Grpc(grpc) => link.take_grpc(grpc, &mut left_out),
            Transport::Http(http) => link.take_http(http, &mut left_out),
            Transport::Raw => {}
            Transport::RawHttp(front) => link.take_front(front, &mut left_out),
            Transport::WebSocket(upgrade) => link.take_upgrade("ws", upgrade, &mut left_out),
            Transport::HttpUpgrade(upgrade) => link.take_upgrade("httpupgrade", upgrade, &mut left_out),
            Transport::Xhttp(settings) => xhttp::into_link(&mut link, settings),
        }
        if outbound.stream.download.is_some() {
            left_out.push("downloadSettings");
        }
        if let Some(tls) = &outbound.stream.tls {
            link.take_tls(tls, &mut left_out);
        }
        if let Some(Reality::Client(reality)) = &outbound.stream.reality {
            link.take_reality(reality, &mut left_out);
        }
        if outbound.send_through.is_some() {
            left_out.push("sendThrough");
        }
        if outbound.proxy.is_some() {
            left_out.push("proxySettings");
        }
        if outbound.mux.enabled.value {
            left_out.push("mux");
        }
        if !is_plain(&outbound.stream.sockopt) {
            left_out.push("streamSettings.sockopt");
        }
        Ok(Made { link, left_out })
    }

    /// The parts of a parameter that is a list with commas.
    fn list(&self, name: &str) -> Vec<&str> {
        let parts = self.parameter(name).split(',').map(str::trim);
        parts.filter(|part| !part.is_empty()).collect()
    }

    /// The request of the `http` header. `host` and `path` are lists with commas.
    fn front(&self) -> Value {
        let mut request = Map::new();
        if !self.list("path").is_empty() {
            request.insert("path".into(), self.list("path").into());
        }
        if !self.list("host").is_empty() {
            // Whoever says a header has to say all of them.
            let usual = front::Request::default().headers;
            let mut headers: Map<String, Value> = usual.into_iter().map(|(name, all)| (name, all.into())).collect();
            headers.insert("Host".into(), self.list("host").into());
            request.insert("headers".into(), headers.into());
        }
        request.into()
    }

    fn take_front(&mut self, front: &Front, left_out: &mut Vec<&'static str>) {
        self.set_parameter("headerType", "http");
        let (mut said, own) = (front::Request::default(), &front.request);
        let host = |headers: &front::Headers| headers.iter().find(|(name, _)| name == "Host").cloned();
        if own.paths != said.paths {
            self.set_parameter("path", own.paths.join(","));
        }
        if let Some(own) = host(&own.headers)
            && host(&said.headers).as_ref() != Some(&own)
        {
            self.set_parameter("host", own.1.join(","));
        }
        // Lost is what a reader of the link would not make of it again.
        let owned = |parts: Vec<&str>| parts.into_iter().map(str::to_owned).collect::<Vec<_>>();
        let (paths, hosts) = (owned(self.list("path")), owned(self.list("host")));
        if !paths.is_empty() {
            said.paths = paths;
        }
        for (_, all) in said
            .headers
            .iter_mut()
            .filter(|(name, _)| name == "Host" && !hosts.is_empty())
        {
            all.clone_from(&hosts);
        }
        let mut own = own.clone();
        said.headers.sort();
        own.headers.sort();
        if said != own {
            left_out.push("header.request");
        }
    }

    fn take_grpc(&mut self, grpc: &Grpc, left_out: &mut Vec<&'static str>) {
        self.network = "grpc".to_owned();
        self.set_parameter("serviceName", grpc.service_name.clone());
        self.set_parameter("authority", grpc.authority.clone().unwrap_or_default());
        self.set_parameter("mode", if grpc.multi_mode { "multi" } else { "gun" });
        for (set, key) in [
            (grpc.idle.is_some(), "idle_timeout"),
            (grpc.without_streams, "permit_without_stream"),
            (grpc.window.is_some(), "initial_windows_size"),
            (grpc.user_agent.is_some(), "user_agent"),
        ] {
            if set {
                left_out.push(key);
            }
        }
    }

    fn take_http(&mut self, http: &Http, left_out: &mut Vec<&'static str>) {
        self.network = "http".to_owned();
        let (settings, usual) = (&http.settings, h2::Settings::default());
        self.set_parameter("host", settings.hosts.join(","));
        if settings.path != usual.path {
            self.set_parameter("path", settings.path.clone());
        }
        for (set, key) in [
            (settings.method != usual.method, "method"),
            (!settings.headers.is_empty(), "headers"),
            (http.idle.is_some(), "read_idle_timeout"),
        ] {
            if set {
                left_out.push(key);
            }
        }
    }

    fn take_upgrade(&mut self, network: &str, upgrade: &Upgrade, left_out: &mut Vec<&'static str>) {
        self.network = network.to_owned();
        let mut path = upgrade.path.clone();
        match upgrade.early_data {
            Some(EarlyData::Whole { limit }) => {
                let mark = if path.contains('?') { '&' } else { '?' };
                path = format!("{path}{mark}ed={limit}");
            }
            Some(EarlyData::Split { .. }) => left_out.push("maxEarlyData"),
            None => {}
        }
        if path != "/" {
            self.set_parameter("path", path);
        }
        self.set_parameter("host", upgrade.host.clone().unwrap_or_default());
        if !upgrade.headers.is_empty() {
            left_out.push("headers");
        }
    }

    fn take_tls(&mut self, tls: &Tls, left_out: &mut Vec<&'static str>) {
        self.security = "tls".to_owned();
        self.set_parameter("sni", tls.server_name.clone().unwrap_or_default());
        // Readers would take the name that the request has.
        if tls.server_name.is_none() && !self.server_name().is_empty() {
            self.set_parameter("sni", self.address.to_string());
        }
        self.set_parameter("alpn", tls.alpn.join(","));
        self.set_parameter("fp", tls.fingerprint.clone());
        self.set_parameter("allowInsecure", if tls.allow_insecure { "1" } else { "" });
        let pins: Vec<String> = tls.pinned_certificates.iter().map(|pin| hex(pin)).collect();
        self.set_parameter("pcs", pins.join(","));
        self.set_parameter("vcn", tls.verify_names.join(","));
        let versions = (tls.min_version, tls.max_version) != (TlsVersion::V12, TlsVersion::V13);
        for (set, key) in [
            (versions, "minVersion and maxVersion"),
            (!tls.cipher_suites.is_empty(), "cipherSuites"),
            (!tls.curves.is_empty(), "curvePreferences"),
            (!tls.certificates.is_empty(), "certificates"),
            (tls.disable_system_root, "disableSystemRoot"),
            (tls.session_resumption, "enableSessionResumption"),
            (!tls.pinned_chains.is_empty(), "pinnedPeerCertificateChainSha256"),
            (
                !tls.pinned_public_keys.is_empty(),
                "pinnedPeerCertificatePublicKeySha256",
            ),
            (tls.key_log.is_some(), "masterKeyLog"),
        ] {
            if set {
                left_out.push(key);
            }
        }
    }
}

impl Link {
    fn take_reality(&mut self, reality: &ClientReality, left_out: &mut Vec<&'static str>) {
        self.security = "reality".to_owned();
        self.set_parameter("sni", reality.server_name.clone());
        // Not every program that reads links has a browser of its own in mind.
        self.set_parameter("fp", reality.fingerprint.clone());
        self.set_parameter("pbk", URL_SAFE_NO_PAD.encode(reality.public_key));
        self.set_parameter("sid", reality.short_id_text());
        let verify = reality.mldsa65_verify.as_ref();
        self.set_parameter(
            "pqv",
            verify
                .map(|key| URL_SAFE_NO_PAD.encode(key.as_slice()))
                .unwrap_or_default(),
        );
        let path = if reality.spider_x == "/" { "" } else { &reality.spider_x };
        self.set_parameter("spx", path);
        if reality.key_log.is_some() {
            left_out.push("masterKeyLog");
        }
    }
}

/// Whether nothing is set that would be lost. Where the values come from does not matter.
fn is_plain(sockopt: &Sockopt) -> bool {
    let s = sockopt;
    let numbers = [s.tcp_user_timeout, s.tcp_max_seg, s.rx_buf_size, s.tx_buf_size];
    s.mark == 0
        && s.domain_strategy.value == DomainStrategy::AsIs
        && s.tcp_keep_alive_interval == 0
        && s.tcp_keep_alive_idle == 0
        && numbers.iter().all(|n| *n == 0)
        && s.tcp_congestion.is_empty()
        && !s.tcp_mptcp
        && s.interface.is_empty()
}
