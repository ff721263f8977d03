//! `log`: what is logged, and where to.

use std::path::PathBuf;

use super::context::Cx;
use super::mask::MaskAddress;
use super::scalar::texts;
use super::schema::Kind;
use super::table::{Decode, object, words};
use crate::json::Value;

/// The largest log before it is begun anew, in MiB: as much as fits where sizes are counted in 63 bits.
const MAX_MIB: u32 = 1 << 24;
/// Most older logs that are kept.
const MAX_KEPT: u8 = 100;

words! {
    /// How much the error log says.
    pub enum LogLevel {
        /// Everything, for finding faults.
        Debug = "debug";
        /// Also what is normal.
        Info = "info";
        /// What may need attention.
        Warning = "warning" | "";
        /// What failed.
        Error = "error";
        /// Nothing.
        None = "none";
    }
}

/// Where a log goes.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum LogTarget {
    /// It is not written.
    #[default]
    Off,
    /// To standard output.
    Stdout,
    /// To the end of this file.
    File(PathBuf),
}

words! {
    /// What the lines of the access log look like.
    pub enum AccessFormat {
        /// As those of V2Ray and Xray.
        Text = "text" | "";
        /// An object of JSON each.
        Json = "json";
    }
}

#[allow(clippy::derivable_impls, reason = "the macro that declares words derives no default")]
impl Default for AccessFormat {
    fn default() -> Self {
        AccessFormat::Text
    }
}

/// How large a file of a log may become.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct LogSize {
    /// MiB. 0: as large as it becomes.
    pub mib: u32,
}

impl Decode for LogSize {
    fn kind() -> Kind {
        Kind::text("0 for no limit, or 1 to 16777216")
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        let at = value.at;
        let mib = u32::decode(value, cx)?;
        if mib > MAX_MIB {
            cx.error(at, format!("{mib} MiB are more than there are"), Self::kind().wanted());
            return None;
        }
        Some(LogSize { mib })
    }
}

/// How many older files of a log are kept.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LogsKept(pub u8);

impl Default for LogsKept {
    fn default() -> Self {
        LogsKept(3)
    }
}

impl Decode for LogsKept {
    fn kind() -> Kind {
        Kind::text("0 to 100")
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        let at = value.at;
        let kept = u8::decode(value, cx)?;
        if kept > MAX_KEPT {
            cx.error(at, format!("{kept} files are too many"), Self::kind().wanted());
            return None;
        }
        Some(LogsKept(kept))
    }
}

texts! {
    LogTarget = "path, `none`, or empty for standard output", |text| Ok(match text {
        "" => LogTarget::Stdout,
        word if word.eq_ignore_ascii_case("none") => LogTarget::Off,
        path => LogTarget::File(path.into()),
    }), "";
}

object! {
    /// What is logged, and where to. Without this object there is no access log, and errors are logged from `warning` up.
    pub struct Log: "log" {
        /// The access log: one line a connection, or flow of datagrams. A file that is made is for its owner alone.
        access: LogTarget = "access", default "\"\"";
        /// The error log. A file that is made is for its owner alone.
        error: LogTarget = "error", default "\"\"";
        /// The least severe messages of the error log.
        level: LogLevel = "loglevel", default "\"warning\"";
        /// How much of addresses the logs hide.
        mask_address: MaskAddress = "maskAddress", default "\"\"";
        /// What lines of the access log look like: `text`, or `json` for an object each. Only here.
        access_format: AccessFormat = "accessFormat", default "\"text\"";
        /// A log that would become larger than so many MiB is begun anew: `access.log` becomes `access.log.1`. Each log by itself.
        /// Only here.
        max_size: LogSize = "maxSizeMiB", default "0";
        /// How many older files of each log are kept then. Only here.
        keep: LogsKept = "keep", default "3";
    }
    other {
        LaterWarning "dnsLog": "DNS queries in the log (`dnsLog`)";
    }
}

impl Default for Log {
    /// What holds without a `log` object.
    fn default() -> Self {
        Log {
            access: LogTarget::Off,
            error: LogTarget::Stdout,
            level: LogLevel::Warning,
            mask_address: MaskAddress::default(),
            access_format: AccessFormat::default(),
            max_size: LogSize::default(),
            keep: LogsKept::default(),
        }
    }
}
