//! Two of ours find each other on a network, in a network namespace of its own.

use std::path::Path;

use crate::common::namespace::in_namespace;
use crate::common::{PROGRAM, private_folder};

#[test]
fn ends_find_each_other_and_nobody_else() {
    let work = private_folder();
    in_namespace("drop/lan/ours.sh", &[Path::new(PROGRAM), work.path()]);
}
