//! XHTTP in share links: `path`, `host`, `mode`, and all else as JSON in `extra`.

use serde_json::{Map, Value, json};

use crate::config::transport::Xhttp;
use crate::link::Link;
use crate::xhttp::settings::{
    DataPlace, Mode, Obfuscation, PaddingMethod, PaddingPlace, Place, Placed, Settings, Span,
};

/// `xhttpSettings` of a link whose path and host stand in `settings` already.
pub(super) fn of_link(mut settings: Map<String, Value>, link: &Link) -> Map<String, Value> {
    if !link.parameter("mode").is_empty() {
        settings.insert("mode".into(), link.parameter("mode").into());
    }
    let extra = link.parameter("extra");
    if !extra.is_empty() {
        // What is no JSON is refused as what it is: a text.
        let value = serde_json::from_str(extra).unwrap_or_else(|_| extra.into());
        settings.insert("extra".into(), value);
    }
    settings
}

/// Puts the settings into a link.
pub(super) fn into_link(link: &mut Link, xhttp: &Xhttp) {
    let s = &xhttp.settings;
    link.network = "xhttp".into();
    let mut path = s.path.clone();
    if path.is_empty() {
        path.push('/');
    }
    if !s.query.is_empty() {
        path = format!("{path}?{}", s.query);
    }
    if path != "/" {
        link.set_parameter("path", path);
    }
    link.set_parameter("host", s.host.clone());
    link.set_parameter(
        "mode",
        if s.mode == Mode::Auto {
            String::new()
        } else {
            mode(s.mode).into()
        },
    );
    let extra = extra(s);
    if !extra.is_empty() {
        link.set_parameter("extra", Value::Object(extra).to_string());
    }
}

fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Auto => "auto",
        Mode::PacketUp => "packet-up",
        Mode::StreamUp => "stream-up",
        Mode::StreamOne => "stream-one",
    }
}

fn span(span: Span) -> Value {
    if span.from == span.to {
        span.from.into()
    } else {
        format!("{}-{}", span.from, span.to).into()
    }
}

/// The keys that are not as they are without being set.
fn extra(s: &Settings) -> Map<String, Value> {
    let usual = Settings::default();
    let mut extra = Map::new();
    let mut put = |differs: bool, key: &str, value: Value| {
        if differs {
            extra.insert(key.to_owned(), value);
        }
    };
    let headers: Map<String, Value> = s
        .headers
        .iter()
        .map(|(name, value)| (name.clone(), json!(value)))
        .collect();
    put(!s.headers.is_empty(), "headers", headers.into());
    put(
        s.padding.bytes != usual.padding.bytes,
        "xPaddingBytes",
        span(s.padding.bytes),
    );
    if let Some(Obfuscation {
        place,
        key,
        header,
        method,
    }) = &s.padding.obfuscation
    {
        put(true, "xPaddingObfsMode", true.into());
        put(true, "xPaddingKey", json!(key));
        put(true, "xPaddingHeader", json!(header));
        let place = match place {
            PaddingPlace::QueryInHeader => "queryInHeader",
            PaddingPlace::Header => "header",
            PaddingPlace::Cookie => "cookie",
            PaddingPlace::Query => "query",
        };
        put(true, "xPaddingPlacement", place.into());
        put(*method == PaddingMethod::Tokenish, "xPaddingMethod", "tokenish".into());
    }
    put(s.no_grpc_header, "noGRPCHeader", true.into());
    put(s.no_sse_header, "noSSEHeader", true.into());
    put(
        s.each_post_bytes != usual.each_post_bytes,
        "scMaxEachPostBytes",
        span(s.each_post_bytes),
    );
    let interval = s.min_posts_interval_ms;
    put(
        interval != usual.min_posts_interval_ms,
        "scMinPostsIntervalMs",
        span(interval),
    );
    put(
        s.uplink_method != usual.uplink_method,
        "uplinkHTTPMethod",
        json!(s.uplink_method),
    );
    for (placed, names) in [
        (&s.session, ["sessionIDPlacement", "sessionIDKey"]),
        (&s.seq, ["seqPlacement", "seqKey"]),
    ] {
        let Placed { place, key } = placed;
        let word = match place {
            Place::Path => continue,
            Place::Query => "query",
            Place::Header => "header",
            Place::Cookie => "cookie",
        };
        put(true, names[0], word.into());
        put(true, names[1], json!(key));
    }
    if let Some(table) = &s.table {
        put(true, "sessionIDTable", json!(table.alphabet));
        put(true, "sessionIDLength", span(table.length));
    }
    let (place, key) = match s.data.place {
        DataPlace::Auto => ("auto", ""),
        DataPlace::Body => ("body", ""),
        DataPlace::Header => ("header", s.data.header.as_str()),
        DataPlace::Cookie => ("cookie", s.data.cookie.as_str()),
    };
    put(s.data.place != DataPlace::Auto, "uplinkDataPlacement", place.into());
    put(!key.is_empty(), "uplinkDataKey", key.into());
    put(!key.is_empty(), "uplinkChunkSize", span(s.data.piece));
    let x = &s.xmux;
    if *x != usual.xmux {
        let xmux = json!({
            "maxConcurrency": span(x.max_concurrency),
            "maxConnections": span(x.max_connections),
            "cMaxReuseTimes": span(x.reuse_times),
            "hMaxRequestTimes": span(x.request_times),
            "hMaxReusableSecs": span(x.reusable_secs),
            "hKeepAlivePeriod": x.keep_alive_secs,
        });
        put(true, "xmux", xmux);
    }
    extra
}
