//! Where a request goes.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use sealway_v2ray::Destination;

use crate::outbound::{Caller, Outbound};
use crate::policy::{Exempt, is_private};

use super::Origin;

/// Where a request goes.
#[derive(Clone)]
pub(crate) struct Route {
    pub(crate) outbound: Arc<Outbound>,
    /// Private addresses that the rule names which chose it.
    pub(crate) exempt: Option<Exempt>,
}

impl Route {
    pub(super) fn caller(&self, origin: &Origin) -> Caller {
        Caller {
            source: origin.source,
            local: origin.local,
            remote: origin.remote,
            captured: origin.captured,
            neighbour: origin.captured
                && !origin.forwarded
                && origin.source.is_some_and(|source| is_private(source.ip())),
            is_program: origin.is_program,
            exempt: self.exempt.clone(),
            asks_names: false,
        }
    }

    /// What tells the flows of a client apart that go different ways: what one rule lets pass is nothing to the targets of
    /// another.
    pub(crate) fn way(&self) -> FlowWay {
        FlowWay(Arc::clone(&self.outbound), self.exempt.clone())
    }

    /// The target where the outbound needs an association for each.
    pub(crate) fn own_target(&self, to: &Destination) -> Option<Destination> {
        (!self.outbound.is_open_to_all(to)).then(|| to.clone())
    }
}

/// The way that a flow goes, which is kept alive so that no other has its address.
#[derive(Clone)]
pub(crate) struct FlowWay(Arc<Outbound>, Option<Exempt>);

impl FlowWay {
    fn addresses(&self) -> (*const Outbound, *const u8) {
        let exempt = self.1.as_ref();
        let exempt = exempt.map_or(std::ptr::null(), |exempt| Arc::as_ptr(exempt).cast());
        (Arc::as_ptr(&self.0), exempt)
    }
}

impl PartialEq for FlowWay {
    fn eq(&self, other: &FlowWay) -> bool {
        self.addresses() == other.addresses()
    }
}

impl Eq for FlowWay {}

impl Hash for FlowWay {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.addresses().hash(state);
    }
}
