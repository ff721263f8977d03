//! Which server, as whom, and how sure of it.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::AbortHandle;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::tls::{self, Trust};
use crate::Error;

const HINT: &str = "write postgres://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=verify-full, with special characters of the password as %XX";

/// How long one address may take to be connected to, unless `connect_timeout` says it: where several are named, the next has its turn
/// before all patience is gone.
const EACH: Duration = Duration::from_secs(2);

/// A server of PostgreSQL, and who we are there. Shows no password.
#[derive(Clone)]
pub struct Server {
    config: Config,
    tls: Option<Arc<rustls::ClientConfig>>,
    /// `sslmode` and `sslrootcert`.
    asks: (String, Option<String>),
}

impl PartialEq for Server {
    fn eq(&self, other: &Self) -> bool {
        self.config == other.config && self.asks == other.asks
    }
}

impl Server {
    /// Reads a URL, as [`Store::parse`](crate::Store::parse) says.
    ///
    /// # Errors
    /// [`Error::Store`], which shows nothing of the URL.
    pub fn parse(url: &str) -> Result<Server, Error> {
        let wrong = |what: &str| Error::Store(format!("the postgres:// URL of the store {what}"), HINT);
        let (_, rest) = url.split_once("://").unwrap_or_default();
        // As libpq reads it: what stands before the first @ is who we are.
        let who = rest.split_once('@').map_or("", |(who, _)| who);
        let user = who.split_once(':').map_or(who, |(user, _)| user);
        let place = rest.strip_prefix(who).unwrap_or(rest).trim_start_matches('@');
        let (place, parameters) = place.split_once('?').unwrap_or((place, ""));
        if user.contains(['/', '?']) || place.contains('@') {
            return Err(wrong("has an @ in a wrong place"));
        }
        let (mut mode, mut authorities, mut others) = (None, None, Vec::new());
        for parameter in parameters.split('&').filter(|one| !one.is_empty()) {
            match parameter.split_once('=') {
                Some(("sslmode", value)) => mode = Some(value),
                Some(("sslrootcert", path)) => authorities = Some(path),
                _ => others.push(parameter),
            }
        }
        let (mode, authorities) = match (mode, authorities) {
            // Anybody can have a certificate of these authorities: only the name tells servers apart.
            (None | Some("verify-full"), Some("system")) => ("verify-full", None),
            (_, Some("system")) => return Err(wrong("names sslrootcert=system, with which sslmode is verify-full")),
            (mode, authorities) => (mode.unwrap_or("prefer"), authorities),
        };
        let at = if who.is_empty() { "" } else { "@" };
        let mut config: Config = format!("postgres://{who}{at}{place}?{}", others.join("&"))
            .parse()
            .map_err(|_| wrong("cannot be read"))?;
        let addresses = config.get_hostaddrs().to_vec();
        if config.get_hosts().is_empty() {
            // The address is the name that certificates are asked for.
            for address in &addresses {
                config.host(address.to_string());
            }
        }
        let hosts = config.get_hosts();
        if hosts.is_empty() || hosts.contains(&Host::Tcp(String::new())) {
            return Err(wrong("names no host"));
        }
        let is_socket = |host: &Host| matches!(host, Host::Unix(_));
        if !addresses.is_empty() && hosts.iter().any(is_socket) {
            return Err(wrong("names an address, and the path of a socket as its host"));
        }
        let is_local = hosts.iter().all(is_socket);
        let trust = match (mode, authorities) {
            ("disable", None) => None,
            ("disable", Some(_)) => return Err(wrong("names sslrootcert without TLS")),
            ("prefer" | "require", None) => Some(Trust::Anybody),
            ("prefer", Some(_)) => return Err(wrong("names sslrootcert, which sslmode=prefer does not ask")),
            ("require" | "verify-ca", _) => Some(Trust::Authorities),
            ("verify-full", _) => Some(Trust::AuthoritiesAndName),
            _ => {
                return Err(wrong(
                    "has an sslmode that is none of disable, prefer, require, verify-ca, verify-full",
                ));
            }
        };
        config.ssl_mode(match mode {
            _ if is_local => SslMode::Disable,
            "disable" => SslMode::Disable,
            "prefer" => SslMode::Prefer,
            _ => SslMode::Require,
        });
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(EACH);
        }
        if config.get_application_name().is_none() {
            config.application_name("sealway");
        }
        let tls = match trust.filter(|_| !is_local) {
            None => None,
            Some(trust) => match tls::client(trust, authorities.map(Path::new)) {
                Ok(tls) => Some(Arc::new(tls)),
                Err(why) => return Err(wrong(&format!("names authorities that cannot be had: {why}"))),
            },
        };
        let asks = (mode.to_owned(), authorities.map(str::to_owned));
        Ok(Server { config, tls, asks })
    }

    /// Connects, and has a task of the runtime drive the connection.
    ///
    /// # Errors
    /// [`Error::Away`] or [`Error::Refused`].
    pub async fn connect(&self) -> Result<Session, Error> {
        let gone = |ended: Result<(), tokio_postgres::Error>| {
            if let Err(error) = ended {
                tracing::debug!("the connection to the database ended: {}", chain(&error));
            }
        };
        let (client, driver) = match &self.tls {
            None => {
                let (client, driver) = self.config.connect(NoTls).await.map_err(fault)?;
                (client, tokio::spawn(async move { gone(driver.await) }).abort_handle())
            }
            Some(tls) => {
                let tls = MakeRustlsConnect::new(rustls::ClientConfig::clone(tls));
                let (client, driver) = self.config.connect(tls).await.map_err(fault)?;
                (client, tokio::spawn(async move { gone(driver.await) }).abort_handle())
            }
        };
        Ok(Session { client, driver })
    }
}

/// A connection, which ends when this is dropped.
#[derive(Debug)]
pub struct Session {
    client: Client,
    driver: AbortHandle,
}

impl Session {
    /// What the server is asked with.
    pub fn client(&self) -> &Client {
        &self.client
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// Hosts only: no user, no password.
impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PostgreSQL at ")?;
        for (i, host) in self.config.get_hosts().iter().enumerate() {
            let comma = if i > 0 { ", " } else { "" };
            match host {
                Host::Tcp(name) => write!(f, "{comma}{name}")?,
                Host::Unix(path) => write!(f, "{comma}{}", path.display())?,
            }
        }
        Ok(())
    }
}

/// As it is shown: without a password.
impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<tokio_postgres::Error> for Error {
    fn from(error: tokio_postgres::Error) -> Error {
        fault(error)
    }
}

/// What an error means for whoever runs the node: to wait, or to change something.
pub(super) fn fault(error: tokio_postgres::Error) -> Error {
    let text = chain(&error);
    let passes = match error.code() {
        Some(code) => passes(code),
        None => error.is_closed() || is_io(&error),
    };
    match passes {
        true => Error::Away(text),
        false => Error::Refused(text),
    }
}

/// The server stops, starts, is full, gave way to another transaction, or takes no writes while another takes its place.
fn passes(code: &SqlState) -> bool {
    ["57P", "53", "40", "08"]
        .iter()
        .any(|class| code.code().starts_with(class))
        || [&SqlState::READ_ONLY_SQL_TRANSACTION, &SqlState::LOCK_NOT_AVAILABLE].contains(&code)
}

/// The network failed, and not what TLS thinks of the server.
fn is_io(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(io) = error.downcast_ref::<io::Error>() {
            return !io.get_ref().is_some_and(|inner| inner.is::<rustls::Error>());
        }
        next = error.source();
    }
    false
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}
