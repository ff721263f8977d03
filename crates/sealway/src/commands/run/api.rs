//! The management API beside a running proxy.

use sealway_api::{Api, Options};
use sealway_proxy::Error;
use sealway_proxy::settings::{Certificate, Listen, Pem, ServerTls};
use sealway_v2ray::config::{ApiTls, Config};

use super::files::{self, environment};

/// The API that a configuration asks for.
pub(super) fn of(config: &Config) -> Option<Api> {
    let api = config.api.as_ref()?;
    Some(Api::new(Options {
        tag: api.tag.clone(),
        listen: api.listen.as_ref().map(Listen::from),
        tls: api.tls.as_ref().map(tls),
        services: api.services.clone(),
        expose_secrets: api.expose_secrets,
    }))
}

/// Turns what is said of the listener of an API, an inbound behind those that are configured, to where it is configured.
pub(super) fn place(error: Error, configured: usize) -> Error {
    let own = format!("inbounds[{configured}]");
    match error {
        Error::Listen { place, on, source } if place == own => Error::Listen {
            place: "api.listen".to_owned(),
            on,
            source,
        },
        Error::Config { place, what } if place.starts_with(&own) => Error::Config {
            place: "api.tls".to_owned(),
            what,
        },
        other => other,
    }
}

fn tls(given: &ApiTls) -> ServerTls {
    let folder = files::location("cert", &environment).unwrap_or_default();
    // An absolute path stays what it is.
    let file = |path: &String| Pem::File(folder.join(path));
    ServerTls {
        certificates: vec![Certificate {
            certificate: file(&given.certificate),
            key: file(&given.key),
            once: true,
        }],
        alpn: vec!["h2".to_owned()],
        client_authorities: vec![file(&given.client_authorities)],
        ..ServerTls::default()
    }
}
