//! Keys and plaintexts marked as undefined, run through everything that touches them, under valgrind's memcheck: it reports
//! each branch and each address that depends on a secret. `scripts/check-constant-time marking` builds and starts this.
//!
//! Exit codes: 0 nothing depends on a secret, 1 something does, 2 the check could not see (not under valgrind, or the leak
//! that is built in was not found).

mod valgrind;

use std::hint::black_box;
use std::process::ExitCode;

use sealway_aead::batch::{Backend, Engine, Job, Keys, Memory, Slot, Status};
use sealway_aead::{Error, Nonce, OpeningKey, SealingKey, Suite};
use valgrind::{errors, hide, show};

/// Lengths of messages: around blocks of both primitives, and on every route that length chooses.
const LENGTHS: [usize; 16] = [0, 1, 15, 16, 17, 63, 64, 65, 127, 192, 300, 512, 1023, 1100, 2049, 5000];
/// Secret messages of one batch: enough that it is not taken one message at a time.
const COPIES: usize = 3;

const AAD: &[u8] = b"associated data are public";

/// What a case showed.
#[derive(Default)]
struct Seen {
    /// Errors while keys were set up and messages sealed: there must be none.
    sealing: usize,
    /// Errors while messages were opened: one each, where it is decided whether the message is authentic. That decision is
    /// public; a comparison that stops early would make more of them.
    opening: usize,
    /// Messages opened or refused.
    opens: usize,
}

/// What is secret in one message.
struct Secrets {
    key: Vec<u8>,
    plain: Vec<u8>,
}

fn secrets(suite: Suite, len: usize) -> Secrets {
    let fill = |n: usize, seed: usize| (0..n).map(|i| (i * 151 + seed * 29 + 7) as u8).collect::<Vec<u8>>();
    let made = Secrets {
        key: fill(suite.key_len(), len),
        plain: fill(len, len + 1),
    };
    hide(&made.key);
    hide(&made.plain);
    made
}

fn nonce(suite: Suite) -> Vec<u8> {
    vec![5; suite.nonce_len()]
}

fn one(suite: Suite, forged: bool) -> Result<Seen, Error> {
    let mut seen = Seen::default();
    for len in LENGTHS {
        let Secrets { key, plain } = secrets(suite, len);
        let nonce = nonce(suite);
        let before = errors();
        let sealing = SealingKey::new(suite, &key)?;
        let opening = OpeningKey::new(suite, &key)?;
        seen.sealing += errors() - before;
        let mut sealed = vec![0; len + 16];
        // Twice: a key may take another path the first time.
        for _ in 0..2 {
            let before = errors();
            sealing.seal_to(Nonce::assume_unique(suite, &nonce)?, AAD, &plain, &mut sealed)?;
            seen.sealing += errors() - before;
            // What is on the wire is public.
            show(&sealed);
            if forged {
                sealed[len + 7] ^= 1;
            }
            let mut opened = vec![0; len];
            let before = errors();
            let result = opening.open_to(&nonce, AAD, &sealed, &mut opened);
            seen.opening += errors() - before;
            seen.opens += 1;
            if result.is_ok() == forged {
                return Err(Error::Unauthentic);
            }
        }
    }
    Ok(seen)
}

fn batch(backend: Backend, suite: Suite, forged: bool) -> Result<Seen, Error> {
    let start = errors();
    let mut keys = Keys::with_slots(LENGTHS.len() * COPIES);
    let (mut plain, mut seals, mut opens) = (Vec::new(), Vec::new(), Vec::new());
    let (mut from, mut to) = (0, 0);
    let nonce = nonce(suite);
    for i in 0..LENGTHS.len() * COPIES {
        let (slot, len) = (Slot(i as u32), LENGTHS[i % LENGTHS.len()] as u32);
        let secrets = secrets(suite, len as usize);
        keys.set(slot, suite, &secrets.key)?;
        plain.extend_from_slice(&secrets.plain);
        let aad = 0..(i % 2 * AAD.len()) as u32;
        let job = Job::seal(slot, Nonce::assume_unique(suite, &nonce)?, from..from + len, to);
        seals.push(job.with_aad(aad.clone()));
        opens.push(Job::open(slot, &nonce, to..to + len + 16, from)?.with_aad(aad));
        from += len;
        to += len + 16;
    }
    let mut engine = Engine::with_backend(backend);
    let mut statuses = vec![Status::Failed; seals.len()];
    let mut sealed = vec![0; to as usize];
    let memory = Memory::Separate {
        src: &plain,
        dst: &mut sealed,
    };
    engine.run(&keys, &seals, memory, AAD, &mut statuses)?;
    let middle = errors();
    show(&sealed);
    if forged {
        opens
            .iter()
            .zip(ends(&opens))
            .step_by(2)
            .for_each(|(_, end)| sealed[end - 1] ^= 0x80);
    }
    let mut opened = vec![0; plain.len()];
    let memory = Memory::Separate {
        src: &sealed,
        dst: &mut opened,
    };
    let report = engine.run(&keys, &opens, memory, AAD, &mut statuses)?;
    let wrong = if forged { opens.len().div_ceil(2) } else { 0 };
    if report.refused != wrong {
        return Err(Error::Unauthentic);
    }
    Ok(Seen {
        sealing: middle - start,
        opening: errors() - middle,
        opens: opens.len(),
    })
}

/// Where the input of each job ends.
fn ends(opens: &[Job]) -> Vec<usize> {
    let lengths = opens.iter().map(Job::input_len);
    lengths
        .scan(0, |end, len| {
            *end += len;
            Some(*end)
        })
        .collect()
}

/// A comparison that stops at the first difference: what must be found.
#[inline(never)]
fn leaky_comparison(a: &[u8], b: &[u8]) -> bool {
    for i in 0..a.len().min(b.len()) {
        if black_box(a[i]) != black_box(b[i]) {
            return false;
        }
    }
    true
}

/// A look-up in a table by a secret: likewise.
#[inline(never)]
fn leaky_table(secret: u8) -> u8 {
    let table: [u8; 256] = black_box(std::array::from_fn(|i| (i * 7) as u8));
    black_box(table[usize::from(secret)])
}

/// Prints what a case showed; false if something depends on a secret.
fn judge(what: &str, seen: Result<Seen, Error>) -> bool {
    match seen {
        Ok(seen) => {
            let good = seen.sealing == 0 && seen.opening == seen.opens;
            let verdict = if good { "ok" } else { "DEPENDS ON A SECRET" };
            let Seen {
                sealing,
                opening,
                opens,
            } = seen;
            println!("{what:56} sealing {sealing}, opening {opening} of {opens} decisions: {verdict}");
            good
        }
        Err(error) => {
            println!("{what:56} FAILED: {error}");
            false
        }
    }
}

fn main() -> ExitCode {
    if !valgrind::is_running() {
        eprintln!("error: this says nothing outside valgrind; run scripts/check-constant-time marking");
        return ExitCode::from(2);
    }
    let secret = secrets(Suite::ChaCha20Poly1305, 32);
    let before = errors();
    black_box(leaky_comparison(&secret.key, &secret.plain));
    let between = errors();
    black_box(leaky_table(secret.key[3]));
    let (comparison, table) = (between - before, errors() - between);
    println!("controls: a comparison that stops early {comparison}, a table indexed by a secret {table}");
    if comparison == 0 || table == 0 {
        eprintln!("error: the leaks that are built in were not found, so this run says nothing");
        return ExitCode::from(2);
    }
    let mut good = true;
    for suite in Suite::ALL {
        for (forged, opens) in [(false, "opened"), (true, "forged")] {
            good &= judge(&format!("one message, {suite}, {opens}"), one(suite, forged));
            for backend in Backend::available() {
                let what = format!("batch, {backend}, {suite}, {opens}");
                good &= judge(&what, batch(backend, suite, forged));
            }
        }
    }
    if good {
        println!("no branch and no address depends on a key or a plaintext");
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
