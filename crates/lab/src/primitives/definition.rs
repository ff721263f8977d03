//! Which cases there are, and who takes part in each.

use std::rc::Rc;

use sealway_aead::Suite;

use super::NAME;
use super::cells::{fresh_keys, messages, one_message_scripts, setup};
use super::openssl::{self, Program};
use super::script::{Script, messages_per_chunk};
use crate::plan::Profile;
use crate::result::Case;
use crate::run::Cell;
use crate::workload;
use crate::workload::batch::Op;
use crate::workload::chunk::failed_cell;
#[cfg(feature = "peers")]
use crate::workload::engine::{AwsLc, Ring};
use crate::workload::engine::{Engine, RustCrypto, Sealway};
use crate::workload::subjects::Found;

/// Version of what a window does. Raise it when figures before and after are no longer comparable.
const VERSION: u32 = 1;

/// AAD bytes of every message: a TLS 1.2 record header's worth, and what `openssl speed` takes.
const AAD: usize = openssl::AAD;

/// Message size of the cases with a fresh key.
const FRESH_BYTES: usize = 256;

/// Message size that tells the bulk rate.
const BULK_BYTES: usize = 16_384;

/// Message sizes, the most telling first: a time limit drops cases from the end.
const SIZES: [usize; 12] = [BULK_BYTES, 1420, 64, 256, 65_536, 4096, 1024, 512, 8192, 136, 16, 31];

/// Sizes of a quick run.
const QUICK_SIZES: usize = 5;

/// Message sizes of a profile.
fn sizes(profile: Profile) -> &'static [usize] {
    match profile {
        Profile::Quick => &SIZES[..QUICK_SIZES],
        Profile::Standard | Profile::Full => &SIZES,
    }
}

/// Sizes at which a program that takes a whole second a window is asked.
fn program_sizes(profile: Profile) -> &'static [usize] {
    match profile {
        Profile::Quick => &SIZES[..1],
        Profile::Standard => &SIZES[..3],
        Profile::Full => &SIZES,
    }
}

/// Hash of the numbers that define a window. Profiles share it: they differ in how many cases and rounds there are, not
/// in what a case does.
pub(super) fn hash(_: Profile) -> String {
    let text = format!(
        "{NAME} {VERSION} aad={AAD} chunk={} fresh={FRESH_BYTES}",
        messages_per_chunk(1)
    );
    workload::hash(&text)
}

fn case(suite: Suite, op: &str) -> Case {
    Case::new().with("suite", suite.name()).with("op", op)
}

fn message_case(suite: Suite, op: &str, bytes: usize) -> Case {
    case(suite, op).with("bytes", bytes).with("aad", AAD)
}

/// Calls a generic cell maker for every engine that takes part and has the suite.
macro_rules! each_engine {
    ($found:expr, $suite:expr, $cells:expr, |$engine:ident| $make:expr) => {{
        each_engine!(@one Sealway, $found, $suite, $cells, |$engine| $make);
        #[cfg(feature = "peers")]
        each_engine!(@one AwsLc, $found, $suite, $cells, |$engine| $make);
        #[cfg(feature = "peers")]
        each_engine!(@one Ring, $found, $suite, $cells, |$engine| $make);
        each_engine!(@one RustCrypto, $found, $suite, $cells, |$engine| $make);
    }};
    (@one $type:ident, $found:expr, $suite:expr, $cells:expr, |$engine:ident| $make:expr) => {
        if $found.has($type::NAME) && $type::has($suite) {
            type $engine = $type;
            $cells.push($make);
        }
    };
}

/// Every cell of a run, the most telling cases first.
pub(super) fn cells(profile: Profile, suites: &[Suite], found: &Found, program: Option<&Program>) -> Vec<Cell> {
    let mut cells: Vec<Cell> = Vec::new();
    for &bytes in sizes(profile) {
        for op in [Op::Seal, Op::Open] {
            for &suite in suites {
                let case = message_case(suite, op.name(), bytes);
                match Script::new(suite, op, bytes, AAD, messages_per_chunk(bytes), 0).map(Rc::new) {
                    Ok(script) => {
                        each_engine!(found, suite, cells, |E| messages::<E>(case.clone(), Rc::clone(&script)));
                    }
                    Err(error) => cells.push(failed_cell(case.clone(), Sealway::NAME, &error)),
                }
                if let Some(program) = program
                    && op == Op::Seal
                    && openssl::has(suite)
                    && program_sizes(profile).contains(&bytes)
                {
                    cells.push(openssl::cell(case, program.clone(), suite, bytes, None));
                }
            }
        }
        if bytes == BULK_BYTES {
            key_cells(suites, found, program, &mut cells);
        }
    }
    cells
}

/// The cases about keys, and the one that shows what AES costs where it is not in hardware.
fn key_cells(suites: &[Suite], found: &Found, program: Option<&Program>, cells: &mut Vec<Cell>) {
    for &suite in suites {
        let (setup_case, fresh_case) = (case(suite, "key-setup"), message_case(suite, "fresh-key", FRESH_BYTES));
        match one_message_scripts(suite, FRESH_BYTES, AAD).map(Rc::new) {
            Ok(keys) => {
                each_engine!(found, suite, cells, |E| setup::<E>(
                    setup_case.clone(),
                    Rc::clone(&keys)
                ));
                each_engine!(found, suite, cells, |E| fresh_keys::<E>(
                    fresh_case.clone(),
                    Rc::clone(&keys)
                ));
            }
            Err(error) => cells.push(failed_cell(setup_case, Sealway::NAME, &error)),
        }
    }
    if let Some(program) = program
        && suites.contains(&Suite::Aes256Gcm)
        && let Some(environment) = openssl::without_aes()
    {
        let case = message_case(Suite::Aes256Gcm, "seal-without-aes", BULK_BYTES);
        let suite = Suite::Aes256Gcm;
        cells.push(openssl::cell(
            case,
            program.clone(),
            suite,
            BULK_BYTES,
            Some(environment),
        ));
    }
}

/// The subject of the doctor's A/A check under one of its names.
pub(super) fn doctor_cell(name: &str) -> Cell {
    let suite = Suite::Aes128Gcm;
    let case = message_case(suite, Op::Seal.name(), BULK_BYTES);
    let mut cell = match Script::new(suite, Op::Seal, BULK_BYTES, AAD, messages_per_chunk(BULK_BYTES), 0) {
        Ok(script) => messages::<Sealway>(case, Rc::new(script)),
        Err(error) => failed_cell(case, Sealway::NAME, &error),
    };
    cell.subject = name.to_owned();
    cell
}
