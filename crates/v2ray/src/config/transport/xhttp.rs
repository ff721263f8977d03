//! XHTTP: ordinary HTTP requests that carry a byte stream.

mod words;

use super::{Carrier, Transport};
use crate::config::context::{Cx, quoted};
use crate::config::scalar::{Headers, is_header};
use crate::config::schema::Kind;
use crate::config::table::{Decode, object};
use crate::json::{Data as Json, Value};
use crate::problem::{At, Position};
use crate::xhttp::ids::{MAX_ID, TABLES};
use crate::xhttp::settings::{
    Data, DataPlace, Mode, Obfuscation, Padding, PaddingMethod, PaddingPlace, Place, Placed, Settings, Span, Table,
};
use crate::xhttp::xmux::Xmux;

/// XHTTP.
#[derive(Clone, Debug, PartialEq)]
pub struct Xhttp {
    /// What both ends agree on.
    pub settings: Settings,
    /// `downloadSettings`, until the stream that these settings are part of has read them.
    pub(crate) download: Option<UnreadDownload>,
    /// Where it is configured.
    pub at: Position,
}

/// A range of whole numbers: one, or text such as "100-1000".
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Range {
    from: i64,
    to: i64,
}

impl Range {
    /// Its numbers; none is less than 0.
    pub(crate) fn span(self) -> Span {
        let number = |n: i64| u32::try_from(n.max(0)).unwrap_or(u32::MAX);
        Span::new(number(self.from), number(self.to))
    }

    fn is_unset(self) -> bool {
        self == Range::default()
    }

    fn or(self, usual: Span) -> Span {
        if self.is_unset() { usual } else { self.span() }
    }
}

impl Decode for Range {
    fn kind() -> Kind {
        Kind::text("whole number, or two of them as in \"100-1000\"")
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        let text = match &value.data {
            Json::Number(text) => text.to_string(),
            Json::String(text) => text.trim().to_owned(),
            _ => {
                cx.wrong_type(&value, "a whole number or a range");
                return None;
            }
        };
        let number = |text: &str| text.trim().parse::<i32>().ok().map(i64::from);
        let parsed = match (number(&text), text.split_once('-')) {
            _ if text.is_empty() => Some(Range::default()),
            (Some(n), _) => Some(Range { from: n, to: n }),
            (None, Some((from, to))) => number(from).zip(number(to)).map(|(from, to)| Range {
                from: from.min(to),
                to: from.max(to),
            }),
            (None, None) => None,
        };
        if parsed.is_none() {
            let text = format!("{} is no range of whole numbers", quoted(&text));
            cx.error(value.at, text, "it is written as 30 or \"20-80\"");
        }
        parsed
    }
}

object! {
    /// How streams share connections. A number of 0 is no limit.
    pub(crate) struct XmuxSettings: "streamSettings.xhttpSettings.xmux" {
        /// Streams at a time on one connection. Not together with `maxConnections`.
        max_concurrency: At<Range> = "maxConcurrency", default "0";
        /// Connections at a time; as many are opened before one is shared. 3 if nothing in `xmux` is set.
        max_connections: At<Range> = "maxConnections", default "0";
        /// Streams on one connection in all.
        reuse_times: Range = "cMaxReuseTimes", default "0";
        /// Requests on one connection in all. 600 to 900 if nothing in `xmux` is set.
        request_times: Range = "hMaxRequestTimes", default "0";
        /// Seconds for which a connection takes new streams. 1800 to 3000 if nothing in `xmux` is set.
        reusable_secs: Range = "hMaxReusableSecs", default "0";
        /// Seconds between pings of HTTP/2. 0 stands for 45, a negative number for none.
        keep_alive: i64 = "hKeepAlivePeriod", default "0";
    }
}

impl XmuxSettings {
    fn read(self, cx: &mut Cx<'_>) -> Option<Xmux> {
        let ranges = [*self.max_concurrency, *self.max_connections, self.reuse_times];
        let more = [self.request_times, self.reusable_secs];
        if ranges.iter().chain(&more).all(|range| range.is_unset()) && self.keep_alive == 0 {
            return Some(Xmux::default());
        }
        if self.max_concurrency.to > 0 && self.max_connections.to > 0 {
            let text = "`maxConnections` and `maxConcurrency` exclude each other";
            cx.error_in("maxConnections", self.max_connections.at, text, "take one of them out");
            return None;
        }
        Some(Xmux {
            max_concurrency: self.max_concurrency.span(),
            max_connections: self.max_connections.span(),
            reuse_times: self.reuse_times.span(),
            request_times: self.request_times.span(),
            reusable_secs: self.reusable_secs.span(),
            keep_alive_secs: self.keep_alive,
        })
    }
}

/// `downloadSettings`, before they are read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct UnreadDownload(pub(crate) Value);

impl Decode for UnreadDownload {
    fn kind() -> Kind {
        Kind::text("`streamSettings` with `address` and `port` beside them")
    }

    fn decode(value: Value, _: &mut Cx<'_>) -> Option<Self> {
        Some(UnreadDownload(value))
    }
}

/// `extra`, which is read in place of what stands beside it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Extra(Value);

impl Decode for Extra {
    fn kind() -> Kind {
        Kind::text("object with keys of `xhttpSettings`")
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        if matches!(value.data, Json::Object(_)) {
            return Some(Extra(value));
        }
        cx.wrong_type(&value, "an object");
        None
    }
}

object! {
    /// XHTTP: ordinary HTTP requests that carry a byte stream.
    pub(crate) struct XhttpSettings: "streamSettings.xhttpSettings" {
        /// The host: sent by clients (else the server name of TLS, else the server's address), and required of them by servers
        /// if it is not empty.
        host: At<String> = "host", default "\"\"";
        /// The path that requests begin with. A query in it is part of a client's requests.
        path: At<String> = "path", default "\"/\"";
        /// How what goes up is carried. `auto`: a server takes every way, a client has packet-up.
        mode: At<Mode> = "mode", default "\"auto\"";
        /// More headers of requests. `Host` is not one of them.
        headers: At<Headers> = "headers", default "{}";
        /// Bytes of padding in each request and answer.
        padding_bytes: At<Range> = "xPaddingBytes", default "\"100-1000\"";
        /// Put the padding where the next four keys say.
        obfuscate: bool = "xPaddingObfsMode", default "false";
        /// Name of the padding in a query or as a cookie.
        padding_key: At<String> = "xPaddingKey", default "\"x_padding\"";
        /// Header of the padding.
        padding_header: At<String> = "xPaddingHeader", default "\"X-Padding\"";
        /// Place of the padding.
        padding_place: PaddingPlace = "xPaddingPlacement", default "\"queryInHeader\"";
        /// What the padding consists of: the letter X, or random letters and digits.
        padding_method: PaddingMethod = "xPaddingMethod", default "\"repeat-x\"";
        /// Do not say of endless requests that they are gRPC's.
        no_grpc_header: bool = "noGRPCHeader", default "false";
        /// Do not say of what comes down that it is a stream of events.
        no_sse_header: bool = "noSSEHeader", default "false";
        /// Most bytes of a numbered request. A server takes up to the end of the range.
        each_post_bytes: At<Range> = "scMaxEachPostBytes", default "1000000";
        /// Least milliseconds between two numbered requests of a client.
        min_posts_interval_ms: Range = "scMinPostsIntervalMs", default "30";
        /// Numbered requests of a session that may wait on a server for those before them.
        max_buffered_posts: i64 = "scMaxBufferedPosts", default "30";
        /// Seconds after which a server sends padding down an endless request. 0 stands for the default, a negative number for
        /// never.
        stream_up_server_secs: Range = "scStreamUpServerSecs", default "\"20-80\"";
        /// Longest head of a request that a server reads, bytes.
        max_header_bytes: At<i64> = "serverMaxHeaderBytes", default "8192";
        /// Method of requests that carry something up. `GET` goes with packet-up only.
        uplink_method: At<String> = "uplinkHTTPMethod", default "\"POST\"";
        /// Place of the session id.
        session_place: Place = "sessionIDPlacement" | "sessionPlacement", default "\"path\"";
        /// Its name there: `x_session`, or `X-Session` as a header.
        session_key: At<String> = "sessionIDKey" | "sessionKey", default "\"\"";
        /// The characters of session ids, or the name of such a list: `hex`, `base36`, `Base62` and the like. Empty: UUIDs.
        table: At<String> = "sessionIDTable", default "\"\"";
        /// Characters of a session id.
        table_length: Range = "sessionIDLength", default "0";
        /// Place of the number of a numbered request.
        seq_place: Place = "seqPlacement", default "\"path\"";
        /// Its name there: `x_seq`, or `X-Seq` as a header.
        seq_key: At<String> = "seqKey", default "\"\"";
        /// Place of the payload of numbered requests. `auto`: a client writes bodies, a server reads every place.
        data_place: At<DataPlace> = "uplinkDataPlacement", default "\"auto\"";
        /// Its name there, without the number: `X-Data`, or `x_data` as a cookie.
        data_key: At<String> = "uplinkDataKey", default "\"\"";
        /// Characters of one such header (3000 to 4000 by default) or cookie (2048 to 3072).
        data_piece: Range = "uplinkChunkSize", default "0";
        /// How streams share connections.
        xmux: XmuxSettings = "xmux", default "{}";
        /// Where a client asks for what comes down: `streamSettings` of its own with `address` and `port`. Not with stream-one.
        download: Option<UnreadDownload> = "downloadSettings";
        /// All keys but `host`, `path` and `mode`, in place of those that stand beside it.
        extra: Option<Extra> = "extra";
    }
}

impl Carrier for XhttpSettings {
    fn transport(mut self, cx: &mut Cx<'_>) -> Option<(Transport, bool)> {
        let at = self.path.at;
        let xhttp = match self.extra.take() {
            None => self.read(cx)?,
            Some(Extra(value)) => cx.within("extra", |cx| {
                let mut inner = XhttpSettings::decode(value, cx)?;
                (inner.host, inner.path, inner.mode) = (self.host, self.path, self.mode);
                inner.read(cx)
            })?,
        };
        Some((Transport::Xhttp(Box::new(Xhttp { at, ..xhttp })), false))
    }
}

impl XhttpSettings {
    fn read(self, cx: &mut Cx<'_>) -> Option<Xhttp> {
        let before = cx.errors();
        self.check(cx);
        let (path, query) = self.path.split_once('?').unwrap_or((&self.path, ""));
        let path = path.trim_end_matches('/');
        let path = match path.is_empty() || path.starts_with('/') {
            true => path.to_owned(),
            false => format!("/{path}"),
        };
        let piece = match *self.data_place {
            DataPlace::Cookie => Span::new(2048, 3072),
            _ => Span::new(3000, 4000),
        };
        let named = |key: &At<String>, usual: &str| match key.is_empty() {
            true => usual.to_owned(),
            false => key.value.clone(),
        };
        let placed = |place, key: &At<String>, usual: [&str; 2]| {
            let key = match place {
                Place::Header => named(key, usual[1]),
                _ => named(key, usual[0]),
            };
            Placed { place, key }
        };
        let settings = Settings {
            host: self.host.value.clone(),
            path,
            query: query.to_owned(),
            mode: *self.mode,
            headers: self.headers.value.clone().into_iter().collect(),
            padding: Padding {
                bytes: self.padding_bytes.or(Span::new(100, 1000)),
                obfuscation: self.obfuscate.then(|| Obfuscation {
                    place: self.padding_place,
                    key: named(&self.padding_key, "x_padding"),
                    header: named(&self.padding_header, "X-Padding"),
                    method: self.padding_method,
                }),
            },
            no_grpc_header: self.no_grpc_header,
            no_sse_header: self.no_sse_header,
            each_post_bytes: self.each_post_bytes.or(Span::just(1_000_000)),
            min_posts_interval_ms: self.min_posts_interval_ms.or(Span::just(30)),
            max_buffered_posts: match u32::try_from(self.max_buffered_posts) {
                Ok(n @ 1..) => n.min(MAX_BUFFERED),
                _ => 30,
            },
            stream_up_server_secs: match self.stream_up_server_secs {
                Range { to: ..0, .. } => None,
                secs => Some(secs.or(Span::new(20, 80))),
            },
            max_header_bytes: u32::try_from(*self.max_header_bytes)
                .ok()
                .filter(|n| *n > 0)
                .unwrap_or(8192),
            uplink_method: named(&self.uplink_method, "POST").to_ascii_uppercase(),
            session: placed(self.session_place, &self.session_key, ["x_session", "X-Session"]),
            seq: placed(self.seq_place, &self.seq_key, ["x_seq", "X-Seq"]),
            table: self.table(cx),
            data: Data {
                place: *self.data_place,
                header: named(&self.data_key, "X-Data"),
                cookie: named(&self.data_key, "x_data"),
                piece: self.data_piece.or(piece),
            },
            xmux: cx.within("xmux", |cx| self.xmux.read(cx))?,
        };
        let download = self.download;
        let at = self.path.at;
        (cx.errors() == before).then_some(Xhttp { settings, download, at })
    }
}

/// Most numbered requests of a session that may wait, whatever the user writes.
const MAX_BUFFERED: u32 = 1000;
/// Longest head that a server reads, whatever the user writes, bytes.
const MAX_HEADER_BYTES: i64 = 64 << 10;
/// Most bytes of a numbered request, whatever the user writes.
const MAX_POST: i64 = 64 << 20;
/// Most padding, bytes.
const MAX_PADDING: i64 = crate::xhttp::padding::MAX_PADDING as i64;

impl XhttpSettings {
    /// Tells of what is wrong about single keys.
    fn check(&self, cx: &mut Cx<'_>) {
        let bad = |c: &char| c.is_control() || *c == ' ' || *c == '#';
        if let Some(c) = self.path.chars().find(bad) {
            let text = format!("{} holds {c:?}, which no path may", quoted(&self.path));
            cx.error_in("path", self.path.at, text, "write it percent-encoded");
        }
        if self.host.chars().any(|c| c.is_control() || c == ' ') {
            let text = format!("{} is no Host header", quoted(&self.host));
            cx.error_in("host", self.host.at, text, "");
        }
        for (name, value) in &self.headers.value {
            if name.eq_ignore_ascii_case("host") {
                let text = "`Host` is not one of `headers`";
                cx.error_in("headers", self.headers.at, text, "write it as `host`");
            } else if !is_header(name, value) {
                let text = format!("{} is no header a request could have", quoted(name));
                cx.error_in("headers", self.headers.at, text, "");
            }
        }
        let padding = &self.padding_bytes;
        if !padding.is_unset() && (padding.from <= 0 || padding.to > MAX_PADDING) {
            let text = format!("padding has 1 to {MAX_PADDING} bytes; it cannot be left out");
            cx.error_in("xPaddingBytes", padding.at, text, "100-1000 is usual");
        }
        let post = &self.each_post_bytes;
        if !post.is_unset() && (post.from <= 0 || post.to > MAX_POST) {
            let text = format!("a request carries 1 to {MAX_POST} bytes");
            cx.error_in("scMaxEachPostBytes", post.at, text, "1000000 is usual");
        }
        if *self.max_header_bytes > MAX_HEADER_BYTES {
            let text = format!("heads have at most {MAX_HEADER_BYTES} bytes");
            cx.error_in("serverMaxHeaderBytes", self.max_header_bytes.at, text, "8192 is usual");
        }
        for (key, text) in [
            ("xPaddingKey", &self.padding_key),
            ("xPaddingHeader", &self.padding_header),
            ("sessionIDKey", &self.session_key),
            ("seqKey", &self.seq_key),
            ("uplinkDataKey", &self.data_key),
            ("uplinkHTTPMethod", &self.uplink_method),
        ] {
            if !text.is_empty() && !is_header(text, "") {
                let told = format!("{} is no name that a request could have", quoted(text));
                cx.error_in(key, text.at, told, "letters, digits, - and _ are safe");
            }
        }
        let packets = matches!(*self.mode, Mode::Auto | Mode::PacketUp);
        if self.uplink_method.eq_ignore_ascii_case("GET") && !packets {
            let text = "requests with the method GET carry nothing up but numbered";
            cx.error_in(
                "uplinkHTTPMethod",
                self.uplink_method.at,
                text,
                "write packet-up as the `mode`",
            );
        }
        if matches!(*self.data_place, DataPlace::Header | DataPlace::Cookie) && !packets {
            let text = "only numbered requests carry payload in their heads";
            cx.error_in(
                "uplinkDataPlacement",
                self.data_place.at,
                text,
                "write packet-up as the `mode`",
            );
        }
        if *self.mode == Mode::StreamOne
            && let Some(download) = &self.download
        {
            let text = "stream-one has both directions in one request";
            let hint = "write stream-up or packet-up as the `mode`";
            cx.error_in("downloadSettings", download.0.at, text, hint);
        }
    }

    /// What session ids look like.
    fn table(&self, cx: &mut Cx<'_>) -> Option<Table> {
        if self.table.is_empty() {
            return None;
        }
        let known = TABLES.iter().find(|(name, _)| *name == self.table.value);
        let alphabet = known.map_or(self.table.as_str(), |(_, alphabet)| alphabet);
        let length = self.table_length.or(Span::just(36));
        let mut letters: Vec<char> = alphabet.chars().collect();
        letters.sort_unstable();
        letters.dedup();
        let plain = letters.iter().all(|c| c.is_ascii_alphanumeric() || "-_.~".contains(*c));
        let bits = (letters.len() as f64).log2() * f64::from(length.from);
        let wrong = match () {
            () if !plain => "holds more than letters, digits and -_.~",
            () if bits < 31.0 => "gives so few ids that they could be guessed",
            () if length.to as usize > MAX_ID - 2 => "gives ids that are too long",
            () => {
                let alphabet = alphabet.to_owned();
                return Some(Table { alphabet, length });
            }
        };
        let text = format!("{} with this `sessionIDLength` {wrong}", quoted(&self.table));
        cx.error_in(
            "sessionIDTable",
            self.table.at,
            text,
            "\"hex\" with a length of 32 is safe",
        );
        None
    }
}
