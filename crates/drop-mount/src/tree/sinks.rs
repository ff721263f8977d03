//! Those who are told of changes.

use std::sync::{Arc, Mutex, Weak};

use sealway_drop::lock;

use super::{Event, EventSink, Subscription};

/// Sinks, each for as long as somebody has it.
#[derive(Default)]
pub(crate) struct Sinks(Mutex<Vec<Weak<dyn Fn(Event) + Send + Sync>>>);

impl Sinks {
    pub(crate) fn add(&self, sink: &EventSink) {
        let mut sinks = lock(&self.0);
        sinks.retain(|sink| sink.strong_count() > 0);
        sinks.push(Arc::downgrade(sink));
    }

    /// Tells a sink until the answer is dropped.
    pub(crate) fn subscribe(&self, sink: EventSink) -> Subscription {
        // Of this subscription's own, so that nobody else keeps it.
        let own: EventSink = Arc::new(move |event| sink(event));
        self.add(&own);
        Subscription::new(own)
    }

    /// Tells all of them, not under the lock.
    pub(crate) fn tell(&self, event: &Event) {
        let sinks: Vec<EventSink> = lock(&self.0).iter().filter_map(Weak::upgrade).collect();
        for sink in sinks {
            sink(event.clone());
        }
    }
}
