//! The table of metrics: what `/metrics` tells, what the reference says of it, and what the dashboard draws.

use super::series::Series;
use super::view::View;
use crate::meters::{Reason, Unreached};

/// How a number behaves.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    /// It only grows, and begins at 0 with the process.
    Counter,
    /// It goes up and down.
    Gauge,
    /// How many things took how long.
    Histogram,
    /// It is 1, and its labels say something.
    Info,
}

impl Kind {
    /// The word of the format for it.
    pub(super) fn word(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
            Kind::Info => "info",
        }
    }

    /// What stands behind the name of a sample.
    pub(super) fn suffix(self) -> &'static str {
        match self {
            Kind::Counter => "_total",
            Kind::Info => "_info",
            Kind::Gauge | Kind::Histogram => "",
        }
    }
}

pub(super) struct Metric {
    /// Its name, which ends in its unit, without what its kind puts behind it.
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) labels: &'static [&'static str],
    /// One sentence.
    pub(super) help: &'static str,
    /// What stands above its panel on the dashboard. Empty: it has none.
    #[cfg_attr(not(test), allow(dead_code, reason = "for pages that tests write"))]
    pub(super) title: &'static str,
    /// Writes its samples.
    pub(super) read: fn(&View, &mut Series<'_>),
}

impl Metric {
    /// `bytes`, `seconds` or nothing.
    pub(super) fn unit(&self) -> &'static str {
        let is_it = |unit: &&str| self.name.rsplit('_').next() == Some(*unit);
        ["bytes", "seconds"].into_iter().find(is_it).unwrap_or_default()
    }
}

/// The metrics of one subject, in the order in which they are told.
pub(super) struct Section {
    #[cfg_attr(not(test), allow(dead_code, reason = "for pages that tests write"))]
    pub(super) title: &'static str,
    pub(super) metrics: &'static [Metric],
}

/// All metrics.
pub(super) const SECTIONS: &[Section] = &[
    Section {
        title: "The server",
        metrics: &[
            Metric {
                name: "sealway_build",
                kind: Kind::Info,
                labels: &["version"],
                help: "The version that runs.",
                title: "",
                read: |_, out| out.sample(&[env!("CARGO_PKG_VERSION")], 1),
            },
            Metric {
                name: "sealway_ready",
                kind: Kind::Gauge,
                labels: &[],
                help: "1 where new connections are welcome; 0 at the start, while the server drains, and where it listens nowhere.",
                title: "Ready",
                read: |view, out| out.sample(&[], u8::from(view.ready)),
            },
            Metric {
                name: "sealway_reloads",
                kind: Kind::Counter,
                labels: &["result"],
                help: "Configurations that were loaded while the server ran: `taken` up, or `refused` for errors in them.",
                title: "",
                read: |view, out| {
                    let reloads = view.reloads;
                    out.sample(&["taken"], reloads.taken);
                    out.sample(&["refused"], reloads.refused);
                },
            },
            Metric {
                name: "sealway_last_reload_timestamp_seconds",
                kind: Kind::Gauge,
                labels: &[],
                help: "When a configuration was taken up last while the server ran, Unix time; 0 if none was.",
                title: "",
                read: |view, out| out.sample(&[], view.reloads.last),
            },
        ],
    },
    Section {
        title: "Connections",
        metrics: &[
            Metric {
                name: "sealway_connections_open",
                kind: Kind::Gauge,
                labels: &["inbound"],
                help: "Connections that are open now. One that carries many streams counts once.",
                title: "Open connections",
                read: |view, out| {
                    for (tag, meter) in &view.inbounds {
                        out.sample(&[tag], meter.now_open());
                    }
                },
            },
            Metric {
                name: "sealway_connections_accepted",
                kind: Kind::Counter,
                labels: &["inbound"],
                help: "Connections that were accepted.",
                title: "New connections",
                read: |view, out| {
                    for (tag, meter) in &view.inbounds {
                        out.sample(&[tag], meter.accepted.get());
                    }
                },
            },
            Metric {
                name: "sealway_connections_refused",
                kind: Kind::Counter,
                labels: &["inbound", "reason"],
                help: "Connections, and streams within them, that came to nothing: the client `left`, was too `late`, or the \
                       connection was `broken` before it had said what it wants; its `tls` or `protocol` was wrong, or it was \
                       `unauthentic`; its target is `forbidden`; the user has as many \
                       `connections` or `addresses` as he may have, has used up his `quota`, or was `removed`; or anything `other`.",
                title: "Refused connections",
                read: |view, out| {
                    for (tag, meter) in &view.inbounds {
                        for reason in Reason::ALL {
                            out.sample(&[tag, reason.word()], meter.refused(*reason));
                        }
                    }
                },
            },
            Metric {
                name: "sealway_strangers",
                kind: Kind::Counter,
                labels: &["inbound"],
                help: "Connections of strangers that were handed on, to a fallback or to the target of REALITY.",
                title: "Strangers",
                read: |view, out| {
                    for (tag, meter) in &view.inbounds {
                        out.sample(&[tag], meter.strangers.get());
                    }
                },
            },
            Metric {
                name: "sealway_handshake_seconds",
                kind: Kind::Histogram,
                labels: &["inbound"],
                help: "From accepting a connection to knowing what it asks for: TLS, transport and the protocol's own header.",
                title: "Handshake",
                read: |view, out| {
                    for (tag, meter) in &view.inbounds {
                        out.histogram(&[tag], &meter.handshake);
                    }
                },
            },
        ],
    },
    Section {
        title: "Bytes",
        metrics: &[
            Metric {
                name: "sealway_inbound_bytes",
                kind: Kind::Counter,
                labels: &["inbound", "direction"],
                help: "Bytes between clients and an inbound, with what protects them: `uplink` comes from clients.",
                title: "Bytes by inbound",
                read: |view, out| view.bytes("inbound", out),
            },
            Metric {
                name: "sealway_outbound_bytes",
                kind: Kind::Counter,
                labels: &["outbound", "direction"],
                help: "Bytes between an outbound and its targets or the next server: `uplink` goes to them.",
                title: "Bytes by outbound",
                read: |view, out| view.bytes("outbound", out),
            },
            Metric {
                name: "sealway_user_bytes",
                kind: Kind::Counter,
                labels: &["user", "direction"],
                help: "Payload of a user, by e-mail, with `metrics.users` only and of 10,000 users at most; reset where the API resets it.",
                title: "",
                read: |view, out| view.bytes("user", out),
            },
        ],
    },
    Section {
        title: "Outbounds",
        metrics: &[
            Metric {
                name: "sealway_outbound_streams_open",
                kind: Kind::Gauge,
                labels: &["outbound"],
                help: "Streams to targets that are open now.",
                title: "Open streams",
                read: |view, out| {
                    for (tag, meter) in &view.outbounds {
                        out.sample(&[tag], meter.now_open());
                    }
                },
            },
            Metric {
                name: "sealway_dial_seconds",
                kind: Kind::Histogram,
                labels: &["outbound"],
                help: "From a request to a stream that reaches its target: names, tries, and handshakes with the next server.",
                title: "Dial",
                read: |view, out| {
                    for (tag, meter) in &view.outbounds {
                        out.histogram(&[tag], &meter.dial);
                    }
                },
            },
            Metric {
                name: "sealway_dial_failures",
                kind: Kind::Counter,
                labels: &["outbound", "reason"],
                help: "Targets that were not reached: nobody listens (`refused`), no way leads there (`unreachable`), it took too \
                       long (`late`), the `name` has no address, `tls` or the `protocol` of the next server failed, the target is \
                       `forbidden`, or anything `other`.",
                title: "Dials that failed",
                read: |view, out| {
                    for (tag, meter) in &view.outbounds {
                        for why in Unreached::ALL {
                            out.sample(&[tag, why.word()], meter.failed(*why));
                        }
                    }
                },
            },
            Metric {
                name: "sealway_outbound_up",
                kind: Kind::Gauge,
                labels: &["outbound"],
                help: "Whether an outbound that is measured answers.",
                title: "Outbounds that answer",
                read: |view, out| {
                    for (tag, health) in &view.health {
                        out.sample(&[tag], u8::from(health.alive));
                    }
                },
            },
            Metric {
                name: "sealway_outbound_delay_seconds",
                kind: Kind::Gauge,
                labels: &["outbound"],
                help: "How long an outbound that is measured takes to answer.",
                title: "Delay of outbounds",
                read: |view, out| {
                    for (tag, health) in view.health.iter().filter(|(_, health)| health.alive) {
                        out.sample(&[tag], health.delay.as_secs_f64());
                    }
                },
            },
            Metric {
                name: "sealway_balancer_choices",
                kind: Kind::Counter,
                labels: &["balancer", "outbound"],
                help: "Connections that a balancer gave to an outbound, since the configuration was loaded.",
                title: "Choices of balancers",
                read: |view, out| view.choices(out),
            },
        ],
    },
    Section {
        title: "Queues",
        metrics: &[
            Metric {
                name: "sealway_tarpit_held",
                kind: Kind::Gauge,
                labels: &[],
                help: "Connections with a forbidden target that wait for nothing.",
                title: "Held in the tarpit",
                read: |view, out| out.sample(&[], view.queues.tarpit),
            },
            Metric {
                name: "sealway_sniffing_held",
                kind: Kind::Gauge,
                labels: &[],
                help: "Flows of datagrams that wait for the rest of what they say first.",
                title: "Held by sniffing",
                read: |view, out| out.sample(&[], view.queues.sniffing),
            },
            Metric {
                name: "sealway_dns_flights",
                kind: Kind::Gauge,
                labels: &[],
                help: "Questions to DNS servers that are on their way.",
                title: "DNS questions on their way",
                read: |view, out| out.sample(&[], view.queues.dns),
            },
            Metric {
                name: "sealway_dns_lookups",
                kind: Kind::Counter,
                labels: &["result"],
                help: "Names that were looked up, since the configuration was loaded: a `hit` of the cache, a `stale` answer that was \
                       given while it is asked for anew, or a `miss`, for which a server is asked.",
                title: "DNS cache",
                read: |view, out| {
                    for (result, count) in view.queues.lookups {
                        out.sample(&[result], count);
                    }
                },
            },
        ],
    },
    Section {
        title: "The process",
        metrics: &[
            Metric {
                name: "process_start_time_seconds",
                kind: Kind::Gauge,
                labels: &[],
                help: "When the server started, Unix time.",
                title: "",
                read: |view, out| out.sample(&[], view.began),
            },
            Metric {
                name: "process_cpu_seconds",
                kind: Kind::Counter,
                labels: &[],
                help: "Time that processors have worked for it.",
                title: "Processors",
                read: |view, out| out.sample(&[], view.process.cpu.as_secs_f64()),
            },
            Metric {
                name: "process_resident_memory_bytes",
                kind: Kind::Gauge,
                labels: &[],
                help: "Memory that it holds.",
                title: "Memory",
                read: |view, out| out.sample(&[], view.process.resident),
            },
            Metric {
                name: "process_virtual_memory_bytes",
                kind: Kind::Gauge,
                labels: &[],
                help: "Addresses that it has taken.",
                title: "",
                read: |view, out| out.sample(&[], view.process.virtual_size),
            },
            Metric {
                name: "process_open_fds",
                kind: Kind::Gauge,
                labels: &[],
                help: "Descriptors that are open.",
                title: "Descriptors",
                read: |view, out| out.sample(&[], view.process.descriptors),
            },
            Metric {
                name: "process_max_fds",
                kind: Kind::Gauge,
                labels: &[],
                help: "Descriptors that it may have.",
                title: "",
                read: |view, out| out.sample(&[], view.process.max_descriptors),
            },
            Metric {
                name: "process_threads",
                kind: Kind::Gauge,
                labels: &[],
                help: "Its threads.",
                title: "",
                read: |view, out| out.sample(&[], view.process.threads),
            },
        ],
    },
];
