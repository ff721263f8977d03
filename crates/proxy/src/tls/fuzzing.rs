//! One entry a parser of TLS and DNS, for the fuzz targets and for the test that replays their corpora. Not part of the public
//! interface.
//!
//! Every entry checks more than that nothing panics, such as that more bytes change no name that was found.

#[cfg(test)]
mod corpora;

use sealway_v2ray::sniff::server_name;

/// An entry: its name, which is also that of its fuzz target and corpus, and the function.
pub type Entry = (&'static str, fn(&[u8]));

/// All entries.
pub const ENTRIES: &[Entry] = &[
    ("dns_answer", crate::dns::fuzzing::answer),
    ("dns_question", crate::dns::fuzzing::question),
    ("tls_hello", hello),
];

/// Runs the entry of this name.
///
/// # Panics
/// If there is none, or if the entry finds a fault.
pub fn run(name: &str, data: &[u8]) {
    match ENTRIES.iter().find(|(entry, _)| *entry == name) {
        Some((_, entry)) => entry(data),
        None => panic!("there is no fuzz entry {name}"),
    }
}

/// What a stranger sends first.
fn hello(data: &[u8]) {
    let found = server_name(data);
    for n in (0..data.len()).step_by(1 + data.len() / 64) {
        let early = server_name(&data[..n]);
        assert!(early.is_none() || early == found, "what follows made a difference");
    }
    // One record, or the same bytes in many.
    if let [22, 3, _, high, low, message @ ..] = data
        && message.len() == usize::from(u16::from_be_bytes([*high, *low]))
        // A longer record is none.
        && message.len() <= 1 << 14
    {
        let pieces = message
            .chunks(7)
            .flat_map(|piece| [&[22, 3, 1, 0, piece.len() as u8], piece].concat());
        assert_eq!(
            server_name(&pieces.collect::<Vec<u8>>()),
            found,
            "records made a difference"
        );
    }
}
