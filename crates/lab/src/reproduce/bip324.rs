//! BIP324's transport on a processor and on a GPU.

use super::claim::Want::{Int, Text};
use super::claim::{Claim, Figure, Who, claims, figure};
use super::recipe::{Recipe, Source, Step};
use crate::bip324::{self, NAME};
use crate::lens::OURS;
use crate::packets;
use crate::result::Case;
use sealway_aead::Suite;

const GPU: &str = packets::gpu::GPU;
const SINGLE: &str = "sealway:single";

/// Packets of the mix on many connections.
macro_rules! mix {
    ($label:literal, $batch:literal, $metric:literal) => {
        figure!($label, NAME, $metric, "op": Text("pair"), "sizes": Text("mix"), "connections": Int(1000),
            "batch": Int($batch), "decoys": Int(0))
    };
}

/// What is done once a connection.
macro_rules! once {
    ($label:literal, $op:literal) => {
        figure!($label, NAME, "setup_time", "op": Text($op))
    };
}

/// Packets that lie on the device, and such as come over the link.
macro_rules! device {
    ($label:literal, $mode:literal, $batch:literal) => {
        figure!($label, packets::NAME, "rate", "mode": Text($mode), "op": Text("pair"), "sizes": Text("mix"),
            "batch": Int($batch))
    };
}

const WIRE: Figure = mix!("bytes on the wire", 4096, "wire_throughput");
const CONTENTS: Figure = mix!("bytes of contents", 4096, "throughput");
const PAIRS: Figure = mix!("pairs in batches of 4,096", 4096, "rate");
const PAIRS_LARGE: Figure = mix!("pairs in batches of 16,384", 16_384, "rate");
const ONE: Figure = mix!("one packet", 1, "packet_p50");
const ONE_OF_64: Figure = mix!("one of 64", 64, "packet_p50");
const ONE_OF_1024: Figure = mix!("one of 1,024", 1024, "packet_p50");
const CREATE: Figure = once!("making a key", "key");
const EXCHANGE: Figure = once!("one exchange", "ecdh");
const HKDF: Figure = once!("one extract and one expand", "hkdf");
const HANDSHAKE: Figure = once!("a handshake, both sides", "handshake");
const LONG_OPENED: Figure = figure!("opening 4,096 B", NAME, "throughput", "op": Text("open"), "sizes": Text("4096"));
const LONG_SEALED: Figure = figure!("sealing 4,096 B", NAME, "throughput", "op": Text("seal"), "sizes": Text("4096"));
const OVER_LINK: Figure = device!("pairs over the link", "pinned", 16_384);
const BY_KERNELS: Figure = device!("pairs by kernels alone", "kernel", 65_536);

/// The mix on many connections, long packets, sockets, and what is done once a connection.
fn of_a_node(case: &Case) -> bool {
    match (case.text("op"), case.text("sizes")) {
        (Some("loopback"), sizes) => sizes == Some("512"),
        (_, Some("mix")) => case.int("connections") == Some(1000),
        (Some("seal" | "open"), sizes) => sizes == Some("4096"),
        (_, sizes) => sizes.is_none(),
    }
}

/// The cipher by itself, as it stands in the packets of the transport.
fn alone(case: &Case) -> bool {
    case.text("sizes") == Some("mix")
        && case.text("keys") == Some("fresh")
        && case.int("threads") == Some(1)
        && case.int("batch") == Some(4096)
}

fn on_the_device(case: &Case) -> bool {
    case.text("mode").is_some_and(|mode| mode != "call") && case.text("sizes").is_none_or(|sizes| sizes == "mix")
}

pub(super) static RECIPE: Recipe = Recipe {
    name: "bip324",
    summary: "BIP324's transport: one by one, in batches, sockets, handshakes, a GPU",
    about: "Measurements of a whole BIP324 transport in C++ and CUDA, posted to the Bitcoin development list: what a \
            processor does, what a GPU adds in batches, what an exchange of keys costs.",
    sources: &[Source {
        name: "BIP324 transport performance: CPU baseline, GPU offload, batching and latency tradeoffs (bitcoindev)",
        date: "2026-03-23",
        address: "https://groups.google.com/g/bitcoindev/c/SZZftdsfFNs",
        method: "An x86-64 of unnamed model, one thread, clang 19 -O3; RTX 5060 Ti with CUDA; medians of several runs; 715,000 \
                 pairs a second of a mix of packets on the processor, 12.78 million on the GPU and 21.37 million after optimisation",
    }],
    differs: &[
        "Another processor, and another GPU if there is one here: rates do not compare, ratios within one machine do, as far \
         as both parts of a ratio depend on the same hardware.",
        "Their processor seals one packet after the other without vectors; our engine seals batches in vectors, which is why a \
         GPU is ahead of it by less. The row sealway:single, one packet at a time, is the nearest to theirs.",
        "Their mix has an overhead of 5.5 %, this one of 6.2 %: its packets are shorter (325 B of contents in the mean, 20 B \
         more on the wire).",
        "Their HKDF is one extract and one expand in one figure, as is the case hkdf here. One expand alone (expand) and the whole key \
         schedule of a connection, one extract and six expands, are measured beside it. Each of ours wipes what it leaves on the stack.",
        "Figures of the GPU that name kernels leave the link out at both ends; those of batches have it in.",
        "Their figures are single numbers; an interval of ours counts as agreeing if the published ratio lies within 10 % of \
         it, or within half of the published effect where that is less.",
    ],
    steps: &[
        Step {
            share: 5,
            cases: Some(of_a_node),
            ..Step::of(&bip324::WORKLOAD)
        },
        Step {
            share: 1,
            suites: &[Suite::ChaCha20Poly1305],
            cases: Some(alone),
            ..Step::of(&packets::WORKLOAD)
        },
        Step {
            share: 2,
            gpu: true,
            ..Step::of(&bip324::WORKLOAD)
        },
        Step {
            share: 2,
            gpu: true,
            cases: Some(on_the_device),
            ..Step::of(&packets::WORKLOAD)
        },
    ],
    claims: claims! {
        also [];
        1 "On the wire a mix of packets takes 5.5 % more bytes than its contents.": WIRE 1.055 / CONTENTS 1.0,
            "the mixes differ: this one has 6.2 % by its definition";
        1 "Making a key takes longer than an exchange.": CREATE 53.0 / EXCHANGE 30.0;
        1 "A whole handshake takes both sides 3.2 times what making one key takes.": HANDSHAKE 172.0 / CREATE 53.0;
        1 "HKDF is under a hundredth of an exchange.": HKDF 0.286 / EXCHANGE 30.0;
        1 "Opening long packets is as fast as sealing them.": LONG_OPENED 1.0 / LONG_SEALED 1.0,
            "published: 587 and 580 MB/s, the cipher by itself";
        1 "On a GPU, batches are 17.9 times as fast as the processor.":
            PAIRS_LARGE of GPU 12.78 / PAIRS_LARGE of OURS 0.715,
            "published of batches of 131,072, perhaps without the link; the processor's side is our batches in vectors, \
             theirs sealed one by one";
        1 "On a GPU, batches are 17.9 times as fast as packets one by one on the processor.":
            PAIRS_LARGE of GPU 12.78 / PAIRS of SINGLE 0.715,
            "published of batches of 131,072, perhaps without the link; measured one after the other, not side by side";
        1 "Over the link a GPU keeps half of the rate that its kernels have.":
            OVER_LINK of GPU 3.4 / BY_KERNELS of GPU 6.6, "published: 3.2 to 3.6 GB/s of 6.6";
        1 "A packet alone takes a GPU 279 times what one in a batch of 1,024 takes.":
            ONE of GPU 17_600.0 / ONE_OF_1024 of GPU 63.0;
        1 "In a batch of 64, a packet takes a GPU 8 times what one in a batch of 1,024 takes.":
            ONE_OF_64 of GPU 500.0 / ONE_OF_1024 of GPU 63.0;
    },
    rankings: &[],
    peers: &[
        (
            GPU,
            "an NVIDIA GPU with its driver is needed; run the same command on a machine that has one, or read a result of it \
             with --from",
        ),
        (
            "bip324",
            "built in, unless the program was built without the feature peers",
        ),
        (
            "aws-lc-rs",
            "built in, unless the program was built without the feature peers",
        ),
    ],
};
