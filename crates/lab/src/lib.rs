//! Measures ciphers and transports side by side with real peers, and reports what can be believed.
//!
//! A *workload* says what is moved, how it is verified and what is counted; a *subject* is our engine or a real peer;
//! a *case* is one parameter set; a *cell* is a case with a subject; a *round* is one visit to all cells. Subjects
//! alternate inside each round, every timed output is verified, and figures are ratios of one run first.

#![forbid(unsafe_code)]

pub mod bip324;
pub mod calibrate;
pub mod catalogue;
pub mod compare;
mod connections;
pub mod doctor;
pub mod ending;
pub mod files;
pub mod flows;
mod format;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
pub mod lens;
pub mod link;
mod load;
pub mod machine;
pub mod measure;
pub mod packets;
pub mod peer;
pub mod pin;
pub mod plan;
mod poller;
pub mod primitives;
pub mod remote;
pub mod report;
pub mod reproduce;
pub mod requests;
pub mod result;
pub mod route;
pub mod run;
mod service;
pub mod stats;
pub mod store;
pub mod transports;
pub mod trend;
pub mod workload;
