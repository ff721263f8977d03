//! How connections come to the API.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use sealway_proxy::Control;
use sealway_proxy::settings::{self, Dokodemo, Inbound, InboundProtocol, ServerTransport, Settings};
use tokio::net::UnixStream;
use tokio::sync::Semaphore;

use crate::options::{LISTENER, Options};
use crate::serve::{self, Services};

/// Connections at once. Panels keep one or two.
pub(crate) const MAX_CONNECTIONS: usize = 64;

/// A management API. Cheap to clone.
#[derive(Clone)]
pub struct Api {
    service: settings::Service,
    options: Arc<Options>,
    control: Arc<OnceLock<Control>>,
}

impl Api {
    /// An API that answers once it has been given a server to manage.
    pub fn new(options: Options) -> Api {
        let (options, control) = (Arc::new(options), Arc::new(OnceLock::new()));
        let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let services: OnceLock<Services> = OnceLock::new();
        let began = Instant::now();
        let (of, own) = (Arc::clone(&control), Arc::clone(&options));
        let connect = move |stream: UnixStream| {
            // Whoever comes before there is a server, or after too many others, is turned away.
            let (Some(control), Ok(place)) = (of.get(), Arc::clone(&places).try_acquire_owned()) else {
                return;
            };
            let services = services.get_or_init(|| serve::services(control, &own, began)).clone();
            tokio::spawn(async move {
                serve::connection(stream, services).await;
                drop(place);
            });
        };
        Api {
            service: settings::Service {
                tag: options.own_tag().to_owned(),
                connect: Arc::new(connect),
            },
            options,
            control,
        }
    }

    /// Has a server lead to the API: by the rules to its tag, and by a listener if it has one. The same for every version of the
    /// settings of a server.
    pub fn wire(&self, settings: &mut Settings) {
        settings.services.push(self.service.clone());
        let Some(listen) = &self.options.listen else { return };
        settings.inbounds.push(Inbound {
            tag: LISTENER.to_owned(),
            listen: vec![listen.clone()],
            protocol: InboundProtocol::Dokodemo(Dokodemo {
                capture: None,
                address: None,
                port: 0,
                tcp: true,
                udp: false,
                level: 0,
            }),
            transport: ServerTransport {
                tls: self.options.tls.clone(),
                ..ServerTransport::default()
            },
            sniffing: None,
        });
        settings.rules.splice(0..0, self.options.rule());
    }

    /// Begins to answer for a server. Another one later has no effect.
    pub fn manage(&self, control: Control) {
        let _ = self.control.set(control);
    }
}
