//! Words of `xhttpSettings`.

use crate::config::context::Cx;
use crate::config::schema::Kind;
use crate::config::table::{Decode, decode_word, words_kind};
use crate::json::Value;
use crate::xhttp::settings::{DataPlace, Mode, PaddingMethod, PaddingPlace, Place};

macro_rules! read {
    ($($Type:ident { $($Variant:ident = $word:literal $(| $alias:literal)*;)* })*) => {$(
        impl $Type {
            const WORDS: &'static [(Self, &'static [&'static str])] = &[$( (Self::$Variant, &[$word $(, $alias)*]), )*];
        }

        impl Decode for $Type {
            fn kind() -> Kind {
                words_kind(Self::WORDS, &[])
            }

            fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
                decode_word(value, Self::WORDS, &[], cx)
            }
        }
    )*};
}

read! {
    Mode {
        Auto = "auto" | "";
        PacketUp = "packet-up";
        StreamUp = "stream-up";
        StreamOne = "stream-one";
    }
    Place {
        Path = "path" | "";
        Query = "query";
        Header = "header";
        Cookie = "cookie";
    }
    PaddingPlace {
        QueryInHeader = "queryInHeader" | "";
        Header = "header";
        Cookie = "cookie";
        Query = "query";
    }
    PaddingMethod {
        Repeat = "repeat-x" | "";
        Tokenish = "tokenish";
    }
    DataPlace {
        Auto = "auto" | "";
        Body = "body";
        Header = "header";
        Cookie = "cookie";
    }
}
