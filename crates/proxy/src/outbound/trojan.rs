//! Trojan, as the client.

use sealway_v2ray::Destination;
use sealway_v2ray::trojan::Request;

use super::{Caller, Dialer, Far, Protocol};
use crate::error::{Error, Pending};
use crate::settings::TrojanOut;
use crate::stream::Stream;
use crate::udp::{Addressed, PacketEnd};

/// A Trojan server.
pub(super) struct Trojan {
    pub(super) settings: TrojanOut,
    pub(super) dialer: Dialer,
}

impl Trojan {
    async fn stream(&self, to: &Destination, caller: &Caller) -> Result<Stream, Error> {
        let request = Request {
            key: self.settings.key.clone(),
            to: to.clone(),
        };
        let mut header = Vec::with_capacity(Request::MAX_LEN);
        request.encode(&mut header);
        self.dialer.connect_with(&self.settings.server, header, caller).await
    }
}

impl Protocol for Trojan {
    fn connect<'a>(&'a self, to: &'a Destination, caller: &'a Caller) -> Pending<'a, Far> {
        Box::pin(async { Ok(Far::Stream(Box::new(self.stream(to, caller).await?))) })
    }

    fn associate<'a>(&'a self, to: &'a Destination, caller: &'a Caller) -> Pending<'a, Box<dyn PacketEnd>> {
        Box::pin(async { Ok(Addressed::new(self.stream(to, caller).await?) as Box<dyn PacketEnd>) })
    }

    fn is_open_to_all(&self, _: &Destination) -> bool {
        true
    }
}
