//! What carries a protocol.

use serde_json::Value;

use super::json::{Keys, address, strategy};
use super::{Refused, routing, security, transport, unsupported};
use crate::proto::xray::app::proxyman::SniffingConfig;
use crate::proto::xray::transport::internet::socket_config::TProxyMode;
use crate::proto::xray::transport::internet::{SocketConfig, StreamConfig};

/// `streamSettings`.
pub(super) fn read(stream: &StreamConfig) -> Result<Value, Refused> {
    Ok(keys(stream, Some(download))?.done())
}

/// `downloadSettings` of XHTTP, which cannot have any of its own.
fn download(stream: &StreamConfig) -> Result<Value, Refused> {
    let mut keys = keys(stream, None)?;
    keys.text("address", &address(stream.address.as_ref())?)
        .number("port", stream.port);
    Ok(keys.done())
}

fn keys(stream: &StreamConfig, download: Option<transport::Download>) -> Result<Keys, Refused> {
    let mut keys = Keys::default();
    let network = match stream.protocol_name.as_str() {
        "" => "tcp",
        name => name,
    };
    keys.put("network", network);
    if !stream.udpmasks.is_empty() || !stream.tcpmasks.is_empty() {
        return unsupported("finalmask");
    }
    // The others would count for another network.
    let own = stream
        .transport_settings
        .iter()
        .find(|one| one.protocol_name.eq_ignore_ascii_case(network))
        .and_then(|one| one.settings.as_ref());
    if let Some(own) = own {
        let (key, value) = transport::read(own, download)?;
        keys.put(key, value);
    }
    security::read(stream, &mut keys)?;
    if let Some(socket) = &stream.socket_settings {
        keys.put("sockopt", sockopt(socket)?);
    }
    Ok(keys)
}

fn sockopt(socket: &SocketConfig) -> Result<Value, Refused> {
    for (set, name) in [
        (!socket.custom_sockopt.is_empty(), "customSockopt"),
        (socket.address_port_strategy != 0, "address_port_strategy"),
        (socket.receive_original_dest_address, "receive_original_dest_address"),
        (!socket.bind_address.is_empty() || socket.bind_port != 0, "bind_address"),
    ] {
        if set {
            return unsupported(format!("{name} of xray.transport.internet.SocketConfig"));
        }
    }
    let tproxy = match TProxyMode::try_from(socket.tproxy) {
        Ok(TProxyMode::Off) => "",
        Ok(TProxyMode::TProxy) => "tproxy",
        Ok(TProxyMode::Redirect) => "redirect",
        Err(_) => return unsupported(format!("tproxy {}", socket.tproxy)),
    };
    let mut keys = Keys::default();
    keys.number("mark", socket.mark)
        .number("tcpFastOpen", socket.tfo)
        .text("tproxy", tproxy)
        .flag("acceptProxyProtocol", socket.accept_proxy_protocol)
        .text("dialerProxy", &socket.dialer_proxy)
        .number("tcpKeepAliveInterval", socket.tcp_keep_alive_interval)
        .number("tcpKeepAliveIdle", socket.tcp_keep_alive_idle)
        .text("tcpCongestion", &socket.tcp_congestion)
        .text("interface", &socket.interface)
        .flag("V6Only", socket.v6only)
        .number("tcpWindowClamp", socket.tcp_window_clamp)
        .number("tcpUserTimeout", socket.tcp_user_timeout)
        .number("tcpMaxSeg", socket.tcp_max_seg)
        .flag("penetrate", socket.penetrate)
        .flag("tcpMptcp", socket.tcp_mptcp)
        .list("trustedXForwardedFor", &socket.trusted_x_forwarded_for);
    if socket.domain_strategy != 0 {
        keys.put("domainStrategy", strategy(socket.domain_strategy)?);
    }
    Ok(keys.done())
}

/// `sniffing`.
pub(super) fn sniffing(config: &SniffingConfig) -> Result<Value, Refused> {
    let excluded = config
        .domains_excluded
        .iter()
        .map(|text| match text.as_bytes().first() {
            // No name begins with a control character: this is a message, as later versions have it.
            Some(..=0x1f) => routing::domain(text.as_bytes()),
            _ => Ok(text.clone()),
        });
    let excluded = excluded.collect::<Result<Vec<_>, _>>()?;
    let addresses = config.ips_excluded.iter().map(|rule| routing::ips(rule));
    let addresses = addresses.collect::<Result<Vec<_>, _>>()?.concat();
    let mut keys = Keys::default();
    keys.flag("enabled", config.enabled)
        .list("destOverride", &config.destination_override)
        .list("domainsExcluded", &excluded)
        .list("ipsExcluded", &addresses)
        .flag("metadataOnly", config.metadata_only)
        .flag("routeOnly", config.route_only);
    Ok(keys.done())
}
