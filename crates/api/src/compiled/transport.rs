//! Transports.

use serde_json::{Value, json};

use super::json::Keys;
use super::{Refused, open, unsupported};
use crate::proto::xray::transport::internet::headers::http::{self, Header};
use crate::proto::xray::transport::internet::splithttp::{self, RangeConfig, XmuxConfig};
use crate::proto::xray::transport::internet::{StreamConfig, grpc, httpupgrade, tcp, websocket};
use crate::proto::{TypedMessage, canonical};

/// Reads `downloadSettings`.
pub(super) type Download = fn(&StreamConfig) -> Result<Value, Refused>;

/// The key of a transport in `streamSettings`, and its value. `download`: how XHTTP has its `downloadSettings` read, if it may have any.
pub(super) fn read(settings: &TypedMessage, download: Option<Download>) -> Result<(&'static str, Value), Refused> {
    let mut keys = Keys::default();
    let key = match &*canonical(&settings.r#type) {
        "xray.transport.internet.tcp.Config" => {
            let config: tcp::Config = open(settings)?;
            keys.flag("acceptProxyProtocol", config.accept_proxy_protocol);
            if let Some(header) = &config.header_settings {
                keys.put("header", raw_header(header)?);
            }
            "rawSettings"
        }
        "xray.transport.internet.websocket.Config" => {
            let config: websocket::Config = open(settings)?;
            keys.text("path", &early(&config.path, config.ed))
                .text("host", &config.host)
                .put("headers", json!(config.header))
                .flag("acceptProxyProtocol", config.accept_proxy_protocol)
                .number("heartbeatPeriod", config.heartbeat_period);
            "wsSettings"
        }
        "xray.transport.internet.httpupgrade.Config" => {
            let config: httpupgrade::Config = open(settings)?;
            keys.text("path", &early(&config.path, config.ed))
                .text("host", &config.host)
                .put("headers", json!(config.header))
                .flag("acceptProxyProtocol", config.accept_proxy_protocol);
            "httpupgradeSettings"
        }
        "xray.transport.internet.grpc.encoding.Config" => {
            let config: grpc::encoding::Config = open(settings)?;
            keys.text("serviceName", &config.service_name)
                .text("authority", &config.authority)
                .flag("multiMode", config.multi_mode)
                .number("idle_timeout", config.idle_timeout)
                .number("health_check_timeout", config.health_check_timeout)
                .flag("permit_without_stream", config.permit_without_stream)
                .number("initial_windows_size", config.initial_windows_size)
                .text("user_agent", &config.user_agent);
            "grpcSettings"
        }
        "xray.transport.internet.splithttp.Config" => {
            xhttp(&open(settings)?, download, &mut keys)?;
            "xhttpSettings"
        }
        other => return unsupported(format!("the transport {other}")),
    };
    Ok((key, keys.done()))
}

/// A path with what says how much early data goes into the request.
fn early(path: &str, most: u32) -> String {
    let path = if path.is_empty() { "/" } else { path };
    match most {
        0 => path.to_owned(),
        most if path.contains('?') => format!("{path}&ed={most}"),
        most => format!("{path}?ed={most}"),
    }
}

fn raw_header(header: &TypedMessage) -> Result<Value, Refused> {
    match &*canonical(&header.r#type) {
        "" | "xray.transport.internet.headers.noop.ConnectionConfig" => return Ok(json!({ "type": "none" })),
        "xray.transport.internet.headers.http.Config" => {}
        other => return unsupported(format!("the header {other}")),
    }
    let config: http::Config = open(header)?;
    let mut keys = Keys::default();
    keys.put("type", "http");
    if let Some(request) = config.request {
        let mut of_request = Keys::default();
        of_request
            .text(
                "version",
                request.version.map(|v| v.value).as_deref().unwrap_or_default(),
            )
            .text("method", request.method.map(|m| m.value).as_deref().unwrap_or_default())
            .list("path", &request.uri)
            .put("headers", headers(&request.header));
        keys.put("request", of_request.done());
    }
    if let Some(response) = config.response {
        let status = response.status.unwrap_or_default();
        let mut of_response = Keys::default();
        of_response
            .text(
                "version",
                response.version.map(|v| v.value).as_deref().unwrap_or_default(),
            )
            .text("status", &status.code)
            .text("reason", &status.reason)
            .put("headers", headers(&response.header));
        keys.put("response", of_response.done());
    }
    Ok(keys.done())
}

fn headers(list: &[Header]) -> Value {
    let mut keys = Keys::default();
    for header in list {
        keys.put(&header.name, header.value.clone());
    }
    keys.done()
}

fn range(keys: &mut Keys, key: &str, range: Option<&RangeConfig>) {
    if let Some(range) = range {
        keys.span(key, range.from, range.to);
    }
}

fn xhttp(config: &splithttp::Config, download: Option<Download>, keys: &mut Keys) -> Result<(), Refused> {
    for (key, text) in [
        ("host", &config.host),
        ("path", &config.path),
        ("mode", &config.mode),
        ("xPaddingKey", &config.x_padding_key),
        ("xPaddingHeader", &config.x_padding_header),
        ("xPaddingPlacement", &config.x_padding_placement),
        ("xPaddingMethod", &config.x_padding_method),
        ("uplinkHTTPMethod", &config.uplink_http_method),
        ("sessionPlacement", &config.session_placement),
        ("sessionKey", &config.session_key),
        ("seqPlacement", &config.seq_placement),
        ("seqKey", &config.seq_key),
        ("uplinkDataPlacement", &config.uplink_data_placement),
        ("uplinkDataKey", &config.uplink_data_key),
        ("sessionIDTable", &config.session_id_table),
    ] {
        keys.text(key, text);
    }
    for (key, span) in [
        ("xPaddingBytes", &config.x_padding_bytes),
        ("scMaxEachPostBytes", &config.sc_max_each_post_bytes),
        ("scMinPostsIntervalMs", &config.sc_min_posts_interval_ms),
        ("scStreamUpServerSecs", &config.sc_stream_up_server_secs),
        ("uplinkChunkSize", &config.uplink_chunk_size),
        ("sessionIDLength", &config.session_id_length),
    ] {
        range(keys, key, span.as_ref());
    }
    keys.put("headers", json!(config.headers))
        .flag("noGRPCHeader", config.no_grpc_header)
        .flag("noSSEHeader", config.no_sse_header)
        .flag("xPaddingObfsMode", config.x_padding_obfs_mode)
        .number("scMaxBufferedPosts", config.sc_max_buffered_posts)
        .number("serverMaxHeaderBytes", config.server_max_header_bytes);
    if let Some(xmux) = &config.xmux {
        keys.put("xmux", shared(xmux));
    }
    match (&config.download_settings, download) {
        (Some(settings), Some(read)) => {
            keys.put("downloadSettings", read(settings)?);
        }
        (Some(_), None) => return unsupported("downloadSettings inside downloadSettings"),
        (None, _) => {}
    }
    Ok(())
}

fn shared(xmux: &XmuxConfig) -> Value {
    let mut keys = Keys::default();
    for (key, span) in [
        ("maxConcurrency", &xmux.max_concurrency),
        ("maxConnections", &xmux.max_connections),
        ("cMaxReuseTimes", &xmux.c_max_reuse_times),
        ("hMaxRequestTimes", &xmux.h_max_request_times),
        ("hMaxReusableSecs", &xmux.h_max_reusable_secs),
    ] {
        range(&mut keys, key, span.as_ref());
    }
    keys.number("hKeepAlivePeriod", xmux.h_keep_alive_period);
    keys.done()
}
