//! Inbounds and outbounds, added and removed while the server runs.

use std::sync::Arc;

use super::{Control, Refusal};
use crate::engine::How;
use crate::engine::plan::Plan;
use crate::policy::is_private;
use crate::settings::{Inbound, Outbound, OutboundProtocol};

/// The protocol of an outbound, where neither it nor what carries it encrypts on the way to a server that is not near.
fn in_the_clear(outbound: &Outbound) -> Option<&'static str> {
    let (name, (server, _)) = match &outbound.protocol {
        OutboundProtocol::Trojan(trojan) => ("Trojan", &trojan.server),
        OutboundProtocol::Vless(vless) => ("VLESS", &vless.server),
        _ => return None,
    };
    let sealed = outbound.transport.tls.is_some() || outbound.transport.reality.is_some();
    let near = server.ip().is_some_and(is_private);
    (!sealed && !near).then_some(name)
}

impl Control {
    /// Adds an inbound, and listens for it.
    ///
    /// # Errors
    /// [`Refusal::TagTaken`], and [`Refusal::Unusable`] for settings that are wrong and an address that cannot be bound.
    pub async fn add_inbound(&self, inbound: Inbound) -> Result<(), Refusal> {
        let add = |plan: &mut Plan| {
            if !inbound.tag.is_empty() && plan.inbounds.iter().any(|one| one.tag == inbound.tag) {
                return Err(Refusal::TagTaken(inbound.tag));
            }
            plan.inbounds.push(Arc::new(inbound));
            Ok(())
        };
        self.running()?.change(How::Lenient, add).await.map(drop)
    }

    /// Removes the inbound with this tag. It listens no more; connections that have come in go on.
    ///
    /// # Errors
    /// [`Refusal::NoClue`] if no inbound has the tag.
    pub async fn remove_inbound(&self, tag: &str) -> Result<(), Refusal> {
        let remove = |plan: &mut Plan| {
            let is = |one: &Arc<Inbound>| !tag.is_empty() && one.tag == tag;
            let at = plan.inbounds.iter().position(is).ok_or(Refusal::NoClue)?;
            plan.inbounds.remove(at);
            Ok(())
        };
        self.running()?.change(How::Lenient, remove).await.map(drop)
    }

    /// The inbounds as they were asked for, with every secret in them. Users that were added or removed since are not told of.
    pub fn inbounds(&self) -> Vec<Arc<Inbound>> {
        self.running()
            .map(|running| running.engine.plan().inbounds)
            .unwrap_or_default()
    }

    /// Adds an outbound. It becomes the default if the default was removed.
    ///
    /// # Errors
    /// [`Refusal::TagTaken`], and [`Refusal::Unusable`] for settings that are wrong.
    pub async fn add_outbound(&self, outbound: Outbound) -> Result<(), Refusal> {
        // Of those in a configuration its reader tells.
        if let Some(protocol) = in_the_clear(&outbound) {
            tracing::warn!(
                "outbound {}: {protocol} without TLS sends everything in the clear",
                outbound.tag
            );
        }
        let add = |plan: &mut Plan| {
            let mut tags = plan.outbounds.iter().map(|one| one.tag.as_str());
            let services = plan.rest.services.iter().map(|one| one.tag.as_str());
            if !outbound.tag.is_empty() && tags.by_ref().chain(services).any(|tag| tag == outbound.tag) {
                return Err(Refusal::TagTaken(outbound.tag));
            }
            let at = if plan.headless { 0 } else { plan.outbounds.len() };
            plan.outbounds.insert(at, Arc::new(outbound));
            plan.headless = false;
            Ok(())
        };
        self.running()?.change(How::Lenient, add).await.map(drop)
    }

    /// Removes the outbound with this tag, if there is one. What rules lead to it, and what goes to it as the default, is refused
    /// until another takes its place: it does not go out by one that it is not for. Connections that have gone out go on.
    ///
    /// # Errors
    /// [`Refusal::NoClue`] for an empty tag.
    pub async fn remove_outbound(&self, tag: &str) -> Result<(), Refusal> {
        if tag.is_empty() {
            return Err(Refusal::NoClue);
        }
        let remove = |plan: &mut Plan| {
            let at = plan.outbounds.iter().position(|one| one.tag == tag);
            if let Some(at) = at {
                plan.headless |= at == 0;
                plan.outbounds.remove(at);
            }
            Ok(())
        };
        self.running()?.change(How::Lenient, remove).await.map(drop)
    }

    /// The outbounds as they were asked for, with every secret in them. The first is the default.
    pub fn outbounds(&self) -> Vec<Arc<Outbound>> {
        self.running()
            .map(|running| running.engine.plan().outbounds)
            .unwrap_or_default()
    }
}
