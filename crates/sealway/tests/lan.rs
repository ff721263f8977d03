//! Two of ours find each other on a network, in a network namespace of its own.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

mod common;

use std::path::Path;

use common::namespace::{in_namespace, succeeded};
use common::{PROGRAM, private_folder};

#[test]
fn ends_find_each_other_and_nobody_else() {
    let work = private_folder();
    succeeded(in_namespace("lan/ours.sh", &[Path::new(PROGRAM), work.path()]));
}
