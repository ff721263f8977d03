//! `xray tls ping`: what is seen of a server's TLS, in Xray's lines.

use std::net::IpAddr;
use std::process::ExitCode;

use sealway_v2ray::text::escape;

use super::flags::Flags;
use super::{print, refused};
use crate::commands::tls::certificate::{aligned, digest, shown};
use crate::commands::tls::ping::{Seen, Server, Unseen};
use crate::commands::tls::{group, is_hybrid, version};
use crate::exit::Exit;

pub(super) fn run(flags: &Flags) -> ExitCode {
    match ping(flags) {
        Ok(()) => Exit::Done.into(),
        Err(text) => refused(Exit::Internal, text),
    }
}

fn ping(flags: &Flags) -> Result<(), String> {
    let server = flags.words().first().ok_or("domain not specified")?;
    let server = server.to_string_lossy();
    print(&format!("TLS ping:  {}\n", escape(&server)));
    let server = Server::parse(&server)?;
    let ip = match flags.text("ip").filter(|text| !text.is_empty()) {
        Some(text) => text.parse().map_err(|_| format!("invalid IP: {text}"))?,
        None => server
            .resolve()
            .map_err(|error| format!("Failed to resolve IP: {error}"))?,
    };
    print(&format!("Using IP:  {ip}:{}\n", server.port));
    look(&server, ip, false)?;
    look(&server, ip, true)?;
    print(&format!("{LINE}TLS ping finished\n"));
    Ok(())
}

const LINE: &str = "-------------------\n";

fn look(server: &Server, ip: IpAddr, shows_name: bool) -> Result<(), String> {
    let how = if shows_name { "with" } else { "without" };
    print(&format!("{LINE}Pinging {how} SNI\n"));
    let failed = |why: &str| format!("Handshake failure:  {}\n", escape(why));
    let seen = match server.ping(ip, shows_name) {
        Err(Unseen::Unreachable(error)) => return Err(format!("Failed to dial tcp: {error}")),
        Err(Unseen::Handshake(why)) => failed(&why),
        Ok(seen) => match &seen.trust {
            Err(why) if shows_name => failed(&format!("tls: failed to verify certificate: x509: {why}")),
            _ => format!("Handshake succeeded\n{}", aligned(&rows(&seen))),
        },
    };
    print(&seen);
    Ok(())
}

/// Of a handshake and of the chain. The server's own certificate is the last one that is for any name, and what is for none is an
/// authority's.
fn rows(seen: &Seen) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    let mut row = |what: &str, text: String| rows.push((format!("{what}:"), text));
    row("TLS Version", version(seen).to_owned());
    row(
        "TLS Post-Quantum key exchange",
        format!("{} ({})", is_hybrid(seen), group(seen)),
    );
    let bytes: usize = seen.chain.iter().map(|one| one.len()).sum();
    row(
        "Certificate chain's total length",
        format!("{bytes} (certs count: {})", seen.chain.len()),
    );
    let read: Vec<_> = seen.chain.iter().filter_map(|der| Some((der, shown(der)?))).collect();
    let Some((der, own)) = read.iter().rfind(|(_, shown)| !shown.names.is_empty()) else {
        return rows;
    };
    row("Cert's signature algorithm", own.signed_by.to_owned());
    row("Cert's publicKey algorithm", own.key.to_owned());
    row("Cert's leaf SHA256", digest(der));
    for (der, other) in read.iter().filter(|(_, shown)| shown.names.is_empty()) {
        row(&format!("Cert's CA <{}> SHA256", other.common_name), digest(der));
    }
    row("Cert's allowed domains", format!("[{}]", own.names.join(" ")));
    rows
}
