//! Datagrams straight to their targets.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use sealway_v2ray::{Address, Destination, Network};

use super::Redirect;
use crate::Error;
use crate::dial::{OwnSocket, datagram_socket};
use crate::log::Limit;
use crate::loops::LoopGuard;
use crate::outbound::Dialer;
use crate::policy::DialPolicy;
use crate::resolver::{Resolver, of_client};
use crate::settings::DomainStrategy;
use crate::stats::Traffic;
use crate::udp::{PacketEnd, Questions, Slot, poll_socket};

/// Names whose address one association remembers.
const MAX_NAMES: usize = 64;
/// Bytes of datagrams of one association that wait for addresses. What comes beyond it is dropped, as a full socket would.
const MAX_WAITING: usize = 128 << 10;

/// Lines a second about refused datagrams, of all associations: a client may have thousands.
static REFUSED: Limit = Limit::new(50);

/// A socket that sends anywhere.
pub(super) struct Open {
    socket: OwnSocket,
    v6: bool,
    strategy: DomainStrategy,
    policy: DialPolicy,
    loops: Arc<LoopGuard>,
    client: Option<SocketAddr>,
    /// Where the last datagram went that was found not to lead back here.
    elsewhere: Option<SocketAddr>,
    redirect: Redirect,
    resolver: Arc<Resolver>,
    names: HashMap<Destination, SocketAddr>,
    resolving: Questions<Result<Vec<SocketAddr>, Error>>,
    /// With a redirect: where the last datagram went, and where it was meant to go.
    redirected: Option<(SocketAddr, Destination)>,
    /// Lines about refused datagrams of this association.
    refused: Limit,
    traffic: Traffic,
}

impl Drop for Open {
    fn drop(&mut self) {
        let kept = self.refused.take();
        if kept.0 > 0 && REFUSED.pass().is_some() {
            tracing::warn!(
                "{} more datagrams of an association that has ended were dropped, as refused",
                kept.0
            );
        }
    }
}

impl Open {
    /// Binds a socket for both families, or for IPv4 where that is all there is.
    pub(super) fn bind(
        (policy, loops, client): (DialPolicy, Arc<LoopGuard>, Option<SocketAddr>),
        redirect: Redirect,
        strategy: DomainStrategy,
        Dialer { connector, traffic }: &Dialer,
        source: Option<IpAddr>,
    ) -> Result<Self, Error> {
        let bind = |ip: IpAddr| datagram_socket(ip, &connector.line.socket);
        let socket = match source {
            Some(ip) => bind(ip)?,
            None => bind(Ipv6Addr::UNSPECIFIED.into()).or_else(|_| bind(Ipv4Addr::UNSPECIFIED.into()))?,
        };
        let v6 = socket.local_addr()?.is_ipv6();
        Ok(Open {
            socket,
            v6,
            strategy,
            policy,
            loops,
            client,
            elsewhere: None,
            redirect,
            resolver: Arc::clone(&connector.line.resolver),
            names: HashMap::new(),
            resolving: Questions::default(),
            redirected: None,
            refused: Limit::new(1),
            traffic: traffic.clone(),
        })
    }

    /// Waits until the system says that the socket takes datagrams. What waited for an address that is known at once would
    /// find it full, for nothing has been heard of it yet.
    pub(super) async fn ready(self) -> Result<Self, Error> {
        self.socket.writable().await?;
        Ok(self)
    }

    /// Has the address of a name found. The datagram waits for it.
    fn resolve(&mut self, name: &Destination, datagram: (&[u8], &Destination)) {
        self.resolving.put(name, datagram, MAX_WAITING, || {
            let (host, port, strategy) = (name.address.clone(), name.port, self.strategy);
            let (resolver, client) = (Arc::clone(&self.resolver), self.client);
            Box::pin(async move { of_client(client, resolver.resolve(&host, port, strategy)).await })
        });
    }

    /// Sends what has waited for addresses that are found. What the socket has no room for is lost.
    fn send_resolved(&mut self, cx: &mut Context<'_>) {
        while let Some((name, found, waiting)) = self.resolving.poll(cx) {
            let address = found.and_then(|found| {
                let fits = found.into_iter().find(|a| self.v6 || a.is_ipv4());
                fits.ok_or_else(|| Error::Resolve { name: name.to_string() })
            });
            let address = match address {
                Ok(address) => address,
                // One name that does not exist is no reason to end the association.
                Err(error) => {
                    tracing::debug!("{} datagrams dropped: {error}", waiting.len());
                    continue;
                }
            };
            if self.names.len() >= MAX_NAMES {
                self.names.clear();
            }
            self.names.insert(name, address);
            for (bytes, to) in waiting {
                if self.poll_out(cx, &bytes, address, &to).is_pending() {
                    tracing::debug!("datagram to {address} dropped: the socket is full");
                }
            }
        }
    }

    /// Sends a datagram meant for `to`, unless it is refused.
    fn poll_out(&mut self, cx: &mut Context<'_>, bytes: &[u8], mut address: SocketAddr, to: &Destination) -> Poll<()> {
        if let Err(error) = self.policy.check(address, Network::Udp) {
            self.say(&error);
            return Poll::Ready(());
        }
        if self.elsewhere != Some(address) {
            if let Err(error) = self.loops.check(address, Network::Udp) {
                tracing::debug!("datagram dropped: {error}");
                return Poll::Ready(());
            }
            self.elsewhere = Some(address);
        }
        if self.redirect.of(to).is_some() {
            self.redirected = Some((address, to.clone()));
        }
        if self.v6
            && let IpAddr::V4(v4) = address.ip()
        {
            address.set_ip(v4.to_ipv6_mapped().into());
        }
        match ready!(self.socket.poll_send_to(cx, bytes, address)) {
            Ok(sent) => self.traffic.sent(sent),
            // Unreachable hosts and datagrams too long for the path concern this datagram only.
            Err(error) => tracing::debug!("datagram to {address} dropped: {error}"),
        }
        Poll::Ready(())
    }

    /// Says that a datagram is refused, once a second: a client sends as many as it likes.
    fn say(&self, error: &Error) {
        let Some(kept) = self.refused.pass() else { return };
        match REFUSED.pass() {
            Some(all) => tracing::warn!("datagram dropped: {error}{kept}{all}"),
            None => self.refused.put_back(kept),
        }
    }
}

impl PacketEnd for Open {
    fn poll_recv(&mut self, cx: &mut Context<'_>, slot: &mut Slot) -> Poll<Result<bool, Error>> {
        self.send_resolved(cx);
        loop {
            if let Some((len, from)) = ready!(poll_socket(cx, &self.socket, slot))? {
                self.traffic.received(len);
                let from = match &self.redirected {
                    // The client knows nothing of the redirect and waits for an answer from where it sent to.
                    Some((address, meant)) if *address == from => meant.clone(),
                    _ => Destination::udp(Address::from(from.ip()), from.port()),
                };
                slot.fill(len, from);
                return Poll::Ready(Ok(true));
            }
        }
    }

    fn poll_send(&mut self, cx: &mut Context<'_>, bytes: &[u8], to: &Destination) -> Poll<Result<(), Error>> {
        let elsewhere = self.redirect.of(to);
        let goes_to = elsewhere.as_ref().unwrap_or(to);
        match goes_to.socket_addr().or_else(|| self.names.get(goes_to).copied()) {
            Some(address) => ready!(self.poll_out(cx, bytes, address, to)),
            None => {
                self.resolve(goes_to, (bytes, to));
                self.send_resolved(cx);
            }
        }
        Poll::Ready(Ok(()))
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.send_resolved(cx);
        Poll::Ready(Ok(()))
    }

    fn is_address_of(&self, peer: &Destination, name: &Destination) -> Option<bool> {
        let found = self.names.get(name);
        Some(found.is_some_and(|found| peer.socket_addr() == Some(*found)))
    }
}
