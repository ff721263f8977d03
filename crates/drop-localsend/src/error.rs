//! What can go wrong between this end and a device.

use std::fmt;
use std::io;

use sealway_drop::fault::{Failure, Fault};

use crate::fingerprint::Fingerprint;
use crate::message::Malformed;

/// An error of LocalSend.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// What was asked for makes no sense; the text says what to do.
    Usage(String),
    /// No device of this name was heard.
    NotFound {
        /// The name, escaped.
        name: String,
    },
    /// Several devices have this name.
    Several {
        /// The name, escaped.
        name: String,
        /// Where they are.
        places: Vec<String>,
    },
    /// Nothing answers there, or the connection was lost.
    Network {
        /// What was being done.
        doing: String,
        /// Why it failed.
        source: io::Error,
    },
    /// The device wants a certificate of this end and did not take the one it has.
    WantsCertificate,
    /// The device has another certificate than it should have.
    OtherCertificate {
        /// Who it should be, escaped.
        name: String,
        /// What it should have.
        expected: Fingerprint,
        /// What it has.
        found: Option<Fingerprint>,
    },
    /// The device speaks in clear.
    Clear,
    /// The device refuses, for this reason.
    Rejected(String),
    /// The device is busy with somebody else.
    Busy,
    /// The device wants a PIN.
    PinWanted,
    /// The PIN was another one.
    PinWrong,
    /// The device takes no more guesses.
    PinLocked,
    /// The device cancelled.
    CancelledThere,
    /// The device said nothing more.
    Silent,
    /// The device answered something that this call has no answer like.
    Status {
        /// What was asked.
        call: &'static str,
        /// The number.
        status: u16,
        /// Its words, escaped.
        text: String,
    },
    /// What the device sent makes no sense.
    Malformed {
        /// What it was.
        what: &'static str,
        /// What is wrong with it, escaped.
        why: String,
    },
    /// The certificate of this end cannot be made or used.
    Certificate(String),
    /// This end cannot listen.
    Listen {
        /// At which port.
        port: u16,
        /// Why.
        source: io::Error,
    },
}

/// Does what waits for a disk or for a person, beside what goes on here.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Error> {
    let working = tokio::task::spawn_blocking(work);
    working.await.map_err(|error| Error::Usage(error.to_string()))
}

impl Error {
    pub(crate) fn malformed(what: &'static str) -> impl FnOnce(Malformed) -> Error {
        move |error| Error::Malformed {
            what,
            why: error.to_string(),
        }
    }

    pub(crate) fn network(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
        let doing = doing.into();
        move |source| Error::Network { doing, source }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Error::NotFound { .. } => {
                "is its app open, and on this network? a firewall must let 53317/udp and 53317/tcp through; some access points pass no multicast: give its address, as HOST or HOST:PORT"
            }
            Error::Several { .. } => "name the address of the one that is meant",
            Error::OtherCertificate { .. } => {
                "if the app was installed anew, forget the device (`sealway localsend forget NAME`) and remember it again; else somebody may sit between"
            }
            Error::Clear => {
                "turn on encryption in the settings of its app, or say --insecure-http: anyone on the network can then read and change what is sent"
            }
            Error::Busy => "tap Done or Cancel on the other device",
            Error::PinWanted | Error::PinWrong => "the PIN is shown on the other device; SEALWAY_PIN passes it on",
            Error::PinLocked => "restart the app on the other device",
            _ => return None,
        })
    }
}

impl Failure for Error {
    fn fault(&self) -> Fault {
        match self {
            Error::Usage(_) | Error::Several { .. } | Error::Clear => Fault::Usage,
            Error::NotFound { .. }
            | Error::Network { .. }
            | Error::CancelledThere
            | Error::Silent
            | Error::Busy
            | Error::Listen { .. }
            | Error::Status { .. } => Fault::Network,
            Error::WantsCertificate
            | Error::OtherCertificate { .. }
            | Error::PinWanted
            | Error::PinWrong
            | Error::PinLocked => Fault::Identity,
            Error::Rejected(_) => Fault::Declined,
            Error::Malformed { .. } => Fault::Peer,
            Error::Certificate(_) => Fault::Storage,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Usage(text) => f.write_str(text),
            Error::NotFound { name } => write!(f, "no device called {name} was found"),
            Error::Several { name, places } => {
                write!(f, "several devices are called {name}: {}", places.join(", "))
            }
            Error::Network { doing, source } => match source.kind() {
                io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => {
                    write!(f, "the connection was lost while {doing}")
                }
                io::ErrorKind::TimedOut => write!(f, "no answer in time while {doing}"),
                _ => write!(f, "{doing}: {source}"),
            },
            Error::WantsCertificate => f.write_str("the device wants a certificate and does not take that of this end"),
            Error::OtherCertificate { name, expected, found } => {
                write!(f, "{name} should have the certificate {}", expected.short())?;
                match found {
                    Some(found) => write!(f, " and has {}", found.short()),
                    None => f.write_str(" and showed none"),
                }
            }
            Error::Clear => f.write_str("the device speaks in clear"),
            Error::Rejected(text) if text.is_empty() => f.write_str("the other device declined"),
            Error::Rejected(text) => write!(f, "the other device declined: {text}"),
            Error::Busy => f.write_str("the other device is busy with another transfer"),
            Error::PinWanted => f.write_str("the other device wants a PIN"),
            Error::PinWrong => f.write_str("the PIN is wrong"),
            Error::PinLocked => f.write_str("the other device takes no more guesses at its PIN"),
            Error::CancelledThere => f.write_str("the other device cancelled"),
            Error::Silent => f.write_str("the other device said nothing more"),
            Error::Status { call, status, text } if text.is_empty() => {
                write!(f, "the other device answered {status} to {call}")
            }
            Error::Status { call, status, text } => write!(f, "the other device answered {status} to {call}: {text}"),
            Error::Malformed { what, why } => write!(f, "the other device sent {what} that makes no sense: {why}"),
            Error::Certificate(why) => write!(f, "the certificate of this end: {why}"),
            Error::Listen { port, source } => write!(f, "cannot listen at port {port}: {source}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Network { source, .. } | Error::Listen { source, .. } => Some(source),
            _ => None,
        }
    }
}
