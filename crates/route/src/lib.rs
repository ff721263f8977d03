//! Sets of names and addresses, as routing rules ask them: built once, asked for every connection.
//!
//! Nothing here opens a file: texts and networks come in as arguments, and a set answers whether it holds a name or an
//! address.
//!
//! ```
//! use sealway_route::{ips, names};
//!
//! let mut builder = names::NameSet::builder();
//! builder.domain("example.org").full("www.example.net");
//! let set = builder.build()?;
//! assert!(set.matches("a.example.org") && set.matches("www.example.net"));
//! assert!(!set.matches("example.net"));
//!
//! let mut builder = ips::IpSet::builder();
//! builder.net("192.0.2.0/24".parse()?);
//! assert!(builder.build().matches("192.0.2.7".parse()?));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
pub mod geo;
pub mod ips;
pub mod names;
#[cfg(any(test, feature = "fuzzing", feature = "testing"))]
#[doc(hidden)]
pub mod testing;
