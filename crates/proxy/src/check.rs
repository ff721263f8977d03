//! What would keep settings from running, found without running them.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{Access as May, access};
use socket2::{Domain, Protocol, Socket, Type};

use crate::engine::Engine;
use crate::engine::plan::Plan;
use crate::files::{can_append, readers};
use crate::lists::{ListSize, Lists};
use crate::settings::{
    Certificate, Inbound, Listen, LogTarget, Outbound, Parts, Pem, SendThrough, Settings, Transparent, UnixName,
};
use crate::tls::build;
use crate::{Error, inbound, listen, sockopt};

/// Builds everything that can fail before the first connection, and lets go of it again. Gives what each list of a geo file
/// takes.
///
/// # Errors
/// All that is wrong.
pub(crate) fn whole(settings: &Settings) -> Result<Vec<ListSize>, Vec<Error>> {
    let mut found = Parts::from(settings).problems();
    let lists = Arc::new(Lists::noting(settings));
    if !found.is_empty() {
        found.extend(missing(settings, &lists));
        return Err(found);
    }
    let mut settings = Settings {
        access_log: LogTarget::Off,
        ..settings.clone()
    };
    let inbounds = settings.inbounds.iter_mut().flat_map(|one| one.transport.key_logs());
    let outbounds = settings.outbounds.iter_mut().flat_map(|one| one.transport.key_logs());
    // Nothing is written, nor made.
    inbounds.chain(outbounds).for_each(|log| *log = None);
    found.extend(Engine::with_lists(&settings, &Arc::default(), Arc::clone(&lists)).err());
    found.extend(missing(&settings, &lists));
    match found.is_empty() {
        true => Ok(lists.sizes()),
        false => Err(found),
    }
}

/// Every list of a geo file that cannot be had, whoever names it, and whether or not the engine came so far.
fn missing(settings: &Settings, lists: &Lists) -> Vec<Error> {
    for (kind, list) in Plan::of(settings.clone()).lists() {
        // What else is wrong is told by those whom it belongs to; here only what is noted counts.
        let _ = lists.number(kind, list);
    }
    lists.noted()
}

impl Parts {
    /// Everything that would keep these parts from running on this machine, as far as that shows beforehand: certificates,
    /// options that the kernel refuses, addresses that it does not have, logs that cannot be written. Makes no file and takes
    /// no port, so that it may be asked beside a server that runs.
    ///
    /// Each is an [`Error::Config`], or an [`Error::Listen`] for what may pass by itself.
    pub fn problems(&self) -> Vec<Error> {
        let mut found = Vec::new();
        if let LogTarget::File(path) = &self.access_log
            && let Err(error) = can_append(path)
        {
            let what = format!("{} cannot be opened: {error}", path.display());
            found.push(Error::config("log.access", what));
        }
        let mut taken = HashMap::new();
        for (at, inbound) in &self.inbounds {
            let place = format!("inbounds[{at}]");
            found.extend(of_inbound(&place, inbound));
            found.extend(shared_ports(&place, inbound, &mut taken));
        }
        for (at, outbound) in &self.outbounds {
            let place = format!("outbounds[{at}]");
            found.extend(of_outbound(&place, outbound));
        }
        found
    }

    /// Private keys in files that others can read, as [`Error::Config`] with the key of the configuration that names the file.
    pub fn exposed_keys(&self, credentials: Option<&Path>) -> Vec<Error> {
        let inbounds = self.inbounds.iter().filter_map(|(at, one)| {
            let tls = one.transport.tls.as_ref()?;
            Some((format!("inbounds[{at}]"), &tls.certificates, &tls.entries))
        });
        let outbounds = self.outbounds.iter().filter_map(|(at, one)| {
            let tls = one.transport.tls.as_ref()?;
            Some((format!("outbounds[{at}]"), &tls.certificates, &tls.entries))
        });
        let mut found = Vec::new();
        for (place, certificates, entries) in inbounds.chain(outbounds) {
            for (i, Certificate { key, .. }) in certificates.iter().enumerate() {
                let Pem::File(path) = key else { continue };
                let Some(who) = readers(path, credentials) else {
                    continue;
                };
                let entry = entries.get(i).unwrap_or(&i);
                let place = format!("{place}.streamSettings.tlsSettings.certificates[{entry}].keyFile");
                let what = format!("{who} can read this private key: chmod 600 {}", path.display());
                found.push(Error::config(place, what));
            }
        }
        found
    }
}

fn of_inbound(place: &str, inbound: &Inbound) -> Vec<Error> {
    let mut found = Vec::new();
    found.extend(inbound::problem(place, &inbound.protocol));
    if let Some(reality) = &inbound.transport.reality {
        found.extend(build::key_log_problem(
            &format!("{place}.streamSettings.realitySettings"),
            &reality.key_log,
        ));
    }
    if let Some(tls) = &inbound.transport.tls {
        found.extend(build::server_problems(&format!("{place}.streamSettings"), tls));
    }
    found.extend(sockopt::problems(place, &inbound.transport.socket, true));
    // One address has many ports.
    let mut asked: Vec<IpAddr> = Vec::new();
    for listen in &inbound.listen {
        let on = match listen {
            Listen::Port(address) if !asked.contains(&address.ip()) => {
                asked.push(address.ip());
                is_here(address.ip())
            }
            Listen::Unix(UnixName::Path(path), _) => folder_is_there(path),
            _ => Ok(()),
        };
        if let Err(source) = on {
            found.push(Error::Listen {
                place: place.to_owned(),
                on: listen::name(listen),
                source,
            });
        }
    }
    found
}

fn of_outbound(place: &str, outbound: &Outbound) -> Vec<Error> {
    let mut found = Vec::new();
    if let Some(tls) = &outbound.transport.tls {
        found.extend(build::client_problems(&format!("{place}.streamSettings"), tls));
    }
    if let Some(reality) = &outbound.transport.reality {
        let place = format!("{place}.streamSettings.realitySettings");
        found.extend(build::key_log_problem(&place, &reality.key_log));
    }
    found.extend(sockopt::problems(place, &outbound.transport.socket, false));
    if let Some(SendThrough::Address(source)) = outbound.send_through
        && outbound.transport.socket.transparent == Transparent::No
        && outbound.transport.through.is_none()
        && let Err(error) = is_here(source)
    {
        let what = format!("{source} cannot be a source address: {error}");
        found.push(Error::config(format!("{place}.sendThrough"), what));
    }
    found
}

/// Whether this machine has an address.
fn is_here(ip: IpAddr) -> io::Result<()> {
    let address = SocketAddr::new(ip, 0);
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.bind(&address.into())
}

fn folder_is_there(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(folder) => Ok(access(folder, May::WRITE_OK | May::EXEC_OK)?),
        None => Ok(()),
    }
}

/// A listener: its address and whether it takes IPv6 only, and for streams or datagrams.
type Taken = HashMap<(u16, bool), Vec<(IpAddr, bool, String)>>;

/// Ports that two inbounds would listen on.
fn shared_ports(place: &str, inbound: &Inbound, taken: &mut Taken) -> Vec<Error> {
    let mut found = Vec::new();
    let (tcp, udp) = inbound.protocol.networks();
    let v6_only = inbound.transport.socket.v6_only;
    for listen in &inbound.listen {
        let address = match listen {
            Listen::Port(address) => *address,
            Listen::EveryAddress(port) => SocketAddr::from((std::net::Ipv6Addr::UNSPECIFIED, *port)),
            Listen::Unix(..) if udp && !tcp => {
                let what = "a unix socket takes no datagrams here: listen on a port, or for tcp";
                found.push(Error::config(format!("{place}.listen"), what));
                continue;
            }
            Listen::Unix(..) => continue,
        };
        if address.port() == 0 {
            continue;
        }
        for (streams, wanted) in [(true, tcp), (false, udp)] {
            if !wanted {
                continue;
            }
            let others = taken.entry((address.port(), streams)).or_default();
            let own = (address.ip(), v6_only);
            if let Some((.., other)) = others.iter().find(|(ip, v6_only, _)| overlap((*ip, *v6_only), own)) {
                let what = format!("{other} listens on port {} already", address.port());
                found.push(Error::config(format!("{place}.port"), what));
            }
            others.push((own.0, own.1, place.to_owned()));
        }
    }
    found
}

fn overlap(a: (IpAddr, bool), b: (IpAddr, bool)) -> bool {
    let covers = |(ip, v6_only): (IpAddr, bool), other: IpAddr| match ip {
        IpAddr::V4(ip) => ip == Ipv4Addr::UNSPECIFIED && other.is_ipv4(),
        IpAddr::V6(ip) => ip.is_unspecified() && (!v6_only || other.is_ipv6()),
    };
    a.0 == b.0 || covers(a, b.0) || covers(b, a.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listeners_overlap_as_the_kernel_has_it() {
        let at = |text: &str, v6_only| (text.parse::<IpAddr>().unwrap(), v6_only);
        for (a, b, wanted) in [
            (at("127.0.0.1", false), at("127.0.0.1", false), true),
            (at("127.0.0.1", false), at("127.0.0.2", false), false),
            (at("0.0.0.0", false), at("127.0.0.2", false), true),
            (at("::", false), at("127.0.0.2", false), true),
            (at("::", true), at("127.0.0.2", false), false),
            (at("::", true), at("::1", false), true),
            (at("0.0.0.0", false), at("::1", false), false),
            (at("0.0.0.0", false), at("::", false), true),
            (at("0.0.0.0", false), at("::", true), false),
        ] {
            assert_eq!((overlap(a, b), overlap(b, a)), (wanted, wanted), "{a:?} {b:?}");
        }
    }
}
