//! What both ends of a stream agree on beforehand.

use super::xmux::Xmux;

pub use super::span::Span;

/// How what goes up is carried.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Mode {
    /// A server takes all of them; a client has packet-up.
    #[default]
    Auto,
    /// Many numbered requests.
    PacketUp,
    /// One request without an end.
    StreamUp,
    /// The request whose answer is what comes down.
    StreamOne,
}

/// Where a session id or a sequence number stands.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Place {
    /// Behind the path.
    #[default]
    Path,
    /// In the query of the target.
    Query,
    /// In a header.
    Header,
    /// In a cookie.
    Cookie,
}

/// A place, and the name it has there.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Placed {
    /// The place.
    pub place: Place,
    /// The name. It has no meaning in the path.
    pub key: String,
}

/// Where padding stands, if not where it always does.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum PaddingPlace {
    /// In the query of a URL that is the value of a header.
    #[default]
    QueryInHeader,
    /// As the value of a header.
    Header,
    /// As a cookie.
    Cookie,
    /// In the query of the target.
    Query,
}

/// What padding consists of.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum PaddingMethod {
    /// The letter X.
    #[default]
    Repeat,
    /// Random letters and digits. Their length is what HPACK makes of them.
    Tokenish,
}

/// Padding that looks as the user likes.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Obfuscation {
    /// Where it stands.
    pub place: PaddingPlace,
    /// Its name in a query or as a cookie.
    pub key: String,
    /// The header.
    pub header: String,
    /// What it consists of.
    pub method: PaddingMethod,
}

/// Padding, which every request must have.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Padding {
    /// Its length, bytes.
    pub bytes: Span,
    /// `None`: `x_padding` in the query of `Referer`, and `X-Padding` in answers.
    pub obfuscation: Option<Obfuscation>,
}

/// Where the payload of numbered requests stands.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum DataPlace {
    /// A client writes bodies; a server reads headers, cookies and the body, in this order.
    #[default]
    Auto,
    /// In the body.
    Body,
    /// In headers with numbers.
    Header,
    /// In cookies with numbers.
    Cookie,
}

/// Where the payload of numbered requests stands, and how it is cut.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Data {
    /// The place.
    pub place: DataPlace,
    /// Name of the headers, without the number.
    pub header: String,
    /// Name of the cookies, without the number.
    pub cookie: String,
    /// Characters of base64 in one header or cookie.
    pub piece: Span,
}

/// The alphabet and length of session ids. Without one they are UUIDs.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Table {
    /// ASCII characters.
    pub alphabet: String,
    /// Characters of an id.
    pub length: Span,
}

/// What both ends of a stream agree on beforehand, and how each of them behaves.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Settings {
    /// The host. A client sends it, a server requires it. Empty: where was dialled; any.
    pub host: String,
    /// The path. It begins with a slash and has neither a query nor a slash at its end.
    pub path: String,
    /// The query that a client's requests have, without `?`.
    pub query: String,
    /// How what goes up is carried.
    pub mode: Mode,
    /// More headers of requests.
    pub headers: Vec<(String, String)>,
    /// Padding.
    pub padding: Padding,
    /// A client does not say that an endless body is gRPC's.
    pub no_grpc_header: bool,
    /// A server does not say that what comes down are events.
    pub no_sse_header: bool,
    /// Most bytes of one numbered request. A client picks one of the range, a server takes as many as its end says.
    pub each_post_bytes: Span,
    /// Least time between two numbered requests, milliseconds.
    pub min_posts_interval_ms: Span,
    /// Numbered requests that may wait for those before them.
    pub max_buffered_posts: u32,
    /// A server sends padding down an endless request so often, seconds. `None`: never.
    pub stream_up_server_secs: Option<Span>,
    /// Longest head of a request that a server reads, bytes.
    pub max_header_bytes: u32,
    /// Method of requests that carry something up.
    pub uplink_method: String,
    /// Where the session id stands.
    pub session: Placed,
    /// Where the sequence number stands.
    pub seq: Placed,
    /// What session ids look like.
    pub table: Option<Table>,
    /// Where the payload of numbered requests stands.
    pub data: Data,
    /// When connections are shared, and when they are replaced.
    pub xmux: Xmux,
}

impl Default for Settings {
    fn default() -> Self {
        let placed = || Placed::default();
        Settings {
            host: String::new(),
            path: String::new(),
            query: String::new(),
            mode: Mode::Auto,
            headers: Vec::new(),
            padding: Padding {
                bytes: Span::new(100, 1000),
                obfuscation: None,
            },
            no_grpc_header: false,
            no_sse_header: false,
            each_post_bytes: Span::just(1_000_000),
            min_posts_interval_ms: Span::just(30),
            max_buffered_posts: 30,
            stream_up_server_secs: Some(Span::new(20, 80)),
            max_header_bytes: 8192,
            uplink_method: "POST".into(),
            session: placed(),
            seq: placed(),
            table: None,
            data: Data {
                place: DataPlace::Auto,
                header: "X-Data".into(),
                cookie: "x_data".into(),
                piece: Span::new(3000, 4000),
            },
            xmux: Xmux::default(),
        }
    }
}
