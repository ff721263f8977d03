//! The tables of keys that reading, advice on misspelt keys and the reference all come from.
//!
//! [`object!`] declares a struct together with its table: each field's doc comment is its line in the reference. A
//! default is written as JSON and read by the same decoder as a value in a file, so what the reference says is what
//! happens. [`words!`] does the same for enumerations.

use super::context::Cx;
use super::json::{Data, Member, Value};
use super::problem::{Position, Severity};

/// A type that a value of a file can be read into.
pub(crate) trait Decode: Sized {
    /// What the reference calls the type.
    fn kind() -> Kind;

    /// Reads the value. `None` means that the problem has been reported.
    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self>;
}

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
}

impl Kind {
    pub(crate) fn text(text: &str) -> Self {
        Kind::Text(text.to_owned())
    }

    /// What to write, as a hint.
    fn wanted(&self) -> String {
        match self {
            Kind::Text(text) => format!("it is written as {}", text.replace('`', "\"")),
            Kind::Words(words, _) => format!("write one of {}", words.join(", ")),
            Kind::List(_) => "it is a list".to_owned(),
            Kind::Map(_) | Kind::Object(_) => "it is an object".to_owned(),
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

/// The members of an object, matched to its table.
pub(crate) struct Fields {
    pub(crate) at: Position,
    members: Vec<Member>,
}

impl Fields {
    /// Sorts the members of an object and reports those that will not be read.
    pub(crate) fn open(value: Value, table: &'static Object, cx: &mut Cx<'_>) -> Option<Self> {
        let at = value.at;
        let Data::Object(all) = value.data else {
            cx.wrong_type(&value, "an object");
            return None;
        };
        let mut members: Vec<Member> = Vec::new();
        for mut member in all {
            let key = table.keys.iter().find(|key| key.is_called(&member.key));
            let Some(key) = key else {
                match table.others.iter().find(|o| o.name.eq_ignore_ascii_case(&member.key)) {
                    Some(other) => cx.within(&member.key, |cx| other.report(&member, cx)),
                    None => cx.unknown_key(&member, table),
                }
                continue;
            };
            // To Go a null is the same as no key.
            if member.value.is_null() {
                continue;
            }
            let earlier = members.iter().position(|m| key.is_called(&m.key));
            if let Some(i) = earlier {
                let (old, new) = (&members[i], &member);
                let same = old.key.eq_ignore_ascii_case(&new.key);
                // Of two names of one key the first of the table counts, of equal names the later.
                let keep_old = !same && key.rank(&old.key) < key.rank(&new.key);
                let (kept, dropped) = if keep_old { (old, new) } else { (new, old) };
                let text = if same {
                    format!(
                        "`{}` stands here again on line {}, and the last one counts",
                        kept.key, kept.at.line
                    )
                } else {
                    format!(
                        "`{}` on line {} is the same key and counts instead",
                        kept.key, kept.at.line
                    )
                };
                let (name, place) = (dropped.key.clone(), dropped.at);
                cx.within(&name, |cx| cx.warn(place, text, "remove one of them"));
                if !keep_old {
                    std::mem::swap(&mut members[i], &mut member);
                }
                continue;
            }
            members.push(member);
        }
        Some(Fields { at, members })
    }

    /// Reads the value of a key of the table.
    pub(crate) fn take<T: Decode>(&mut self, key: &'static Key, cx: &mut Cx<'_>) -> Option<Option<T>> {
        if let Some(i) = self.members.iter().position(|m| key.is_called(&m.key)) {
            let member = self.members.swap_remove(i);
            // Forms that write configurations leave it so. Where there is a default, the type says what it means.
            let empty = matches!(&member.value.data, Data::String(text) if text.is_empty());
            if empty && key.presence == Presence::Optional {
                return Some(None);
            }
            return cx.within(&member.key, |cx| T::decode(member.value, cx)).map(Some);
        }
        match key.presence {
            Presence::Required => {
                cx.error(self.at, format!("`{}` is missing", key.name), (key.kind)().wanted());
                None
            }
            Presence::Default(json) => {
                let mut value = super::json::read(json.as_bytes(), self.at.file).ok()?.value;
                value.at = self.at;
                cx.within(key.name, |cx| T::decode(value, cx)).map(Some)
            }
            Presence::Optional => Some(None),
        }
    }
}

impl Key {
    pub(crate) fn is_called(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name) || self.aliases.iter().any(|alias| alias.eq_ignore_ascii_case(name))
    }

    fn rank(&self, name: &str) -> usize {
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

impl Other {
    fn report(&self, member: &Member, cx: &mut Cx<'_>) {
        let off = match &member.value.data {
            Data::Null | Data::Bool(false) => true,
            Data::String(text) => text.is_empty(),
            Data::Array(values) => values.is_empty(),
            Data::Object(members) => members.is_empty(),
            Data::Number(text) => text.as_ref() == "0",
            Data::Bool(true) => false,
        };
        match self.why {
            // Switched off, it asks for nothing.
            Why::LaterError | Why::LaterService | Why::LaterWarning if off => {}
            Why::LaterError => cx.later(Loses::Protection, member.at, self.text),
            Why::LaterService => cx.later(Loses::Service, member.at, self.text),
            Why::LaterWarning => cx.later(Loses::Ease, member.at, self.text),
            Why::Accepted => {}
            Why::Gone => cx.error(member.at, format!("`{}` is obsolete", member.key), self.text),
        }
    }
}

/// Declares a struct and the table of keys it is read by.
macro_rules! object {
    (
        $(#[doc = $about:literal])*
        $vis:vis struct $Name:ident : $title:literal {
            $(
                $(#[doc = $doc:literal])*
                $field:ident : $Ty:ty = $key:literal $(| $alias:literal)* $(, $presence:ident $($json:literal)?)? ;
            )*
        }
        $( other { $( $why:ident $other:literal : $text:literal ; )* } )?
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        $vis struct $Name {
            $( $(#[doc = $doc])* pub $field: $Ty, )*
        }

        impl $Name {
            pub(crate) const TABLE: &'static $crate::config::table::Object = &$crate::config::table::Object {
                title: $title,
                about: &[$($about),*],
                keys: &[$(
                    $crate::config::table::Key {
                        name: $key,
                        aliases: &[$($alias),*],
                        kind: <$Ty as $crate::config::table::Decode>::kind,
                        presence: $crate::config::table::object!(@presence $($presence $($json)?)?),
                        meaning: &[$($doc),*],
                        since: "0.1.0",
                    },
                )*],
                others: &[$($(
                    $crate::config::table::Other {
                        name: $other,
                        why: $crate::config::table::Why::$why,
                        text: $text,
                    },
                )*)?],
            };
        }

        impl $crate::config::table::Decode for $Name {
            fn kind() -> $crate::config::table::Kind {
                $crate::config::table::Kind::Object(Self::TABLE)
            }

            fn decode(
                value: $crate::config::json::Value,
                cx: &mut $crate::config::context::Cx<'_>,
            ) -> Option<Self> {
                let mut fields = $crate::config::table::Fields::open(value, Self::TABLE, cx)?;
                let mut keys = Self::TABLE.keys.iter();
                // An object without keys uses neither.
                let _ = (&mut fields, &mut keys);
                // Every field is read before the first failure ends it, so that all problems are found at once.
                $( let $field = keys.next().and_then(|key| fields.take::<$Ty>(key, cx)); )*
                Some(Self { $( $field: $crate::config::table::object!(@value $field $($presence $($json)?)?), )* })
            }
        }
    };
    (@presence default $default:literal) => { $crate::config::table::Presence::Default($default) };
    (@presence required) => { $crate::config::table::Presence::Required };
    (@presence) => { $crate::config::table::Presence::Optional };
    (@value $field:ident default $default:literal) => { $field?? };
    (@value $field:ident required) => { $field?? };
    (@value $field:ident) => { $field?.unwrap_or_default() };
}
pub(crate) use object;

/// Declares an enumeration and the words for it, which compare without regard to case.
macro_rules! words {
    (
        $(#[doc = $about:literal])*
        $vis:vis enum $Name:ident {
            $(
                $(#[doc = $doc:literal])*
                $Variant:ident = $word:literal $(| $alias:literal)* ;
            )*
        }
        $( other { $( $why:ident $other:literal : $text:literal ; )* } )?
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
        #[non_exhaustive]
        $vis enum $Name {
            $( $(#[doc = $doc])* $Variant, )*
        }

        impl $Name {
            const WORDS: &'static [(Self, &'static [&'static str])] = &[
                $( (Self::$Variant, &[$word $(, $alias)*]), )*
            ];

            const OTHERS: &'static [$crate::config::table::Other] = &[$($(
                $crate::config::table::Other {
                    name: $other,
                    why: $crate::config::table::Why::$why,
                    text: $text,
                },
            )*)?];

            /// The word for it.
            #[allow(dead_code, reason = "not every enumeration is written back")]
            $vis fn as_str(self) -> &'static str {
                match self { $( Self::$Variant => $word, )* }
            }
        }

        impl $crate::config::table::Decode for $Name {
            fn kind() -> $crate::config::table::Kind {
                $crate::config::table::words_kind(Self::WORDS, Self::OTHERS)
            }

            fn decode(
                value: $crate::config::json::Value,
                cx: &mut $crate::config::context::Cx<'_>,
            ) -> Option<Self> {
                $crate::config::table::decode_word(value, Self::WORDS, Self::OTHERS, cx)
            }
        }
    };
}
pub(crate) use words;

/// The kind of an enumeration.
pub(crate) fn words_kind<T>(words: &[(T, &[&'static str])], others: &'static [Other]) -> Kind {
    let names = words.iter().flat_map(|(_, names)| names.iter().copied());
    Kind::Words(names.filter(|name| !name.is_empty()).collect(), others)
}

/// Reads a word of an enumeration.
pub(crate) fn decode_word<T: Copy>(
    value: Value,
    words: &'static [(T, &[&str])],
    others: &'static [Other],
    cx: &mut Cx<'_>,
) -> Option<T> {
    let Data::String(text) = &value.data else {
        cx.wrong_type(&value, "a string");
        return None;
    };
    let text = text.trim();
    let found = words
        .iter()
        .find(|(_, names)| names.iter().any(|name| name.eq_ignore_ascii_case(text)));
    if let Some((word, _)) = found {
        return Some(*word);
    }
    if let Some(other) = others.iter().find(|o| o.name.eq_ignore_ascii_case(text)) {
        match other.why.loses() {
            Some(loses) => cx.later(loses, value.at, other.text),
            None => cx.error(value.at, format!("\"{}\" is obsolete", other.name), other.text),
        }
        return None;
    }
    let names: Vec<&str> = words
        .iter()
        .flat_map(|(_, names)| names.iter().copied())
        .filter(|n| !n.is_empty())
        .collect();
    let hint = match cx.nearest(text, &names) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => format!("write one of {}", names.join(", ")),
    };
    cx.error(
        value.at,
        format!("{} is not known here", super::context::quoted(text)),
        hint,
    );
    None
}
