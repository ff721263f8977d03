//! gRPC.

use std::time::Duration;

use super::{Carrier, Transport};
use crate::config::context::{Cx, quoted};
use crate::config::scalar::is_header;
use crate::config::table::object;
use crate::gun::MAX_NAME;
use crate::problem::At;

/// gRPC, as its keys say it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Grpc {
    /// The name of the service, or the path of its methods: see [`gun::Names`](crate::gun::Names).
    pub service_name: String,
    /// What requests name as the server, if it is set.
    pub authority: Option<String>,
    /// Clients call the method with many pieces of data a message.
    pub multi_mode: bool,
    /// Ping after this much silence.
    pub idle: Option<Duration>,
    /// Time for the answer to a ping.
    pub answer: Duration,
    /// Ping also while there are no streams.
    pub without_streams: bool,
    /// Bytes of a stream that may be on their way to us, if set.
    pub window: Option<u32>,
    /// What clients say they are, if set.
    pub user_agent: Option<String>,
    /// `X-Forwarded-For` says who the client is.
    pub parse_forwarded_for: bool,
}

/// Time for the answer to a ping where none is set, seconds.
const ANSWER: u64 = 20;

/// The least time of silence before a ping, seconds.
const LEAST_IDLE: u64 = 10;

/// The smallest window that can be set, bytes.
const LEAST_WINDOW: u32 = 65535;

/// The largest window of HTTP/2, bytes.
const MOST_WINDOW: u32 = (1 << 31) - 1;

object! {
    /// gRPC.
    pub(crate) struct GrpcSettings: "streamSettings.grpcSettings" {
        /// The name of the service, whose methods are `Tun` and `TunMulti`. With a leading slash: a path, whose last part
        /// names the methods, as in `/path/of/the/service/Tun|TunMulti`.
        service_name: At<String> = "serviceName", default "\"\"";
        /// What requests name as the server (`:authority`). Empty: the TLS server name, else what is dialled.
        authority: At<String> = "authority", default "\"\"";
        /// Clients: call the second method. Servers answer both.
        multi_mode: bool = "multiMode", default "false";
        /// Seconds of silence before a ping. 0: no pings; 1 to 9: 10. After a ping that brought no data, the next one
        /// follows 5 minutes later, for servers close connections that ping them more often.
        idle_timeout: i32 = "idle_timeout", default "0";
        /// Seconds that the answer to a ping may take. 0: 20.
        health_check_timeout: i32 = "health_check_timeout", default "0";
        /// Ping also while there is no stream: after 2 hours.
        permit_without_stream: bool = "permit_without_stream", default "false";
        /// Bytes of a stream that may be on their way to us. Below 65535: 1 MiB.
        initial_windows_size: i32 = "initial_windows_size", default "0";
        /// The `User-Agent` of clients: a text, or `chrome`, `firefox`, `edge`, `golang` for those of these programs.
        user_agent: At<String> = "user_agent", default "\"\"";
        /// Servers: the first address of X-Forwarded-For is the client's, whoever says so. `trustedXForwardedFor` in `sockopt` asks for a
        /// header besides.
        parse_x_forwarded_for: bool = "parseXForwardedFor", default "false";
    }
}

impl Carrier for GrpcSettings {
    fn transport(self, cx: &mut Cx<'_>) -> Option<(Transport, bool)> {
        let name = &self.service_name;
        if name.len() > MAX_NAME {
            let text = format!("a name of {} bytes does not fit a request, {MAX_NAME} do", name.len());
            cx.error_in("serviceName", name.at, text, "");
            return None;
        }
        for (key, text) in [("authority", &self.authority), ("user_agent", &self.user_agent)] {
            let ascii = text.is_ascii() && !(key == "authority" && text.contains([' ', '/', '?', '#', '@']));
            if !ascii || !is_header("x", text) || text.len() > MAX_NAME {
                let problem = format!("{} is nothing a request could say", quoted(text));
                cx.error_in(key, text.at, problem, "");
                return None;
            }
        }
        let seconds = |value: i32| u64::try_from(value).ok().filter(|value| *value > 0);
        let set = |text: At<String>| Some(text.value).filter(|text| !text.is_empty());
        let window = u32::try_from(self.initial_windows_size).ok();
        let grpc = Grpc {
            service_name: self.service_name.value,
            authority: set(self.authority),
            multi_mode: self.multi_mode,
            idle: seconds(self.idle_timeout).map(|idle| Duration::from_secs(idle.max(LEAST_IDLE))),
            answer: Duration::from_secs(seconds(self.health_check_timeout).unwrap_or(ANSWER)),
            without_streams: self.permit_without_stream,
            window: window.filter(|window| (LEAST_WINDOW..=MOST_WINDOW).contains(window)),
            user_agent: set(self.user_agent),
            parse_forwarded_for: self.parse_x_forwarded_for,
        };
        Some((Transport::Grpc(grpc), false))
    }
}
