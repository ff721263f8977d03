//! `streamSettings.sockopt`: options of sockets.

use super::scalar::Texts;
use super::table::{object, words};
use crate::problem::At;

words! {
    /// By which rules of the firewall connections come that were meant for others.
    pub enum Tproxy {
        /// By none; with `followRedirect` the same as `redirect`.
        Off = "off" | "";
        /// By `redirect`, which changes the destination; datagrams by `tproxy`.
        Redirect = "redirect";
        /// By `tproxy`, which keeps the destination.
        Tproxy = "tproxy";
    }
}

words! {
    /// How a domain name becomes an address before dialling.
    pub enum DomainStrategy {
        /// As it is: the system resolves it.
        AsIs = "AsIs" | "";
        /// By our resolver, to any address; as it is if that fails.
        UseIp = "UseIP";
        /// By our resolver, to an IPv4 address; as it is if that fails.
        UseIpv4 = "UseIPv4" | "UseIP4";
        /// By our resolver, to an IPv6 address; as it is if that fails.
        UseIpv6 = "UseIPv6" | "UseIP6";
        /// By our resolver, IPv4 first; as it is if that fails.
        UseIpv4v6 = "UseIPv4v6" | "UseIP4v6" | "UseIPv46" | "UseIP46";
        /// By our resolver, IPv6 first; as it is if that fails.
        UseIpv6v4 = "UseIPv6v4" | "UseIP6v4" | "UseIPv64" | "UseIP64";
        /// As `UseIP`, and an error if that fails.
        ForceIp = "ForceIP";
        /// As `UseIPv4`, and an error if that fails.
        ForceIpv4 = "ForceIPv4" | "ForceIP4";
        /// As `UseIPv6`, and an error if that fails.
        ForceIpv6 = "ForceIPv6" | "ForceIP6";
        /// As `UseIPv4v6`, and an error if that fails.
        ForceIpv4v6 = "ForceIPv4v6" | "ForceIP4v6" | "ForceIPv46" | "ForceIP46";
        /// As `UseIPv6v4`, and an error if that fails.
        ForceIpv6v4 = "ForceIPv6v4" | "ForceIP6v4" | "ForceIPv64" | "ForceIP64";
    }
}

object! {
    /// Options of the sockets that listen or dial.
    pub struct Sockopt: "streamSettings.sockopt" {
        /// The mark of outgoing packets (`SO_MARK`), by which the firewall knows them as this program's own. 0 leaves it alone.
        mark: i32 = "mark", default "0";
        /// For a dokodemo-door with `followRedirect`: the rules that lead connections here. Elsewhere either word makes the sockets
        /// transparent (`IP_TRANSPARENT`). Needs root, or the capability CAP_NET_ADMIN, unless only TCP is redirected.
        tproxy: Tproxy = "tproxy", default "\"off\"";
        /// Require the PROXY protocol, version 1 or 2, at the begin of each connection.
        accept_proxy_protocol: bool = "acceptProxyProtocol", default "false";
        /// How names are resolved before dialling.
        domain_strategy: At<DomainStrategy> = "domainStrategy", default "\"AsIs\"";
        /// The tag of another outbound, which is dialled through: it carries what this one would send by a socket.
        dialer_proxy: Option<At<String>> = "dialerProxy";
        /// Seconds between TCP keep-alive probes. 0: 45; less: no keep-alive.
        tcp_keep_alive_interval: i32 = "tcpKeepAliveInterval", default "0";
        /// Seconds without traffic before the first TCP keep-alive probe. 0: 45; less: no keep-alive.
        tcp_keep_alive_idle: i32 = "tcpKeepAliveIdle", default "0";
        /// Milliseconds that sent bytes may stay without acknowledgement. 0: the system's setting.
        tcp_user_timeout: u32 = "tcpUserTimeout", default "0";
        /// The congestion control, such as `bbr`. Empty: the system's setting.
        tcp_congestion: String = "tcpCongestion";
        /// The largest segment, bytes. 0: the system's setting.
        tcp_max_seg: u32 = "tcpMaxSeg", default "0";
        /// Multipath TCP. Where the kernel has none, TCP.
        tcp_mptcp: bool = "tcpMptcp" | "mptcp", default "false";
        /// Listen on IPv6 only, where the address is of IPv6.
        v6_only: At<bool> = "V6Only", default "false";
        /// Use this network interface only.
        interface: String = "interface" | "bindToDevice";
        /// The receive buffer of the socket, bytes. 0: the system's setting.
        rx_buf_size: u32 = "rxBufSize", default "0";
        /// The send buffer of the socket, bytes. 0: the system's setting.
        tx_buf_size: u32 = "txBufSize", default "0";
        /// Over xhttp, use these options for `downloadSettings` too, in place of its own.
        penetrate: At<bool> = "penetrate", default "false";
        /// Header names: where one of these is present, the first address of X-Forwarded-For is the client's.
        trusted_x_forwarded_for: At<Texts> = "trustedXForwardedFor", default "[]";
    }
    other {
        LaterError "addressPortStrategy": "an address or port from DNS records (`addressPortStrategy`)";
        LaterWarning "happyEyeballs": "`happyEyeballs`; addresses are tried beside each other, the next one after 250 ms";
        LaterError "customSockopt": "socket options by their numbers (`customSockopt`)";
        LaterWarning "tcpFastOpen": "TCP Fast Open (`tcpFastOpen`); the system's setting stays";
        LaterWarning "tcpFastOpenQueueLength": "TCP Fast Open (`tcpFastOpenQueueLength`); the system's setting stays";
        LaterWarning "tcpWindowClamp": "a bound on the window (`tcpWindowClamp`); the system's setting stays";
        Accepted "tcpNoDelay": "TCP_NODELAY is always set.";
    }
}
