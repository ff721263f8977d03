//! The halves of a route between two hosts: the server on one, the client on the other.

use std::io;
use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

use super::opening::{self, Opening};
use super::tls::AUTHORITY;
use super::{Engine, Route, RouteError, Stack, refused, system};
use crate::peer::proc;

/// Most bytes of a certificate.
const MAX_CERTIFICATE: usize = 16 * 1024;

/// What the client's host must know of a server.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Served {
    pub(crate) port: u16,
    /// The user's id, a UUID.
    id: String,
    /// The certificate that signed the server's; empty without TLS.
    authority: String,
}

impl Served {
    /// Whether it is what a correct host says: it goes into files that a program reads.
    fn is_sound(&self) -> bool {
        let id = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
        let line = |byte: u8| byte == b'\n' || byte == b'\r' || (b' '..=b'~').contains(&byte);
        self.port != 0
            && self.id.len() == 36
            && self.id.bytes().all(id)
            && self.authority.len() <= MAX_CERTIFICATE
            && self.authority.bytes().all(line)
    }
}

impl Route {
    /// Starts the server of a stack at an address of this machine: all that it is asked for it takes to `sink`.
    ///
    /// # Errors
    /// [`RouteError`]; whatever was started has been ended then.
    pub(crate) fn serve(
        stack: &Stack,
        engine: &Engine,
        listen: IpAddr,
        sink: SocketAddr,
    ) -> Result<(Route, Served), RouteError> {
        let (id, folder) = (opening::id()?, opening::folder()?);
        let mut opening = Opening::new(stack, engine, &folder, &id);
        opening.facts.listen = listen;
        opening.facts.only = Some(sink);
        let entry = opening.server(sink)?;
        let roles = opening.roles();
        let authority = match stack.tls {
            true => std::fs::read_to_string(folder.path().join(AUTHORITY)).map_err(system("read a certificate"))?,
            false => String::new(),
        };
        let served = Served {
            port: entry.port(),
            id,
            authority,
        };
        Ok((Route::new(entry, roles, Some(folder)), served))
    }

    /// Starts the client of a stack, for a server of another host at `server`; `wire` is as in [`Route::open_over`].
    ///
    /// # Errors
    /// [`RouteError`]; whatever was started has been ended then.
    pub(crate) fn reach(
        stack: &Stack,
        engine: &Engine,
        served: &Served,
        (server, sink): (SocketAddr, SocketAddr),
        wire: impl FnOnce(SocketAddr) -> io::Result<SocketAddr>,
    ) -> Result<Route, RouteError> {
        if !served.is_sound() {
            let what = "the other host describes its server as no correct one does";
            return Err(refused("configure the client", what));
        }
        let folder = opening::folder()?;
        let mut opening = Opening::new(stack, engine, &folder, &served.id);
        if stack.tls {
            proc::write(&folder.path().join(AUTHORITY), &served.authority).map_err(system("write a certificate"))?;
        }
        let next = wire(server).map_err(system("put something between client and server"))?;
        let entry = opening.client(next, sink)?;
        let roles = opening.roles();
        Ok(Route::new(entry, roles, Some(folder)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_into_files_is_looked_at() {
        let sound = Served {
            port: 1,
            id: "00000000-0000-4000-8000-000000000000".to_owned(),
            authority: "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n".to_owned(),
        };
        assert!(sound.is_sound());
        let with = |change: &dyn Fn(&mut Served)| {
            let mut served = sound.clone();
            change(&mut served);
            served.is_sound()
        };
        assert!(!with(&|served| served.port = 0));
        assert!(!with(&|served| served.id.truncate(35)));
        assert!(!with(&|served| served.id.replace_range(..1, "\"")));
        assert!(!with(&|served| served.authority.push('\0')));
        assert!(!with(&|served| served.authority = "A".repeat(MAX_CERTIFICATE + 1)));
    }
}
