//! `log`: what is logged, and where to.

use super::mask::MaskAddress;
use super::scalar::texts;
use super::table::{object, words};

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
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum LogTarget {
    /// It is not written.
    Off,
    /// To standard output.
    Stdout,
    /// To the end of this file.
    File(String),
}

texts! {
    LogTarget = "path, `none`, or empty for standard output", |text| Ok(match text {
        "" => LogTarget::Stdout,
        word if word.eq_ignore_ascii_case("none") => LogTarget::Off,
        path => LogTarget::File(path.to_owned()),
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
        }
    }
}
