//! How an object of a file is read by its table of keys.
//!
//! [`object!`] declares a struct together with its table: each field's doc comment is its line in the reference. A
//! default is written as JSON and read by the same decoder as a value in a file, so what the reference says is what
//! happens. [`words!`] does the same for enumerations.

use super::context::{Cx, quoted};
use super::schema::{Key, Kind, Loses, Object, Other, Presence, Why};
use crate::json::{self, Data, Member, Value};
use crate::problem::Position;

/// A type that a value of a file can be read into.
pub(crate) trait Decode: Sized {
    /// What the reference calls the type.
    fn kind() -> Kind;

    /// Reads the value. `None` means that the problem has been reported.
    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self>;
}

/// A value that is made of what the keys of an object say.
pub(crate) trait FromKeys: Sized {
    /// The object, as [`object!`] declares it.
    type Keys: Decode;

    /// Makes it of the keys of an object at `at`. `None` means that the problem has been reported.
    fn from_keys(keys: Self::Keys, at: Position, cx: &mut Cx<'_>) -> Option<Self>;
}

impl<T: FromKeys> Decode for T {
    fn kind() -> Kind {
        T::Keys::kind()
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        let at = value.at;
        T::from_keys(T::Keys::decode(value, cx)?, at, cx)
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
                    Some(other) => cx.within(&member.key, |cx| report(other, &member, cx)),
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
                let mut value = json::read(json.as_bytes(), self.at.file).ok()?.value;
                value.at = self.at;
                cx.within(key.name, |cx| T::decode(value, cx)).map(Some)
            }
            Presence::Optional => Some(None),
        }
    }
}

/// Tells of a key that is known and not read, unless it is switched off.
fn report(other: &Other, member: &Member, cx: &mut Cx<'_>) {
    let off = match &member.value.data {
        Data::Null | Data::Bool(false) => true,
        Data::String(text) => text.is_empty(),
        Data::Array(values) => values.is_empty(),
        Data::Object(members) => members.is_empty(),
        Data::Number(text) => text.as_ref() == "0",
        Data::Bool(true) => false,
    };
    match other.why {
        // Switched off, it asks for nothing.
        Why::LaterError | Why::LaterService | Why::LaterWarning | Why::Gone if off => {}
        Why::LaterError => cx.later(Loses::Protection, member.at, other.text),
        Why::LaterService => cx.later(Loses::Service, member.at, other.text),
        Why::LaterWarning => cx.later(Loses::Ease, member.at, other.text),
        Why::Accepted => {}
        Why::Gone => cx.error(member.at, format!("`{}` is obsolete", member.key), other.text),
    }
}

/// Declares a struct and the table of keys it is read by. `Debug` is written by hand where it would show a secret.
macro_rules! object {
    (
        $(#[doc = $about:literal])*
        $vis:vis struct $Name:ident : $title:literal $(, $Debug:ident by hand)? {
            $(
                $(#[doc = $doc:literal])*
                $field:ident : $Ty:ty = $key:literal $(| $alias:literal)* $(, $presence:ident $($json:literal)?)? ;
            )*
        }
        $( other { $( $why:ident $other:literal : $text:literal ; )* } )?
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, PartialEq)]
        $vis struct $Name {
            $( $(#[doc = $doc])* pub $field: $Ty, )*
        }

        $crate::config::table::object!(@debug $($Debug)? $Name { $($field)* });

        impl $Name {
            pub(crate) const TABLE: &'static $crate::config::schema::Object = &$crate::config::schema::Object {
                title: $title,
                about: &[$($about),*],
                keys: &[$(
                    $crate::config::schema::Key {
                        name: $key,
                        aliases: &[$($alias),*],
                        kind: <$Ty as $crate::config::table::Decode>::kind,
                        presence: $crate::config::table::object!(@presence $($presence $($json)?)?),
                        meaning: &[$($doc),*],
                        since: "0.1.0",
                    },
                )*],
                others: &[$($(
                    $crate::config::schema::Other {
                        name: $other,
                        why: $crate::config::schema::Why::$why,
                        text: $text,
                    },
                )*)?],
            };
        }

        impl $crate::config::table::Decode for $Name {
            fn kind() -> $crate::config::schema::Kind {
                $crate::config::schema::Kind::Object(Self::TABLE)
            }

            fn decode(
                value: $crate::json::Value,
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
    (@debug Debug $Name:ident { $($field:ident)* }) => {};
    (@debug $Name:ident { $($field:ident)* }) => {
        impl std::fmt::Debug for $Name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($Name))$(.field(stringify!($field), &self.$field))*.finish()
            }
        }
    };
    (@presence default $default:literal) => { $crate::config::schema::Presence::Default($default) };
    (@presence required) => { $crate::config::schema::Presence::Required };
    (@presence) => { $crate::config::schema::Presence::Optional };
    (@value $field:ident default $default:literal) => { $field?? };
    (@value $field:ident required) => { $field?? };
    (@value $field:ident) => { $field?.unwrap_or_default() };
}
pub(crate) use object;

/// Declares an enumeration and the words for it, which compare without regard to case; or, after `for`, the words for one that is
/// declared elsewhere.
macro_rules! words {
    (
        for $Name:ty {
            $( $Variant:ident = $word:literal $(| $alias:literal)* ; )*
        }
        $( other { $( $why:ident $other:literal : $text:literal ; )* } )?
    ) => {
        impl $Name {
            const WORDS: &'static [(Self, &'static [&'static str])] = &[
                $( (Self::$Variant, &[$word $(, $alias)*]), )*
            ];

            const OTHERS: &'static [$crate::config::schema::Other] = &[$($(
                $crate::config::schema::Other {
                    name: $other,
                    why: $crate::config::schema::Why::$why,
                    text: $text,
                },
            )*)?];
        }

        impl $crate::config::table::Decode for $Name {
            fn kind() -> $crate::config::schema::Kind {
                $crate::config::table::words_kind(Self::WORDS, Self::OTHERS)
            }

            fn decode(
                value: $crate::json::Value,
                cx: &mut $crate::config::context::Cx<'_>,
            ) -> Option<Self> {
                $crate::config::table::decode_word(value, Self::WORDS, Self::OTHERS, cx)
            }
        }
    };
    (
        $(#[doc = $about:literal])*
        $vis:vis enum $Name:ident {
            $(
                $(#[doc = $doc:literal])*
                $Variant:ident = $word:literal $(| $alias:literal)* ;
            )*
        }
        $( other { $($others:tt)* } )?
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
        $vis enum $Name {
            $( $(#[doc = $doc])* $Variant, )*
        }

        impl $Name {
            /// The word for it.
            #[allow(dead_code, reason = "not every enumeration is written back")]
            $vis fn as_str(self) -> &'static str {
                match self { $( Self::$Variant => $word, )* }
            }
        }

        $crate::config::table::words! {
            for $Name { $( $Variant = $word $(| $alias)*; )* }
            $( other { $($others)* } )?
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
    cx.error(value.at, format!("{} is not known here", quoted(text)), hint);
    None
}
