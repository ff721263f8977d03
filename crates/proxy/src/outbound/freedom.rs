//! Straight to the target.

mod datagrams;

use std::sync::Arc;

use sealway_v2ray::{Address, Destination, Network};

use super::{Caller, Dialer, Far, Protocol};
use crate::dial;
use crate::error::{Error, Pending};
use crate::loops::LoopGuard;
use crate::policy::DialPolicy;
use crate::proxy_protocol;
use crate::settings::{self, FinalRule};
use crate::stream::Stream;
use crate::udp::PacketEnd;

use datagrams::Open;

/// Where traffic goes in place of its target.
#[derive(Clone, Debug, Default)]
struct Redirect {
    /// The host. `None`: the target's.
    host: Option<Address>,
    /// The port. `None`: the target's.
    port: Option<u16>,
}

impl Redirect {
    /// Where to go in place of `to`, or `None` if that stands.
    fn of(&self, to: &Destination) -> Option<Destination> {
        if self.host.is_none() && self.port.is_none() {
            return None;
        }
        Some(Destination {
            network: to.network,
            address: self.host.clone().unwrap_or_else(|| to.address.clone()),
            port: self.port.unwrap_or(to.port),
        })
    }
}

/// Straight out.
pub(super) struct Freedom {
    settings: settings::Freedom,
    rules: Arc<[FinalRule]>,
    dialer: Dialer,
    loops: Arc<LoopGuard>,
}

impl Freedom {
    pub(super) fn new(settings: settings::Freedom, dialer: Dialer, loops: Arc<LoopGuard>) -> Self {
        Freedom {
            rules: settings.final_rules.clone().into(),
            settings,
            dialer,
            loops,
        }
    }

    fn redirect(&self) -> Redirect {
        Redirect {
            host: self.settings.redirect_host.clone(),
            port: self.settings.redirect_port,
        }
    }

    fn policy(&self, caller: &Caller) -> DialPolicy {
        DialPolicy {
            rules: Arc::clone(&self.rules),
            remote: caller.remote,
            exempt: caller.exempt.clone(),
        }
    }

    /// A stream to the first address that is allowed and answers.
    async fn stream(&self, to: &Destination, caller: &Caller) -> Result<Far, Error> {
        let elsewhere = self.redirect().of(to);
        let to = elsewhere.as_ref().unwrap_or(to);
        let Dialer { connector, traffic } = &self.dialer;
        let line = &connector.line;
        let strategy = self.settings.domain_strategy;
        let addresses = line.resolver.resolve(&to.address, to.port, strategy).await?;
        let policy = self.policy(caller);
        let mut allowed = Vec::with_capacity(addresses.len());
        let mut refused = None;
        for address in addresses {
            let checked = policy.check(address, Network::Tcp);
            match checked.and_then(|()| self.loops.check(address, Network::Tcp)) {
                Ok(()) => allowed.push(address),
                Err(error) => refused = Some(error),
            }
        }
        if let (true, Some(error)) = (allowed.is_empty(), refused) {
            return Err(error);
        }
        let mut sock = dial::connect_any(&allowed, &line.socket, line.source).await?;
        if self.settings.proxy_protocol > 0 {
            proxy_protocol::write(&mut sock, self.settings.proxy_protocol, caller.source, caller.local).await?;
        }
        Ok(Far::Stream(Box::new(Stream::new(sock, traffic.clone()))))
    }
}

impl Protocol for Freedom {
    fn connect<'a>(&'a self, to: &'a Destination, caller: &'a Caller) -> Pending<'a, Far> {
        Box::pin(self.stream(to, caller))
    }

    fn associate<'a>(&'a self, _: &'a Destination, caller: &'a Caller) -> Pending<'a, Box<dyn PacketEnd>> {
        Box::pin(async {
            let policy = (self.policy(caller), Arc::clone(&self.loops));
            let open = Open::bind(policy, self.redirect(), self.settings.domain_strategy, &self.dialer)?;
            Ok(Box::new(open) as Box<dyn PacketEnd>)
        })
    }

    fn is_open_to_all(&self, _: &Destination) -> bool {
        true
    }
}
