//! The cases.

use sealway_aead::Suite;

use super::source::{Shape, total};
use super::storage::Storage;
use crate::plan::Profile;
use crate::result::Case;

/// How bytes get from one side to the other.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(super) enum Way {
    /// Files are sent.
    Send,
    /// A file is streamed through gRPC.
    Grpc,
    /// A mounted file is read from start to end.
    Read,
    /// 4 KiB are read at random places of a mounted file.
    Random,
}

impl Way {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Way::Send => "send",
            Way::Grpc => "grpc",
            Way::Read => "mount-read",
            Way::Random => "mount-random",
        }
    }

    /// True where the files stand at the receiver in the end.
    pub(super) const fn leaves_files(self) -> bool {
        matches!(self, Way::Send | Way::Grpc)
    }
}

/// A parameter set.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) struct Spec {
    pub(super) way: Way,
    pub(super) shape: Shape,
    pub(super) place: Storage,
    /// What seals the payload; `None`: each subject's own choice.
    pub(super) suite: Option<Suite>,
    pub(super) profile: Profile,
}

impl Spec {
    pub(super) fn sizes(&self) -> Vec<(usize, u64)> {
        self.shape.sizes(self.profile)
    }

    pub(super) fn case(&self) -> Case {
        let sizes = self.sizes();
        let files: usize = sizes.iter().map(|(count, _)| count).sum();
        Case::new()
            .with("way", self.way.name())
            .with("shape", self.shape.name())
            .with("place", self.place.name())
            .with("suite", self.suite.map_or("default", Suite::name))
            .with("files", files)
            .with("total", usize::try_from(total(&sizes)).unwrap_or(usize::MAX))
    }
}

/// The suites that are compared with each other: those of 256 bits.
pub(super) const SUITES: [Suite; 2] = [Suite::Aes256Gcm, Suite::ChaCha20Poly1305];

/// Every way by every suite with a file that is short enough for all of them, then the cases of a standard run: what a caller
/// chooses from who names cases.
pub(super) fn every(profile: Profile, chosen: &[Suite]) -> Vec<Spec> {
    let suites = [Suite::Aes128Gcm, Suite::Aes256Gcm, Suite::ChaCha20Poly1305];
    let suites: Vec<_> = suites.into_iter().map(Some).chain([None]).collect();
    let ways = [Way::Send, Way::Grpc, Way::Read].into_iter();
    let mut every: Vec<Spec> = ways
        .flat_map(|way| {
            suites.iter().map(move |&suite| Spec {
                way,
                shape: Shape::Hundred,
                place: Storage::Memory,
                suite,
                profile,
            })
        })
        .collect();
    for mut spec in specs(Profile::Standard, &[]) {
        spec.profile = profile;
        if !every.contains(&spec) {
            every.push(spec);
        }
    }
    every.retain(|spec| chosen.is_empty() || spec.suite.is_some_and(|suite| chosen.contains(&suite)));
    every
}

/// Every case, the most telling first: a time limit drops cases from the end. With suites chosen, only what is sealed by
/// one of them.
pub(super) fn specs(profile: Profile, chosen: &[Suite]) -> Vec<Spec> {
    let spec = |way, shape, place, suite| Spec {
        way,
        shape,
        place,
        suite,
        profile,
    };
    let suites = SUITES
        .into_iter()
        .filter(|suite| chosen.is_empty() || chosen.contains(suite));
    let by_suite = suites.map(|suite| spec(Way::Send, Shape::File, Storage::Memory, Some(suite)));
    if !chosen.is_empty() {
        return by_suite.collect();
    }
    let memory = |way, shape| spec(way, shape, Storage::Memory, None);
    let mut specs = vec![
        memory(Way::Send, Shape::File),
        memory(Way::Send, Shape::Byte),
        memory(Way::Send, Shape::Small),
    ];
    if profile != Profile::Quick {
        specs.push(memory(Way::Send, Shape::Tree));
    }
    specs.push(memory(Way::Read, Shape::File));
    specs.push(memory(Way::Grpc, Shape::File));
    specs.extend(by_suite);
    if profile != Profile::Quick {
        specs.push(spec(Way::Send, Shape::File, Storage::Disk, None));
        specs.push(memory(Way::Random, Shape::File));
        specs.push(memory(Way::Grpc, Shape::Hundred));
    }
    specs
}
