//! Hosts with ports and names of unix sockets, as they stand in one string.

use std::path::PathBuf;

use super::context::quoted;
use crate::Address;

/// The name of a unix socket.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum UnixName {
    /// A path in the file system.
    Path(PathBuf),
    /// An abstract name (Linux), without the zero byte it begins with; written `@@name`, with the zero bytes that fill a socket
    /// address.
    Abstract(Vec<u8>),
}

/// Longest name of a unix socket that fits into a socket address of Linux with a zero byte, bytes.
const MAX_UNIX: usize = 107;

impl UnixName {
    /// Reads `/path`, `@name` or `@@name`. `None`: it is neither.
    pub(crate) fn parse(text: &str) -> Option<Result<Self, String>> {
        let name = if text.starts_with('/') {
            UnixName::Path(text.into())
        } else if let Some(name) = text.strip_prefix("@@") {
            let mut name = name.as_bytes().to_vec();
            name.resize(name.len().max(MAX_UNIX), 0);
            UnixName::Abstract(name)
        } else {
            UnixName::Abstract(text.strip_prefix('@')?.into())
        };
        Some(if text.len() > MAX_UNIX || text.contains('\0') || text.len() < 2 {
            Err(format!(
                "{} is no name of a unix socket, which has at most {MAX_UNIX} bytes",
                quoted(text)
            ))
        } else {
            Ok(name)
        })
    }
}

/// Reads the name of a unix socket and the mode that its file is given, if one stands behind it: `/path,0660`. `None`: it is no such
/// name.
pub(crate) fn unix_with_mode(text: &str) -> Option<Result<(UnixName, Option<u32>), String>> {
    let (name, mode) = text
        .split_once(',')
        .map_or((text, None), |(name, mode)| (name, Some(mode.trim())));
    let name = UnixName::parse(name.trim())?;
    Some(match mode.map(|mode| (mode, u32::from_str_radix(mode, 8))) {
        None => name.map(|name| (name, None)),
        Some((_, Ok(mode @ 0..=0o7777))) => name.map(|name| (name, Some(mode))),
        Some((mode, _)) => Err(format!("{} is no mode of a file", quoted(mode))),
    })
}

/// Reads `80`, `host:80`, `[::1]:80`.
pub(crate) fn host_port(text: &str) -> Result<(Option<Address>, u16), String> {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) => (Some(host), port),
        None => (None, text),
    };
    let digits = !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit());
    let Some(port) = port.parse::<u16>().ok().filter(|port| digits && *port != 0) else {
        return Err(format!("{} ends in no port from 1 to 65535", quoted(text)));
    };
    match host {
        None => Ok((None, port)),
        Some(host) if host.contains(':') && !host.starts_with('[') => {
            Err(format!("{} wants brackets around its IPv6 address", quoted(text)))
        }
        Some(host) => Address::parse(host)
            .map(|host| (Some(host), port))
            .map_err(|error| error.to_string()),
    }
}

/// Reads `host:port`, where either may be missing, as `redirect` has it.
pub(crate) fn optional_host_port(text: &str) -> Result<(Option<Address>, Option<u16>), String> {
    let Some((host, port)) = text.rsplit_once(':') else {
        return Err(format!("{} is not host:port", quoted(text)));
    };
    if host.contains(':') && !host.starts_with('[') {
        return Err(format!("{} wants brackets around its IPv6 address", quoted(text)));
    }
    let host = match host {
        "" => None,
        host => Some(Address::parse(host).map_err(|error| error.to_string())?),
    };
    let port = match port {
        "" => None,
        port => {
            let ports = port
                .parse::<u16>()
                .ok()
                .filter(|_| port.bytes().all(|b| b.is_ascii_digit()));
            Some(ports.ok_or_else(|| format!("{} ends in no port", quoted(text)))?).filter(|port| *port != 0)
        }
    };
    Ok((host, port))
}
