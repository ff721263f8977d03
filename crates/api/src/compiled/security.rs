//! TLS and REALITY.

use sealway_v2ray::text::hex;
use serde_json::Value;

use super::json::Keys;
use super::{Refused, open, unsupported};
use crate::proto::canonical;
use crate::proto::xray::transport::internet::StreamConfig;
use crate::proto::xray::transport::internet::reality::{self, LimitFallback};
use crate::proto::xray::transport::internet::tls::{self, certificate::Usage};

const TLS: &str = "xray.transport.internet.tls.Config";
const REALITY: &str = "xray.transport.internet.reality.Config";

/// `security` and its settings.
pub(super) fn read(stream: &StreamConfig, keys: &mut Keys) -> Result<(), Refused> {
    let kind = canonical(&stream.security_type);
    let settings = stream
        .security_settings
        .iter()
        .find(|one| canonical(&one.r#type) == kind);
    match (&*kind, settings) {
        ("" | "none", _) => {}
        (TLS, Some(settings)) => {
            keys.put("security", "tls").put("tlsSettings", tls(&open(settings)?)?);
        }
        (REALITY, Some(settings)) => {
            keys.put("security", "reality")
                .put("realitySettings", reality(&open(settings)?)?);
        }
        (TLS | REALITY, None) => return Err(Refused::Broken(format!("the settings of {kind} are missing"))),
        _ => return unsupported(format!("the security {kind}")),
    }
    Ok(())
}

fn tls(config: &tls::Config) -> Result<Value, Refused> {
    let ech =
        !config.ech_server_keys.is_empty() || !config.ech_config_list.is_empty() || !config.ech_force_query.is_empty();
    if ech || config.ech_socket_settings.is_some() {
        return unsupported("encrypted client hellos (ECH) of xray.transport.internet.tls.Config");
    }
    let certificates = config
        .certificate
        .iter()
        .map(certificate)
        .collect::<Result<Vec<_>, _>>()?;
    let pinned: Vec<_> = config
        .pinned_peer_cert_sha256
        .iter()
        .map(|digest| hex(digest))
        .collect();
    let mut keys = Keys::default();
    keys.text("serverName", &config.server_name)
        .list("alpn", &config.next_protocol)
        .text("minVersion", &config.min_version)
        .text("maxVersion", &config.max_version)
        .text("cipherSuites", &config.cipher_suites)
        .list("curvePreferences", &config.curve_preferences)
        .list("certificates", &certificates)
        .flag("rejectUnknownSni", config.reject_unknown_sni)
        .flag("enableSessionResumption", config.enable_session_resumption)
        .flag("disableSystemRoot", config.disable_system_root)
        .text("fingerprint", &config.fingerprint)
        .list("pinnedPeerCertSha256", &pinned)
        .list("verifyPeerCertByName", &config.verify_peer_cert_by_name)
        .text("masterKeyLog", &config.master_key_log)
        .flag("allowInsecure", config.allow_insecure);
    Ok(keys.done())
}

fn certificate(one: &tls::Certificate) -> Result<Value, Refused> {
    let usage = match Usage::try_from(one.usage) {
        Ok(Usage::Encipherment) => "encipherment",
        Ok(Usage::AuthorityVerify) => "verify",
        Ok(Usage::AuthorityIssue) => "issue",
        Err(_) => return unsupported(format!("certificates with the usage {}", one.usage)),
    };
    let mut keys = Keys::default();
    keys.put("usage", usage)
        .number("ocspStapling", one.ocsp_stapling)
        .flag("oneTimeLoading", one.one_time_loading);
    // A file that is there is read again when it is renewed; what came of it is sent along.
    let inline = one.certificate_path.is_empty() || one.one_time_loading && !one.certificate.is_empty();
    if inline {
        keys.list("certificate", &lines(&one.certificate)?)
            .list("key", &lines(&one.key)?);
    } else {
        keys.text("certificateFile", &one.certificate_path)
            .text("keyFile", &one.key_path);
    }
    Ok(keys.done())
}

fn lines(pem: &[u8]) -> Result<Vec<&str>, Refused> {
    let text = std::str::from_utf8(pem).map_err(|_| Refused::Broken("a certificate that is not PEM".to_owned()))?;
    Ok(text.lines().collect())
}

fn reality(config: &reality::Config) -> Result<Value, Refused> {
    let short_ids: Vec<_> = config.short_ids.iter().map(|id| hex(id)).collect();
    let mut keys = Keys::default();
    keys.flag("show", config.show)
        .text("target", &config.dest)
        .text("type", &config.r#type)
        .number("xver", config.xver)
        .list("serverNames", &config.server_names)
        .text("privateKey", &base64(&config.private_key))
        .text("minClientVer", &version(&config.min_client_ver))
        .text("maxClientVer", &version(&config.max_client_ver))
        .number("maxTimeDiff", config.max_time_diff)
        .list("shortIds", &short_ids)
        .text("mldsa65Seed", &base64(&config.mldsa65_seed))
        .text("fingerprint", &config.fingerprint)
        .text("serverName", &config.server_name)
        .text("publicKey", &base64(&config.public_key))
        .text("shortId", &hex(&config.short_id))
        .text("mldsa65Verify", &base64(&config.mldsa65_verify))
        .text("spiderX", &config.spider_x)
        .text("masterKeyLog", &config.master_key_log);
    if let Some(limit) = &config.limit_fallback_upload {
        keys.put("limitFallbackUpload", throttle(limit));
    }
    if let Some(limit) = &config.limit_fallback_download {
        keys.put("limitFallbackDownload", throttle(limit));
    }
    Ok(keys.done())
}

fn throttle(limit: &LimitFallback) -> Value {
    let mut keys = Keys::default();
    keys.number("afterBytes", limit.after_bytes)
        .number("bytesPerSec", limit.bytes_per_sec)
        .number("burstBytesPerSec", limit.burst_bytes_per_sec);
    keys.done()
}

fn version(bytes: &[u8]) -> String {
    let parts: Vec<_> = bytes.iter().map(u8::to_string).collect();
    parts.join(".")
}

/// Base64 for URLs without padding.
fn base64(bytes: &[u8]) -> String {
    use ::base64::Engine as _;
    ::base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes)
}
