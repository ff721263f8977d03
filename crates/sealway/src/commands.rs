//! One file a command, each a thin layer over the crate that does the work.

pub(crate) mod bip324;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod cpu;
pub(crate) mod doctor;
pub(crate) mod drain;
pub(crate) mod drop;
pub(crate) mod gateway;
pub(crate) mod geo;
pub(crate) mod keys;
pub(crate) mod lab;
pub(crate) mod link;
pub(crate) mod man;
pub(crate) mod proxy_api;
pub(crate) mod respond;
pub(crate) mod route;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod store;
pub(crate) mod tls;
pub(crate) mod trend;
pub(crate) mod uuid;
pub(crate) mod version;
