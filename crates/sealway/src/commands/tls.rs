//! `sealway tls`.

pub(crate) mod certificate;
pub(crate) mod make;
pub(crate) mod ping;

use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::CertificateDer;
use sealway_v2ray::text::escape;

use crate::args::{Tls, TlsCert, TlsPing};
use crate::exit::Exit;
use crate::output;
use crate::problem::Problem;
use certificate::{aligned, day, digest, hashes, shown};
use make::{Made, Wanted};
use ping::{Seen, Server, Unseen};

const DAY: Duration = Duration::from_secs(24 * 3600);

pub(crate) fn run(tls: &Tls) -> Result<Exit, Problem> {
    match tls {
        Tls::Cert(options) => cert(options),
        Tls::Hash { file } => hash(file),
        Tls::Ping(options) => ping(options),
    }
}

fn cert(options: &TlsCert) -> Result<Exit, Problem> {
    let wanted = Wanted {
        common_name: options.domains.first().cloned().unwrap_or_default(),
        domains: options.domains.clone(),
        organisation: "Sealway".to_owned(),
        is_authority: options.ca,
        holds: DAY * options.days,
    };
    let made = Made::new(wanted)
        .map_err(|what| Problem::usage(format!("no certificate can be made for these names: {what}")))?;
    match &options.file {
        Some(name) => made
            .write(name)
            .map_err(|(path, error)| Problem::new(Exit::Storage, format!("{}: {error}", path.display())))?,
        None => output::print(&made.json())?,
    }
    Ok(Exit::Done)
}

fn hash(path: &Path) -> Result<Exit, Problem> {
    let said = |exit, what: String| Problem::new(exit, format!("{}: {what}", path.display()));
    let read = certificate::read(path).map_err(|error| said(Exit::Storage, error.to_string()))?;
    let chain = read.map_err(|what| said(Exit::Usage, what))?;
    let mut rows = hashes(&chain);
    let whole = sealway_proxy::chain_digest(chain.iter().map(|one| one.as_ref()));
    rows.push(("Chain SHA256:".to_owned(), STANDARD.encode(whole)));
    output::answer(&aligned(&rows))
}

fn ping(options: &TlsPing) -> Result<Exit, Problem> {
    let server = Server::parse(&options.server).map_err(Problem::usage)?;
    let ip = match options.ip {
        Some(ip) => ip,
        None => server.resolve().map_err(|error| {
            Problem::new(Exit::Remote, format!("{} cannot be found: {error}", server.name))
                .hint("check the name, or give its address with --ip")
        })?,
    };
    output::print(&format!(
        "{} at {}\n",
        server.name,
        std::net::SocketAddr::new(ip, server.port)
    ))?;
    look(&server, ip, false)?;
    look(&server, ip, true)
}

/// Shakes hands and prints what was seen.
fn look(server: &Server, ip: IpAddr, shows_name: bool) -> Result<Exit, Problem> {
    let (title, exit) = match (server.ping(ip, shows_name), shows_name) {
        (Err(Unseen::Unreachable(error)), _) => {
            return Err(Problem::new(Exit::Remote, format!("it cannot be reached: {error}")));
        }
        (Err(Unseen::Handshake(why)), shows_name) => {
            let rows = [("Handshake:".to_owned(), format!("failed: {}", escape(&why)))];
            (aligned(&rows), if shows_name { Exit::Remote } else { Exit::Done })
        }
        (Ok(seen), shows_name) => {
            let exit = if shows_name && seen.trust.is_err() {
                Exit::Identity
            } else {
                Exit::Done
            };
            (aligned(&rows(&seen, shows_name)), exit)
        }
    };
    let how = if shows_name { "With" } else { "Without" };
    output::print(&format!("\n{how} the name\n{title}"))?;
    Ok(exit)
}

/// What was seen, a line for each.
fn rows(seen: &Seen, shows_name: bool) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    let mut row = |what: &str, text: String| rows.push((format!("{what}:"), text));
    row("Version", version(seen).to_owned());
    row(
        "Cipher suite",
        seen.suite.map_or_else(String::new, |suite| format!("{suite:?}")),
    );
    let hybrid = if is_hybrid(seen) {
        "post-quantum"
    } else {
        "not post-quantum"
    };
    row("Key exchange", format!("{}, {hybrid}", group(seen)));
    row(
        "ALPN",
        seen.alpn
            .as_deref()
            .map_or_else(|| "none".into(), |name| escape(name).into_owned()),
    );
    let bytes: usize = seen.chain.iter().map(|one| one.len()).sum();
    row(
        "Chain",
        match seen.chain.len() {
            1 => format!("1 certificate of {bytes} bytes"),
            many => format!("{many} certificates of {bytes} bytes"),
        },
    );
    for one in &seen.chain {
        own(one, &mut row);
    }
    if shows_name {
        row(
            "Trusted",
            match &seen.trust {
                Ok(()) => "yes".to_owned(),
                Err(why) => format!("no: {}", escape(why)),
            },
        );
    }
    rows
}

/// The lines of one certificate.
fn own(der: &CertificateDer<'_>, row: &mut impl FnMut(&str, String)) {
    match shown(der) {
        None => row("Certificate", "cannot be read".to_owned()),
        Some(shown) => {
            row("Certificate", format!("<{}>", shown.common_name));
            if !shown.names.is_empty() {
                row("  names", shown.names.join(" "));
            }
            row("  holds", format!("{} to {}", day(shown.holds.0), day(shown.holds.1)));
            row("  key", format!("{}, signed by {}", shown.key, shown.signed_by));
        }
    }
    row("  SHA256", digest(der));
}

/// The version of TLS.
pub(crate) fn version(seen: &Seen) -> &'static str {
    match seen.version {
        Some(rustls::ProtocolVersion::TLSv1_3) => "TLS 1.3",
        Some(rustls::ProtocolVersion::TLSv1_2) => "TLS 1.2",
        _ => "unknown",
    }
}

/// The key exchange, as Go's programs call it.
pub(crate) fn group(seen: &Seen) -> String {
    use rustls::NamedGroup;
    match seen.group {
        Some(NamedGroup::secp256r1) => "CurveP256".to_owned(),
        Some(NamedGroup::secp384r1) => "CurveP384".to_owned(),
        Some(group) => format!("{group:?}"),
        None => "unknown".to_owned(),
    }
}

/// Whether the key exchange withstands quantum computers, as far as is known.
pub(crate) fn is_hybrid(seen: &Seen) -> bool {
    seen.group == Some(rustls::NamedGroup::X25519MLKEM768)
}
