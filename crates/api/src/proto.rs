//! Messages and services, made from the definitions in `proto/`; `tests/proto.rs` makes them again and compares.
//!
//! There is one set of them, under the names of Xray. V2Ray's differ in the first words only: see `canonical`.

use std::borrow::Cow;
use std::net::IpAddr;

pub use generated::xray;

#[allow(missing_docs, unreachable_pub, unused_qualifications, clippy::all, clippy::pedantic)]
mod generated {
    include!("generated/all.rs");
}

pub(crate) use xray::app::proxyman::command as handler;
pub(crate) use xray::app::router::command as routing;
pub(crate) use xray::app::stats::command as stats;
pub(crate) use xray::common::net;
pub(crate) use xray::common::protocol::User;
pub(crate) use xray::common::serial::TypedMessage;
pub(crate) use xray::core::{InboundHandlerConfig, OutboundHandlerConfig};

/// All definitions, as a `FileDescriptorSet`.
pub(crate) const DESCRIPTORS: &[u8] = include_bytes!("generated/descriptors.bin");

/// The name that a message or service has in the definitions: `xray.` stands for `v2ray.core.`, and what says where types are
/// found falls away.
pub(crate) fn canonical(name: &str) -> Cow<'_, str> {
    let bare = name.rsplit('/').next().unwrap_or_default();
    match bare.strip_prefix("v2ray.core.") {
        // The one name with `core` in both.
        Some(rest) if rest.starts_with("app.observatory.") => format!("xray.core.{rest}").into(),
        Some(rest) => format!("xray.{rest}").into(),
        None => bare.into(),
    }
}

/// An IP address out of its 4 or 16 bytes.
pub(crate) fn ip(bytes: &[u8]) -> Option<IpAddr> {
    let four = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    four.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()
}

/// The bytes of an IP address.
pub(crate) fn ip_bytes(ip: IpAddr) -> Vec<u8> {
    match ip {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_cores_names_mean_the_same() {
        for name in [
            "xray.proxy.vless.Account",
            "v2ray.core.proxy.vless.Account",
            "types.v2fly.org/v2ray.core.proxy.vless.Account",
            "types.v2fly.org/xray.proxy.vless.Account",
        ] {
            assert_eq!(canonical(name), "xray.proxy.vless.Account");
        }
        let observatory = "xray.core.app.observatory.command.ObservatoryService";
        assert_eq!(
            canonical("v2ray.core.app.observatory.command.ObservatoryService"),
            observatory
        );
        assert_eq!(canonical(observatory), observatory);
        assert_eq!(canonical(""), "");
    }
}
