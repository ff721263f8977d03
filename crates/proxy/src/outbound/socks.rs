//! SOCKS 5, as the client.

pub(crate) mod relayed;

use std::net::{IpAddr, Ipv4Addr};

use sealway_v2ray::socks::{Client, ClientEvent, Command};
use sealway_v2ray::{Address, Destination};

use super::{Caller, Dialer, Far, Protocol};
use crate::error::{Error, Pending};
use crate::settings::ProxyOut;
use crate::stats::Traffic;
use crate::stream::Stream;
use crate::transport::Remote;
use crate::udp::PacketEnd;

use relayed::Relayed;

/// A SOCKS server.
pub(super) struct Socks {
    pub(super) proxy: ProxyOut,
    pub(super) dialer: Dialer,
}

impl Socks {
    async fn stream(&self, to: &Destination, caller: &Caller) -> Result<Far, Error> {
        let (mut stream, _) = self.dialer.connect(&self.proxy.server, &[], caller).await?;
        self.ask(&mut stream, &Command::Connect(to.clone())).await?;
        Ok(Far::Stream(Box::new(stream)))
    }

    /// Asks for datagrams to be relayed for as long as the connection lives.
    async fn relayed(&self, caller: &Caller) -> Result<Box<dyn PacketEnd>, Error> {
        let connector = &self.dialer.connector;
        // What passes here is the server's work, not the client's traffic.
        let (mut control, _) = connector
            .connect(&Remote::server(&self.proxy.server), &[], Traffic::default(), caller)
            .await?;
        let unknown = Destination::udp(Address::from(IpAddr::V4(Ipv4Addr::UNSPECIFIED)), 0);
        let (address, port) = self.ask(&mut control, &Command::UdpAssociate(unknown)).await?;
        let relay = match address.ip() {
            // "Where you are connected to".
            Some(ip) if ip.is_unspecified() => match control.carrier.peer() {
                Some(server) if connector.line.through.is_none() => (server.ip().into(), port),
                _ => (self.proxy.server.0.clone(), port),
            },
            _ => (address, port),
        };
        let wire = connector.line.datagrams(&relay, caller).await?;
        Ok(Box::new(Relayed::new(control, wire, self.dialer.traffic.clone())))
    }

    async fn ask(&self, stream: &mut Stream, command: &Command) -> Result<(Address, u16), Error> {
        let account = self.proxy.account.as_ref();
        let login = account.map(|account| (account.user.as_bytes(), account.pass.as_bytes()));
        let (mut client, first) = Client::new(command, login)?;
        stream.send(&first).await?;
        loop {
            match stream.read(|bytes| client.handle(bytes)).await? {
                ClientEvent::Send(bytes) => stream.send(&bytes).await?,
                ClientEvent::Ready { address, port } => return Ok((address, port)),
            }
        }
    }
}

impl Protocol for Socks {
    fn connect<'a>(&'a self, to: &'a Destination, caller: &'a Caller) -> Pending<'a, Far> {
        Box::pin(self.stream(to, caller))
    }

    fn associate<'a>(&'a self, _: &'a Destination, caller: &'a Caller) -> Pending<'a, Box<dyn PacketEnd>> {
        Box::pin(self.relayed(caller))
    }

    fn is_open_to_all(&self, _: &Destination) -> bool {
        true
    }
}
