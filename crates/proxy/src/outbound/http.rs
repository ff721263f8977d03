//! HTTP proxy, as the client: CONNECT.

use sealway_v2ray::Destination;
use sealway_v2ray::http::client;

use super::{Caller, Dialer, Far, Protocol};
use crate::error::{Error, Pending};
use crate::settings::ProxyOut;
use crate::udp::PacketEnd;

/// An HTTP proxy.
pub(super) struct Http {
    pub(super) proxy: ProxyOut,
    pub(super) dialer: Dialer,
}

impl Http {
    async fn tunnel(&self, to: &Destination, caller: &Caller) -> Result<Far, Error> {
        let ProxyOut {
            server,
            account,
            headers,
        } = &self.proxy;
        let (mut stream, _) = self.dialer.connect(server, &[], caller).await?;
        let headers: Vec<(&str, &str)> = headers.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        let login = account
            .as_ref()
            .map(|account| (account.user.as_str(), account.pass.as_str()));
        stream.send(&client::connect(to, login, &headers)?).await?;
        stream.read(client::parse_connected).await?;
        Ok(Far::Stream(Box::new(stream)))
    }
}

impl Protocol for Http {
    fn connect<'a>(&'a self, to: &'a Destination, caller: &'a Caller) -> Pending<'a, Far> {
        Box::pin(self.tunnel(to, caller))
    }

    fn associate<'a>(&'a self, _: &'a Destination, _: &'a Caller) -> Pending<'a, Box<dyn PacketEnd>> {
        Box::pin(async {
            Err(Error::Unsupported(
                "datagrams through an http outbound: HTTP proxies carry streams only",
            ))
        })
    }
}
