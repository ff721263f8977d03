//! The methods of 2022 (SIP022, with the identity headers of SIP023).
//!
//! ```text
//! request   salt | identity headers | sealed (0, time u64, len u16) | sealed (address, padding, payload)[len] | chunks
//! answer    salt | sealed (1, time u64, the request's salt, len u16) | sealed (payload)[len] | chunks
//! ```

mod answer;
pub mod packet;
mod request;
mod users;

pub use answer::{AnswerSealer, open_answer};
pub use request::{Head, Request, decode_target, open_request};
pub use users::Users;

use crate::{Error, Protocol};

use super::MAX_SKEW;

/// Longest padding, bytes.
pub const MAX_PADDING: usize = 900;

/// What stands first in a sealed header, by who sends it.
const FROM_CLIENT: u8 = 0;
const FROM_SERVER: u8 = 1;

/// Refuses times that are too far from ours.
fn check_time(time: u64, now: i64) -> Result<i64, Error> {
    let far = Error::ClockSkew {
        protocol: Protocol::Shadowsocks,
        most: MAX_SKEW,
        seconds: i64::MAX,
    };
    let time = i64::try_from(time).map_err(|_| far)?;
    if time.abs_diff(now) > MAX_SKEW {
        return Err(Error::ClockSkew {
            protocol: Protocol::Shadowsocks,
            most: MAX_SKEW,
            seconds: time.saturating_sub(now),
        });
    }
    Ok(time)
}

/// The time as it is sent.
fn wire_time(now: i64) -> [u8; 8] {
    u64::try_from(now).unwrap_or_default().to_be_bytes()
}
