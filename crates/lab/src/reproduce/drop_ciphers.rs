//! A file by several ways, with the cipher as the only thing that changes.

use super::claim::Want::Text;
use super::claim::{Claim, Figure, Who, claims, figure};
use super::recipe::{Recipe, Source, Step};
use crate::files;
use crate::lens::OURS;
use crate::result::Case;

const COST: &str = "cpu_per_gb";
const AES_128: &str = "aes-128-gcm";
const AES_256: &str = "aes-256-gcm";
const CHACHA: &str = "chacha20-poly1305";
const POST: &str = "https-post";
const GRPC: &str = "keibidrop";

/// A file of 10^8 B from memory to memory.
macro_rules! file {
    ($label:literal, $way:literal, $suite:expr) => {
        figure!($label, files::NAME, "throughput", "way": Text($way), "shape": Text("hundred"), "suite": Text($suite))
    };
}

/// A file of 1 GiB, each subject with the cipher of its own choice.
macro_rules! large {
    ($label:literal, $way:literal) => {
        figure!($label, files::NAME, "throughput", "way": Text($way), "shape": Text("file"), "suite": Text("default"))
    };
}

const POST_AES: Figure = file!("POST, AES-128", "send", AES_128);
const POST_CHACHA: Figure = file!("POST, ChaCha20", "send", CHACHA);
const SEND_AES_128: Figure = file!("send, AES-128", "send", AES_128);
const SEND_AES_256: Figure = file!("send, AES-256", "send", AES_256);
const SEND_CHACHA: Figure = file!("send, ChaCha20", "send", CHACHA);
const GRPC_AES: Figure = file!("gRPC, AES-256", "grpc", AES_256);
const GRPC_CHACHA: Figure = file!("gRPC, ChaCha20", "grpc", CHACHA);
const GRPC_CLEAR: Figure = file!("gRPC in clear", "grpc", "default");
const MOUNT_AES: Figure = file!("mount, AES-256", "mount-read", AES_256);
const MOUNT_CHACHA: Figure = file!("mount, ChaCha20", "mount-read", CHACHA);
const SEND: Figure = large!("a file", "send");
const THEIR_GRPC: Figure = large!("KeibiDrop's gRPC", "grpc");
const POST_IN_GO: Figure = large!("POST in Go", "send");

/// All ways with all suites, and one large file for the peers that have a cipher of their own.
fn wanted(case: &Case) -> bool {
    match case.text("shape") {
        Some("hundred") => true,
        Some("file") => {
            matches!(case.text("way"), Some("send" | "grpc"))
                && case.text("place") == Some("memory")
                && case.text("suite") == Some("default")
        }
        _ => false,
    }
}

pub(super) static RECIPE: Recipe = Recipe {
    name: "drop-ciphers",
    summary: "one file sent, by gRPC, mounted and by HTTPS POST with each cipher",
    about: "KeibiDrop's measurements of what AES instead of ChaCha20 is worth to a transfer of files, and of its distance to \
            croc, magic-wormhole and an HTTPS POST as LocalSend does it.",
    sources: &[
        Source {
            name: "KeibiDrop, How does KeibiDrop compare?",
            date: "2026-03",
            address: "https://keibisoft.com/blog/keibidrop-benchmarks-vs-competition.html",
            method: "Core i7-9750H with macOS 26.3 over loopback, Go 1.24.3; files of random bytes from a laptop's SSD, one tool \
                     after the other: HTTPS POST with AES-128-GCM 704 MB/s, with ChaCha20-Poly1305 612, encrypted gRPC 442, croc \
                     10.4.2 153, wormhole-william 126",
        },
        Source {
            name: "KeibiDrop, Adding AES-256-GCM with hardware acceleration",
            date: "2026-03",
            address: "https://keibisoft.com/blog/keibidrop-aes-gcm-hardware-acceleration.html",
            method: "The same machine: encrypted gRPC with ChaCha20-Poly1305 442 MB/s, with AES-256-GCM 490",
        },
        Source {
            name: "KeibiDrop, Optimizing encrypted P2P transfer",
            date: "2026",
            address: "https://keibisoft.com/blog/keibidrop-optimizing-encrypted-transfer.html",
            method: "An Intel MacBook Pro, files of 1 GB, ChaCha20-Poly1305: gRPC in clear 981 MB/s, encrypted 437 to 441, through \
                     its mount 225 to 231",
        },
    ],
    differs: &[
        "Theirs ran on macOS with files on an SSD; these lie in memory, so the disk decides nothing here.",
        "Their gRPC, mount and HTTPS POST are in Go; ours are our own program and an HTTPS POST by rustls. KeibiDrop's own gRPC \
         and the POST in Go stand beside them where they are installed.",
        "Where the cipher is compared, the negotiated one too, files have 10^8 B, so that all of them fit into the time; what it \
         takes to start the programs is in the figure and makes differences smaller. The file that croc and magic-wormhole send \
         has 1 GiB.",
        "croc is 11.2 here and has a local relay; magic-wormhole is the one in Python, theirs in Go.",
        "Their figures are single runs; an interval of ours counts as agreeing if the published ratio lies within 10 % of it, \
         or within half of the published effect where that is less.",
    ],
    steps: &[Step {
        cases: Some(wanted),
        ..Step::of(&files::WORKLOAD)
    }],
    claims: claims! {
        also [COST];
        1 "An HTTPS POST is 15 % faster with AES-128 than with ChaCha20.":
            POST_AES of POST 704.0 / POST_CHACHA of POST 612.0;
        2 "Encrypted gRPC is 11 % faster with AES-256 than with ChaCha20.":
            GRPC_AES of OURS 490.0 / GRPC_CHACHA of OURS 442.0, "published of KeibiDrop; this is our own gRPC";
        1 "Sending is 15 % faster with AES-128 than with ChaCha20.":
            SEND_AES_128 of OURS 704.0 / SEND_CHACHA of OURS 612.0,
            "published of an HTTPS POST; this is our own protocol";
        2 "Sending is 11 % faster with AES-256 than with ChaCha20.":
            SEND_AES_256 of OURS 490.0 / SEND_CHACHA of OURS 442.0, "published of gRPC; this is our own protocol";
        2 "Reading a mounted file is 11 % faster with AES-256 than with ChaCha20.":
            MOUNT_AES of OURS 490.0 / MOUNT_CHACHA of OURS 442.0, "published of gRPC; this is a mounted file";
        1 "With ChaCha20, an HTTPS POST is 38 % faster than encrypted gRPC.":
            POST_CHACHA of POST 612.0 / GRPC_CHACHA of OURS 442.0;
        3 "gRPC in clear is 2.2 times as fast as with ChaCha20.":
            GRPC_CLEAR of "grpc-plain" 981.0 / GRPC_CHACHA of OURS 437.0;
        3 "A mounted file is read at half of the rate of gRPC.":
            MOUNT_CHACHA of OURS 231.0 / GRPC_CHACHA of OURS 441.0;
        1 "Encrypted transfer is 2.9 times as fast as croc.":
            SEND of OURS 442.0 / SEND of "croc" 153.0, "published of KeibiDrop's gRPC; this is our own protocol";
        1 "Encrypted transfer is 3.5 times as fast as wormhole.":
            SEND of OURS 442.0 / SEND of "wormhole" 126.0, "published of KeibiDrop's gRPC; this is our own protocol";
        1 "KeibiDrop's gRPC is 37 % slower than an HTTPS POST with AES-128 in Go.":
            THEIR_GRPC of GRPC 442.0 / POST_IN_GO of "https-post-go" 704.0;
    },
    rankings: &[],
    peers: &[
        ("croc", "scripts/install-peers gets it"),
        ("wormhole", "scripts/install-peers gets it"),
        (
            GRPC,
            "scripts/install-peers builds its packages with a small program of ours",
        ),
        ("https-post-go", "scripts/install-peers builds it"),
    ],
};
