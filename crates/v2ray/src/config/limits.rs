//! Limits of users: how much of the server one of them may take, by level or by user.

use super::context::Cx;
use super::scalar::shorten;
use super::schema::Kind;
use super::table::Decode;
use crate::json::{Data, Value};

/// Bytes of a megabit.
const MEGABIT: f64 = 125_000.0;
/// Bytes of a gibibyte.
const GIBIBYTE: f64 = (1u64 << 30) as f64;
/// Slowest rate, bytes a second: a packet may take a second.
const SLOWEST: f64 = 1250.0;
/// Largest numbers.
const MOST_MBPS: f64 = 1e6;
const MOST_GIB: f64 = 1e9;

/// How much of the server a user may take. What is absent is left to the level, and there it is no limit; 0 is no limit.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Limits {
    /// Connections at a time: streams and associations, each for itself.
    pub connections: Option<u32>,
    /// Addresses at a time.
    pub addresses: Option<u32>,
    /// Bytes a second from the user.
    pub uplink: Option<u64>,
    /// Bytes a second to the user.
    pub downlink: Option<u64>,
    /// Bytes that may come at once after a pause.
    pub burst: Option<u64>,
    /// Bytes a month, both ways together.
    pub quota: Option<u64>,
    /// The day of the month on which it begins anew, 1 to 31.
    pub reset_day: Option<u8>,
}

impl Limits {
    /// Whether anything is limited.
    pub fn is_limit(&self) -> bool {
        let counts = [self.connections, self.addresses];
        let bytes = [self.uplink, self.downlink, self.quota];
        counts.into_iter().flatten().any(|most| most > 0) || bytes.into_iter().flatten().any(|most| most > 0)
    }

    /// These, and of `level` what they leave open.
    pub fn or(self, level: Limits) -> Limits {
        Limits {
            connections: self.connections.or(level.connections),
            addresses: self.addresses.or(level.addresses),
            uplink: self.uplink.or(level.uplink),
            downlink: self.downlink.or(level.downlink),
            burst: self.burst.or(level.burst),
            quota: self.quota.or(level.quota),
            reset_day: self.reset_day.or(level.reset_day),
        }
    }
}

/// Reads a number that may have a fraction.
fn decimal(value: &Value, (least, most): (f64, f64), what: &str, cx: &mut Cx<'_>) -> Option<f64> {
    let Data::Number(text) = &value.data else {
        cx.wrong_type(value, "a number");
        return None;
    };
    match text.parse::<f64>() {
        Ok(number) if number == 0.0 || (least..=most).contains(&number) => Some(number),
        _ => {
            let text = format!("{} is no {what}", shorten(text));
            cx.error(value.at, text, format!("{least} to {most}, or 0 for no limit"));
            None
        }
    }
}

/// A rate, as bytes a second.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Mbps(pub(super) u64);

impl Decode for Mbps {
    fn kind() -> Kind {
        Kind::text("Mbit/s")
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        let range = (SLOWEST / MEGABIT, MOST_MBPS);
        let mbps = decimal(&value, range, "number of Mbit/s", cx)?;
        Some(Mbps((mbps * MEGABIT).round() as u64))
    }
}

/// An amount, as bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Gib(pub(super) u64);

impl Decode for Gib {
    fn kind() -> Kind {
        Kind::text("GiB")
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        let gib = decimal(&value, (0.001, MOST_GIB), "number of GiB", cx)?;
        Some(Gib((gib * GIBIBYTE).round() as u64))
    }
}

/// A size in KiB, as bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Kib(pub(super) u64);

impl Decode for Kib {
    fn kind() -> Kind {
        Kind::text("KiB")
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        u32::decode(value, cx).map(|kib| Kib(u64::from(kib) << 10))
    }
}

/// A day of the month.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Day(pub(super) u8);

impl Decode for Day {
    fn kind() -> Kind {
        Kind::text("1 to 31")
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        let at = value.at;
        let day = u8::decode(value, cx)?;
        if !(1..=31).contains(&day) {
            cx.error(
                at,
                format!("no month has a day {day}"),
                "1 to 31; in months without it, their last day",
            );
            return None;
        }
        Some(Day(day))
    }
}

/// Declares an object as [`object!`](super::table::object) does, with the keys of limits besides its own.
macro_rules! limited {
    (
        $(#[doc = $about:literal])*
        $vis:vis struct $Name:ident : $title:literal { $($keys:tt)* }
        $( other { $($others:tt)* } )?
    ) => {
        $crate::config::table::object! {
            $(#[doc = $about])*
            $vis struct $Name : $title {
                $($keys)*
                /// How many connections a user may have at a time, streams and associations of datagrams alike. 0: any number.
                max_connections: Option<u32> = "maxConnections";
                /// From how many addresses a user may be connected at a time. An IPv6 address stands for its /64. One is free
                /// again 60 s after its last connection. 0: any number.
                max_addresses: Option<u32> = "maxIPs";
                /// How fast a user may send, over all connections, in Mbit/s. 0: as fast as it goes.
                uplink: Option<$crate::config::limits::Mbps> = "uplinkMbps";
                /// How fast a user may receive, over all connections, in Mbit/s. 0: as fast as it goes.
                downlink: Option<$crate::config::limits::Mbps> = "downlinkMbps";
                /// How many KiB may come at once after a pause. 0: what comes in a tenth of a second, and at least 64.
                burst: Option<$crate::config::limits::Kib> = "burstKiB";
                /// How many GiB a user may send and receive in a month, together. It needs `stats.store`. 0: any number.
                quota: Option<$crate::problem::At<$crate::config::limits::Gib>> = "quotaGiB";
                /// The day on which a month of the quota begins, at midnight UTC. Absent: 1.
                reset_day: Option<$crate::config::limits::Day> = "quotaResetDay";
            }
            $( other { $($others)* } )?
        }

        impl $Name {
            /// Its limits.
            $vis fn limits(&self) -> $crate::config::limits::Limits {
                $crate::config::limits::Limits {
                    connections: self.max_connections,
                    addresses: self.max_addresses,
                    uplink: self.uplink.map(|rate| rate.0),
                    downlink: self.downlink.map(|rate| rate.0),
                    burst: self.burst.map(|size| size.0),
                    quota: self.quota.as_ref().map(|quota| quota.value.0),
                    reset_day: self.reset_day.map(|day| day.0),
                }
            }
        }
    };
}
pub(crate) use limited;
