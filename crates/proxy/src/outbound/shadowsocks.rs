//! Shadowsocks, as the client.

mod relayed;

use sealway_v2ray::Destination;
use sealway_v2ray::shadowsocks::edition2022::{MAX_PADDING, Request};
use sealway_v2ray::shadowsocks::{ChunkSealer, classic};

use super::{Caller, Dialer, Far, Protocol};
use crate::body::shadowsocks::{Salt, ShadowsocksOpen, ShadowsocksSeal};
use crate::clock::Clock;
use crate::error::{Error, Pending};
use crate::random;
use crate::settings::ShadowsocksOut;
use crate::stream::Stream;
use crate::udp::PacketEnd;

use relayed::Relayed;

/// A Shadowsocks server.
pub(super) struct Shadowsocks {
    settings: ShadowsocksOut,
    dialer: Dialer,
    clock: Clock,
}

impl Shadowsocks {
    pub(super) fn new(settings: ShadowsocksOut, dialer: Dialer, clock: Clock) -> Self {
        Shadowsocks {
            settings,
            dialer,
            clock,
        }
    }

    /// Appends the beginning of a request.
    fn begin(&self, salt: &Salt, to: &Destination, out: &mut Vec<u8>) -> Result<ChunkSealer, Error> {
        let keys = &self.settings.keys;
        if !keys.method().is_2022() {
            return Ok(classic::begin(keys, salt.bytes(), to, out)?);
        }
        // The first payload goes in a chunk of its own, so padding hides how long the target's name is.
        let mut padding = [0; MAX_PADDING];
        random::fill(&mut padding)?;
        let len = usize::from(u16::from_ne_bytes(random::bytes()?)) % MAX_PADDING + 1;
        let now = (self.clock)();
        Ok(Request::begin(keys, salt.bytes(), now, to, &padding[..len], out)?.sealer)
    }

    async fn stream(&self, to: &Destination, caller: &Caller) -> Result<Stream, Error> {
        let own = self.settings.keys.own();
        let salt = Salt::draw(own)?;
        let mut header = Vec::new();
        let sealer = self.begin(&salt, to, &mut header)?;
        let mut stream = self.dialer.connect_with(&self.settings.server, header, caller).await?;
        stream.set_sealer(Box::new(ShadowsocksSeal(sealer)));
        stream.set_opener(Box::new(match own.method().is_2022() {
            true => ShadowsocksOpen::edition2022(own.clone(), salt, self.clock),
            false => ShadowsocksOpen::classic(own.clone()),
        }));
        Ok(stream)
    }

    async fn relayed(&self, caller: &Caller) -> Result<Box<dyn PacketEnd>, Error> {
        let relayed = Relayed::new(&self.settings, &self.dialer, self.clock, caller).await?;
        Ok(Box::new(relayed))
    }
}

impl Protocol for Shadowsocks {
    fn connect<'a>(&'a self, to: &'a Destination, caller: &'a Caller) -> Pending<'a, Far> {
        Box::pin(async { Ok(Far::Stream(Box::new(self.stream(to, caller).await?))) })
    }

    fn associate<'a>(&'a self, _: &'a Destination, caller: &'a Caller) -> Pending<'a, Box<dyn PacketEnd>> {
        Box::pin(self.relayed(caller))
    }

    fn is_open_to_all(&self, _: &Destination) -> bool {
        true
    }
}
