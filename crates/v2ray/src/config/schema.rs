//! What a table of keys says, for reading, for advice on misspelt keys and for the reference.

use std::collections::BTreeSet;

use crate::problem::Severity;

/// What a value may be, for the reference.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// A type told in words.
    Text(String),
    /// One of these words; the others are known and not taken.
    Words(Vec<&'static str>, &'static [Other]),
    /// A list.
    List(Box<Kind>),
    /// An object with names of the user's choice.
    Map(Box<Kind>),
    /// An object with a table of keys.
    Object(&'static Object),
    /// One of these, by the protocol that stands beside it.
    ByProtocol(Vec<Kind>),
}

impl Kind {
    pub(crate) fn text(text: &str) -> Self {
        Kind::Text(text.to_owned())
    }

    /// What to write, as a hint.
    pub(crate) fn wanted(&self) -> String {
        match self {
            Kind::Text(text) => format!("it is written as {}", text.replace('`', "\"")),
            Kind::Words(words, _) => format!("write one of {}", words.join(", ")),
            Kind::List(_) => "it is a list".to_owned(),
            Kind::Map(_) | Kind::Object(_) | Kind::ByProtocol(_) => "it is an object".to_owned(),
        }
    }

    fn visit(self, seen: &mut BTreeSet<&'static str>, all: &mut Vec<&'static Object>) {
        match self {
            Kind::Text(_) | Kind::Words(..) => {}
            Kind::List(kind) | Kind::Map(kind) => kind.visit(seen, all),
            Kind::Object(object) => object.visit(seen, all),
            Kind::ByProtocol(kinds) => kinds.into_iter().for_each(|kind| kind.visit(seen, all)),
        }
    }
}

/// A table of keys.
#[derive(Debug)]
pub(crate) struct Object {
    /// Where it stands, as the heading of its section: `streamSettings.wsSettings`.
    pub(crate) title: &'static str,
    /// Lines that say what it is.
    pub(crate) about: &'static [&'static str],
    pub(crate) keys: &'static [Key],
    pub(crate) others: &'static [Other],
}

/// A key that is read.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) aliases: &'static [&'static str],
    pub(crate) kind: fn() -> Kind,
    pub(crate) presence: Presence,
    /// Lines that say what it means.
    pub(crate) meaning: &'static [&'static str],
    /// The version of Sealway that first read it.
    pub(crate) since: &'static str,
}

/// What holds when a key is absent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Presence {
    /// That is an error.
    Required,
    /// The same as if this JSON stood there.
    Default(&'static str),
    /// Nothing.
    Optional,
}

/// A key that is known and not read.
#[derive(Debug)]
pub(crate) struct Other {
    pub(crate) name: &'static str,
    pub(crate) why: Why,
    pub(crate) text: &'static str,
}

/// Why a known key is not read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Why {
    /// Not supported yet. Without it connections could be read by others, be recognised, or go elsewhere.
    LaterError,
    /// Not supported yet. Without it something beside the connections is missing.
    LaterService,
    /// Not supported yet, but connections work all the same.
    LaterWarning,
    /// It has no effect, and needs none.
    Accepted,
    /// It is obsolete; the text says what to write instead.
    Gone,
}

impl Why {
    /// What is lost, for what is not supported yet.
    pub(crate) fn loses(self) -> Option<Loses> {
        match self {
            Why::LaterError => Some(Loses::Protection),
            Why::LaterService => Some(Loses::Service),
            Why::LaterWarning => Some(Loses::Ease),
            Why::Accepted | Why::Gone => None,
        }
    }
}

/// What a configuration loses where something in it is not done. What users are told to do about it follows from this alone:
/// no hint may lead to a configuration that protects less.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Loses {
    /// Who can read or recognise a connection, who may have one, or where it goes.
    Protection,
    /// Something beside the connections, such as statistics.
    Service,
    /// Speed, limits or looks.
    Ease,
}

impl Loses {
    pub(crate) fn severity(self) -> Severity {
        match self {
            Loses::Protection | Loses::Service => Severity::Error,
            Loses::Ease => Severity::Warning,
        }
    }

    pub(crate) fn hint(self) -> &'static str {
        match self {
            Loses::Protection => {
                "it decides who can read a connection or where it goes, so nothing starts before it works; keep it, and \
                 use a program that has it"
            }
            Loses::Service => "connections do not need it; take it out if you do not need it either",
            Loses::Ease => "everything else works; take it out to be rid of this line",
        }
    }
}

impl Object {
    /// Whether it has a key of this name, read or not.
    pub(crate) fn knows(&self, name: &str) -> bool {
        let others = || self.others.iter().any(|other| other.name.eq_ignore_ascii_case(name));
        self.keys.iter().any(|key| key.is_called(name)) || others()
    }

    /// This table and every one below it, each once, in the order of the reference.
    pub(crate) fn with_all_below(&'static self) -> Vec<&'static Object> {
        let mut all = Vec::new();
        self.visit(&mut BTreeSet::new(), &mut all);
        all
    }

    fn visit(&'static self, seen: &mut BTreeSet<&'static str>, all: &mut Vec<&'static Object>) {
        if !seen.insert(self.title) {
            return;
        }
        all.push(self);
        // What belongs to every protocol stands before what belongs to one.
        let kinds = self.keys.iter().map(|key| (key.kind)());
        let (one, every): (Vec<Kind>, Vec<Kind>) = kinds.partition(|kind| matches!(kind, Kind::ByProtocol(_)));
        for kind in every.into_iter().chain(one) {
            kind.visit(seen, all);
        }
    }

    /// The title of the table below `self` where a key belongs that stands in the wrong one.
    pub(crate) fn home_of(&'static self, key: &str, wrong: &Object) -> Option<&'static str> {
        let is_home = |object: &&Object| object.title != wrong.title && object.keys.iter().any(|k| k.is_called(key));
        let home = self.with_all_below().into_iter().find(is_home);
        home.map(|object| object.title)
    }
}

impl Key {
    pub(crate) fn is_called(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name) || self.aliases.iter().any(|alias| alias.eq_ignore_ascii_case(name))
    }

    pub(crate) fn rank(&self, name: &str) -> usize {
        if self.name.eq_ignore_ascii_case(name) {
            return 0;
        }
        1 + self
            .aliases
            .iter()
            .take_while(|alias| !alias.eq_ignore_ascii_case(name))
            .count()
    }
}
