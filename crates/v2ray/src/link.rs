//! Share links: `ss://`, `trojan://`, `vless://`, and `vmess://` in both of its forms.
//!
//! The URI form is `scheme://user@host:port?query#name` with percent-encoded values. The older form of VMess is base64 of a
//! JSON object. A [`Link`] holds what either says, also what this program cannot do yet, so that reading and writing a
//! link loses nothing; turning it into an outbound is where that is told.

mod json;
mod ss;
mod uri;

use std::collections::BTreeMap;
use std::error::Error as StdError;
use std::fmt;
use std::str::FromStr;

use crate::problem::Problem;
use crate::{Address, UserId, text};

/// The protocols that links are read and written for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Scheme {
    /// `ss://`, Shadowsocks.
    Shadowsocks,
    /// `trojan://`
    Trojan,
    /// `vless://`
    Vless,
    /// `vmess://`
    Vmess,
}

impl Scheme {
    /// The scheme, without `://`.
    pub fn as_str(self) -> &'static str {
        match self {
            Scheme::Shadowsocks => "ss",
            Scheme::Trojan => "trojan",
            Scheme::Vless => "vless",
            Scheme::Vmess => "vmess",
        }
    }

    /// The protocol, as configurations name it.
    pub fn protocol(self) -> &'static str {
        match self {
            Scheme::Shadowsocks => "shadowsocks",
            other => other.as_str(),
        }
    }
}

/// The two ways to write a VMess link. The other schemes have the first only.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Form {
    /// `vmess://id@host:port?query#name`
    #[default]
    Uri,
    /// `vmess://` and base64 of JSON, as v2rayN began it (version 2).
    Json,
}

/// Who the user is at the server.
#[derive(Clone, Eq, PartialEq)]
pub enum Credential {
    /// An id: VLESS, VMess.
    Id(UserId),
    /// A password: Shadowsocks, Trojan.
    Password(String),
}

/// Does not show a password.
impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Credential::Id(id) => id.fmt(f),
            Credential::Password(_) => f.write_str("Password(…)"),
        }
    }
}

impl fmt::Display for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Credential::Id(id) => id.fmt(f),
            Credential::Password(password) => f.write_str(password),
        }
    }
}

impl From<UserId> for Credential {
    fn from(id: UserId) -> Self {
        Credential::Id(id)
    }
}

impl From<String> for Credential {
    fn from(password: String) -> Self {
        Credential::Password(password)
    }
}

/// What a share link says. Texts are as the other end meant them, without percent-encoding; an empty one is the same as
/// none.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Link {
    /// The protocol.
    pub scheme: Scheme,
    /// How it was written, and will be.
    pub form: Form,
    /// A name for the reader (`#name`, `ps`).
    pub name: String,
    /// The server (`add`).
    pub address: Address,
    /// Its port.
    pub port: u16,
    /// Who the user is there (`id`).
    pub user: Credential,
    /// VLESS: its own encryption, `none` by default. VMess: how the payload is sealed (`scy`), `auto` by default.
    /// Shadowsocks: the method. Trojan: nothing.
    pub encryption: String,
    /// VMess of old (`aid`). 0 is the only value that is spoken.
    pub alter_id: u32,
    /// The transport (`type`, `net`); `raw` by default, which links also call `tcp`. `http` has the name `h2`, too.
    pub network: String,
    /// The security layer (`security`, `tls`): `none`, `tls` or `reality`. The default is `tls` for Trojan and `none` for
    /// the others.
    pub security: String,
    /// Everything else, by its name in the URI form, without empty values: `flow`; `sni`, `alpn`, `fp`, `ech`, `pcs`, `vcn`,
    /// `allowInsecure` for TLS; `pbk`, `sid`, `spx`, `pqv` for REALITY; `headerType`, `host`, `path`, `seed`,
    /// `serviceName`, `mode`, `authority`, `extra`, `fm` for transports. Names that are not known are kept too.
    pub parameters: BTreeMap<String, String>,
}

/// What came of turning an outbound into a link.
#[derive(Clone, Debug, PartialEq)]
pub struct Made {
    /// The link.
    pub link: Link,
    /// Keys of the outbound that no link can say and that are left out.
    pub left_out: Vec<&'static str>,
}

/// Longest link that is read, bytes.
pub const MAX_LEN: usize = 64 << 10;

/// Why a link could not be read, written or turned into an outbound. The fault is the user's.
#[derive(Clone, Debug, PartialEq)]
pub enum LinkError {
    /// A link of a protocol that is not supported yet.
    NotSupported {
        /// The scheme.
        scheme: &'static str,
    },
    /// It begins with no scheme that is known.
    Scheme,
    /// It is longer than [`MAX_LEN`].
    TooLong,
    /// A part of it is wrong.
    Part {
        /// The part, such as "the port".
        part: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// An outbound of a protocol that has no links, or with something that no link can say.
    NoLink {
        /// What it is.
        what: String,
    },
    /// What it says cannot be made an outbound.
    Outbound(Vec<Problem>),
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinkError::NotSupported { scheme } => write!(f, "not supported yet: {scheme}:// links"),
            LinkError::Scheme => f.write_str("a share link begins with ss://, trojan://, vless:// or vmess://"),
            LinkError::TooLong => write!(f, "the link is longer than {MAX_LEN} bytes"),
            LinkError::Part { part, problem } => write!(f, "{part} of the link is wrong: {problem}"),
            LinkError::NoLink { what } => write!(f, "there is no share link for {what}"),
            LinkError::Outbound(problems) => {
                f.write_str("the link asks for what cannot be done")?;
                for problem in problems {
                    f.write_str("; ")?;
                    if !problem.path.is_empty() {
                        write!(f, "{}: ", problem.path)?;
                    }
                    f.write_str(&problem.text)?;
                }
                Ok(())
            }
        }
    }
}

impl StdError for LinkError {}

impl LinkError {
    fn part(part: &'static str, problem: impl fmt::Display) -> Self {
        LinkError::Part {
            part,
            problem: problem.to_string(),
        }
    }
}

impl Link {
    /// A plain link: raw, with the security layer that the scheme has by default.
    pub fn new(scheme: Scheme, user: impl Into<Credential>, address: Address, port: u16) -> Self {
        Link {
            scheme,
            form: Form::Uri,
            name: String::new(),
            address,
            port,
            user: user.into(),
            encryption: default_encryption(scheme).to_owned(),
            alter_id: 0,
            network: "raw".to_owned(),
            security: default_security(scheme).to_owned(),
            parameters: BTreeMap::new(),
        }
    }

    /// Reads a link. White space around it does not matter.
    ///
    /// # Errors
    /// Any [`LinkError`] but [`LinkError::NoLink`] and [`LinkError::Outbound`].
    pub fn parse(text: &str) -> Result<Self, LinkError> {
        let text = text.trim();
        if text.len() > MAX_LEN {
            return Err(LinkError::TooLong);
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(LinkError::Scheme);
        };
        let scheme = scheme.to_ascii_lowercase();
        if rest.is_empty() && matches!(scheme.as_str(), "ss" | "trojan" | "vless" | "vmess") {
            return Err(LinkError::part("the body", "it is empty: nothing stands behind ://"));
        }
        let link = match scheme.as_str() {
            "ss" => ss::read(rest),
            "trojan" => uri::read(Scheme::Trojan, rest),
            "vless" => uri::read(Scheme::Vless, rest),
            "vmess" if rest.split('#').next().is_some_and(|r| r.contains('@')) => uri::read(Scheme::Vmess, rest),
            "vmess" => json::read(rest),
            "hysteria" => Err(LinkError::NotSupported { scheme: "hysteria" }),
            "hysteria2" | "hy2" => Err(LinkError::NotSupported { scheme: "hysteria2" }),
            "tuic" => Err(LinkError::NotSupported { scheme: "tuic" }),
            "wireguard" | "wg" => Err(LinkError::NotSupported { scheme: "wireguard" }),
            _ => Err(LinkError::Scheme),
        }?;
        link.check_characters()?;
        Ok(link)
    }

    /// Refuses control characters: the name becomes a tag, which stands in logs, and hosts and paths stand in requests.
    fn check_characters(&self) -> Result<(), LinkError> {
        // These two are JSON, in which lines may end.
        let parameters = self
            .parameters
            .iter()
            .filter(|(name, _)| !matches!(name.as_str(), "extra" | "fm"));
        let parts = [
            ("the name", &self.name),
            ("the encryption", &self.encryption),
            ("the type", &self.network),
        ];
        let parts = parts
            .into_iter()
            .chain(parameters.map(|(_, text)| ("a parameter", text)));
        for (part, text) in parts {
            if let Some((at, c)) = text.chars().enumerate().find(|(_, c)| text::is_hidden(*c)) {
                let what = format!(
                    "character {} of it is the control character {}",
                    at + 1,
                    c.escape_unicode()
                );
                return Err(LinkError::part(part, what));
            }
        }
        Ok(())
    }

    /// A parameter, or the empty text.
    pub fn parameter(&self, name: &str) -> &str {
        self.parameters.get(name).map_or("", String::as_str)
    }

    /// Sets a parameter, or takes it away if the text is empty.
    pub fn set_parameter(&mut self, name: &str, text: impl Into<String>) {
        let text = text.into();
        if text.is_empty() {
            self.parameters.remove(name);
        } else {
            self.parameters.insert(name.to_owned(), text);
        }
    }

    /// Sets transport and security from the words of a link.
    fn set_words(&mut self, network: &str, security: &str) {
        self.network = match network.to_ascii_lowercase().as_str() {
            "" | "tcp" | "raw" => "raw".to_owned(),
            "websocket" => "ws".to_owned(),
            "h2" => "http".to_owned(),
            other => other.to_owned(),
        };
        self.security = match security.to_ascii_lowercase().as_str() {
            "" => default_security(self.scheme).to_owned(),
            other => other.to_owned(),
        };
    }

    /// The word links have for the transport.
    fn network_word(&self) -> &str {
        match self.network.as_str() {
            // Every program knows "tcp", only newer ones "raw".
            "raw" => "tcp",
            "http" if self.form == Form::Json => "h2",
            other => other,
        }
    }
}

fn default_encryption(scheme: Scheme) -> &'static str {
    match scheme {
        Scheme::Shadowsocks | Scheme::Trojan => "",
        Scheme::Vless => "none",
        Scheme::Vmess => "auto",
    }
}

fn default_security(scheme: Scheme) -> &'static str {
    match scheme {
        Scheme::Trojan => "tls",
        Scheme::Shadowsocks | Scheme::Vless | Scheme::Vmess => "none",
    }
}

/// Who the user is, as the scheme has it.
fn parse_user(scheme: Scheme, text: String) -> Result<Credential, LinkError> {
    match scheme {
        Scheme::Trojan if text.is_empty() => Err(LinkError::part("the password", "it is empty")),
        Scheme::Shadowsocks | Scheme::Trojan => Ok(text.into()),
        Scheme::Vless | Scheme::Vmess => parse_id(&text).map(Credential::Id),
    }
}

fn parse_id(text: &str) -> Result<UserId, LinkError> {
    UserId::parse(text).map_err(|error| LinkError::part("the id", error))
}

fn parse_port(text: &str) -> Result<u16, LinkError> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let port = text.parse().ok().filter(|port| digits && *port != 0);
    port.ok_or_else(|| LinkError::part("the port", "it is a number from 1 to 65535"))
}

fn parse_address(text: &str) -> Result<Address, LinkError> {
    if !text.is_ascii() {
        return Err(LinkError::part("the host", "letters beyond ASCII are written as xn--…"));
    }
    Address::parse(text).map_err(|error| LinkError::part("the host", error))
}

impl FromStr for Link {
    type Err = LinkError;

    fn from_str(text: &str) -> Result<Self, LinkError> {
        Link::parse(text)
    }
}

impl fmt::Display for Link {
    /// The link, in its [`form`](Link::form).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.scheme, self.form) {
            (Scheme::Shadowsocks, _) => f.write_str(&ss::write(self)),
            (Scheme::Vmess, Form::Json) => f.write_str(&json::write(self)),
            _ => f.write_str(&uri::write(self)),
        }
    }
}

#[cfg(test)]
mod tests;
