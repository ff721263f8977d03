//! Measures look-ups in lists of a geo file.
//!
//! `cargo run --release -p sealway-route --example lookup -- geosite.dat CN CATEGORY-ADS-ALL`
//!
//! For each list it prints what the set takes, how long it took to make, and the median, over rounds, of the time of a
//! look-up: of names in the list, of names below them, and of names that are not in it, in an order of their own each.

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use sealway_route::geo::{Form, Item, Kind, Scanner, Step};
use sealway_route::names::NameSet;

/// Names that are looked up, one after another.
const NAMES: usize = 100_000;

/// Look-ups that are timed together: few, so that most rounds are not interrupted on a busy machine.
const ROUND: usize = 256;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: lookup GEOSITE.DAT CODE…")?;
    let file = std::fs::read(path)?;
    println!("list  names  bytes  bytes a name without text  ms to make  ns: held  below  not held");
    for code in arguments {
        measure(&file, &code)?;
    }
    Ok(())
}

fn measure(file: &[u8], code: &str) -> Result<(), Box<dyn Error>> {
    let begun = Instant::now();
    let mut set = NameSet::builder();
    let (mut held, mut text) = (Vec::new(), 0);
    let (mut scanner, mut at) = (Scanner::new(Kind::Names), 0usize);
    while at < file.len() {
        match scanner.next(&file[at..])? {
            Step::Item { item, used } => {
                at += used;
                match item {
                    Item::Entry(found) if found != code => at += usize::try_from(scanner.skip_entry())?,
                    Item::Name(name) => {
                        set.add(name.form, name.text);
                        if matches!(name.form, Form::Domain | Form::Full) {
                            text += name.text.len() + 1;
                        }
                        if name.form == Form::Domain {
                            held.push(name.text.to_owned());
                        }
                    }
                    _ => {}
                }
            }
            Step::Skip(len) => at += usize::try_from(len)?,
            Step::More => return Err("the file ends too early".into()),
        }
    }
    let set = set.build()?;
    let made = begun.elapsed();
    if held.is_empty() {
        return Err(format!("there is no list {code} with domains").into());
    }
    // Far apart in the table, as names of connections are.
    let held: Vec<_> = (0..NAMES)
        .map(|i| held[i.wrapping_mul(7919) % held.len()].clone())
        .collect();
    let below: Vec<_> = held.iter().map(|name| format!("cdn.static.{name}")).collect();
    let other: Vec<_> = held
        .iter()
        .map(|name| format!("www.{name}.not-there.example"))
        .collect();
    // Less than nothing where common labels save more than the rest costs.
    let overhead = (set.memory() as f64 - text as f64) / set.len() as f64;
    println!(
        "{code}  {}  {}  {overhead:.1}  {:.1}  {:.0}  {:.0}  {:.0}",
        set.len(),
        set.memory(),
        made.as_secs_f64() * 1e3,
        median(&set, &held),
        median(&set, &below),
        median(&set, &other),
    );
    Ok(())
}

/// The median of the time of a look-up over rounds, in nanoseconds. Each round has names of its own.
fn median(set: &NameSet, names: &[String]) -> f64 {
    let time = |round: &[String]| {
        let begun = Instant::now();
        black_box(round.iter().filter(|name| set.matches(black_box(name))).count());
        begun.elapsed().as_secs_f64() * 1e9 / round.len() as f64
    };
    let mut rounds: Vec<f64> = names.chunks(ROUND).map(time).collect();
    rounds.sort_by(f64::total_cmp);
    rounds[rounds.len() / 2]
}
