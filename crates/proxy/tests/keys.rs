//! Every key that is read does something, or says that it does not.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use sealway_proxy::settings::*;
use sealway_v2ray::config::{File, Options, Problem, keys, load};
use sealway_v2ray::shadowsocks::{Key, KeyChain, Method};

/// What becomes of a key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Becomes {
    /// Another value makes another server, and nothing is said about it.
    Applied,
    /// It is named, with its place, as something that is not there or has no effect.
    Named,
    /// It is for whoever reads the file, or says what another key shows already.
    Read,
}
use Becomes::*;

/// The object, a configuration with `$` where its members go, and for each of its keys members without it (or with one
/// value) and with it (or another).
type Group = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str, &'static str, Becomes)],
);

const ID: &str = "b831381d-6324-4d53-ad4f-8cda48b30811";
const OTHER_ID: &str = "450bae28-b9da-67d0-16bc-4918dc8d79b5";
const OUT: &str = r#""outbounds":[{"protocol":"freedom"}]"#;
const PEM: &str = r#"{"certificateFile":"c","keyFile":"k"}"#;
const HASH: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

#[rustfmt::skip]
const GROUPS: &[Group] = &[
    ("the top level", "{$}", &[
        ("env", r#""env":{"P":"1"},"inbounds":[{"port":"env:P","protocol":"socks"}],OUT"#, r#""env":{"P":"2"},"inbounds":[{"port":"env:P","protocol":"socks"}],OUT"#, Applied),
        ("log", r#"OUT"#, r#"OUT,"log":{}"#, Applied),
        ("dns", r#"OUT"#, r#"OUT,"dns":{"queryStrategy":"UseIPv4"}"#, Applied),
        ("fakedns", r#"OUT"#, r#"OUT,"fakedns":{"poolSize":7}"#, Applied),
        ("routing", r#"OUT"#, r#"OUT,"routing":{"domainStrategy":"IPOnDemand"}"#, Applied),
        ("policy", r#"OUT"#, r#"OUT,"policy":{"levels":{"0":{"connIdle":7}}}"#, Applied),
        ("inbounds", r#"OUT,"inbounds":[{"port":1,"protocol":"socks"}]"#, r#"OUT,"inbounds":[{"port":2,"protocol":"socks"}]"#, Applied),
        ("outbounds", r#"OUT"#, r#""outbounds":[{"protocol":"blackhole"}]"#, Applied),
        ("stats", r#"OUT,"policy":{"system":{"statsInboundUplink":true}}"#, r#"OUT,"policy":{"system":{"statsInboundUplink":true}},"stats":{}"#, Applied),
        ("observatory", r#"OUT"#, r#"OUT,"observatory":{}"#, Applied),
        ("burstObservatory", r#"OUT"#, r#"OUT,"burstObservatory":{}"#, Applied)]),
    ("log", r#"{OUT,"log":{$}}"#, &[
        ("access", "", r#""access":"/a""#, Applied),
        ("error", "", r#""error":"/e""#, Applied),
        ("loglevel", "", r#""loglevel":"debug""#, Applied),
        ("maskAddress", "", r#""maskAddress":"half""#, Applied)]),
    ("dns", r#"{OUT,"dns":{$}}"#, &[
        ("servers", "", r#""servers":["9.9.9.9"]"#, Applied),
        ("hosts", "", r#""hosts":{"a":"192.0.2.1"}"#, Applied),
        ("queryStrategy", "", r#""queryStrategy":"UseIPv6""#, Applied),
        ("clientIp", r#""servers":["9.9.9.9"]"#, r#""servers":["9.9.9.9"],"clientIp":"192.0.2.1""#, Applied),
        ("tag", r#""servers":["9.9.9.9"]"#, r#""servers":["9.9.9.9"],"tag":"t""#, Applied),
        ("disableCache", r#""servers":["9.9.9.9"]"#, r#""servers":["9.9.9.9"],"disableCache":true"#, Applied),
        ("serveStale", r#""servers":["9.9.9.9"]"#, r#""servers":["9.9.9.9"],"serveStale":true"#, Applied),
        ("serveExpiredTTL", r#""servers":["9.9.9.9"]"#, r#""servers":["9.9.9.9"],"serveExpiredTTL":9"#, Applied),
        ("disableFallback", r#""servers":["9.9.9.9"]"#, r#""servers":["9.9.9.9"],"disableFallback":true"#, Applied),
        ("disableFallbackIfMatch", r#""servers":["9.9.9.9"]"#, r#""servers":["9.9.9.9"],"disableFallbackIfMatch":true"#, Applied),
        ("enableParallelQuery", r#""servers":["9.9.9.9"]"#, r#""servers":["9.9.9.9"],"enableParallelQuery":true"#, Applied),
        ("useSystemHosts", r#""servers":["9.9.9.9"]"#, r#""servers":["9.9.9.9"],"useSystemHosts":true"#, Applied),
        ("cacheStrategy", r#""servers":["9.9.9.9"]"#, r#""servers":["9.9.9.9"],"cacheStrategy":"disabled""#, Applied),
        ("fallbackStrategy", r#""servers":["9.9.9.9"]"#, r#""servers":["9.9.9.9"],"fallbackStrategy":"disabled""#, Applied)]),
    ("dns.servers[]", r#"{OUT,"dns":{"servers":[{$}]}}"#, &[
        ("address", r#""address":"9.9.9.9""#, r#""address":"9.9.9.8""#, Applied),
        ("port", r#""address":"9.9.9.9""#, r#""address":"9.9.9.9","port":5353"#, Applied),
        ("domains", r#""address":"9.9.9.9""#, r#""address":"9.9.9.9","domains":["a"]"#, Applied),
        ("expectedIPs", r#""address":"9.9.9.9""#, r#""address":"9.9.9.9","expectedIPs":["192.0.2.1"]"#, Applied),
        ("unexpectedIPs", r#""address":"9.9.9.9""#, r#""address":"9.9.9.9","unexpectedIPs":["192.0.2.1"]"#, Applied),
        ("skipFallback", r#""address":"9.9.9.9""#, r#""address":"9.9.9.9","skipFallback":true"#, Applied),
        ("queryStrategy", r#""address":"9.9.9.9""#, r#""address":"9.9.9.9","queryStrategy":"UseIPv4""#, Applied),
        ("clientIp", r#""address":"9.9.9.9""#, r#""address":"9.9.9.9","clientIp":"192.0.2.1""#, Applied),
        ("tag", r#""address":"9.9.9.9""#, r#""address":"9.9.9.9","tag":"t""#, Applied),
        ("timeoutMs", r#""address":"9.9.9.9""#, r#""address":"9.9.9.9","timeoutMs":9"#, Applied),
        ("disableCache", r#""address":"9.9.9.9""#, r#""address":"9.9.9.9","disableCache":true"#, Applied),
        ("serveStale", r#""address":"9.9.9.9""#, r#""address":"9.9.9.9","serveStale":true"#, Applied),
        ("serveExpiredTTL", r#""address":"9.9.9.9""#, r#""address":"9.9.9.9","serveExpiredTTL":9"#, Applied),
        ("finalQuery", r#""address":"9.9.9.9""#, r#""address":"9.9.9.9","finalQuery":true"#, Applied)]),
    ("fakedns", r#"{OUT,"fakedns":{$}}"#, &[
        ("ipPool", r#""poolSize":7"#, r#""poolSize":7,"ipPool":"198.20.0.0/16""#, Applied),
        ("poolSize", r#""ipPool":"198.20.0.0/16""#, r#""ipPool":"198.20.0.0/16","poolSize":7"#, Applied)]),
    ("dns settings", r#"{"outbounds":[{"protocol":"dns","settings":{$}}]}"#, &[
        ("rewriteNetwork", "", r#""rewriteNetwork":"tcp""#, Applied),
        ("rewriteAddress", "", r#""rewriteAddress":"9.9.9.9""#, Applied),
        ("rewritePort", "", r#""rewritePort":54"#, Applied),
        ("userLevel", "", r#""userLevel":7"#, Named),
        ("nonIPQuery", "", r#""nonIPQuery":"drop""#, Applied),
        ("blockTypes", "", r#""blockTypes":[65]"#, Applied),
        ("rules", "", r#""rules":[{"action":"drop"}]"#, Applied)]),
    ("dns settings.rules[]", r#"{"outbounds":[{"protocol":"dns","settings":{"rules":[{$}]}}]}"#, &[
        ("action", r#""action":"drop""#, r#""action":"direct""#, Applied),
        ("qType", r#""action":"drop""#, r#""action":"drop","qType":1"#, Applied),
        ("domain", r#""action":"drop""#, r#""action":"drop","domain":["a"]"#, Applied),
        ("rCode", r#""action":"return""#, r#""action":"return","rCode":3"#, Applied)]),
    ("routing", r#"{"outbounds":[{"protocol":"freedom","tag":"d"}],"routing":{$}}"#, &[
        ("domainStrategy", "", r#""domainStrategy":"IPIfNonMatch""#, Applied),
        ("balancers", "", r#""balancers":[{"tag":"b","selector":"d"}]"#, Applied),
        ("rules", "", r#""rules":[{"port":1,"outboundTag":"d"}]"#, Applied)]),
    ("routing.balancers[]", r#"{"observatory":{"subjectSelector":["d"]},"outbounds":[{"protocol":"freedom","tag":"d"}],"routing":{"balancers":[{$}]}}"#, &[
        ("tag", r#""tag":"a","selector":"d""#, r#""tag":"b","selector":"d""#, Applied),
        ("selector", r#""tag":"a","selector":"d""#, r#""tag":"a","selector":["d","e"]"#, Applied),
        ("strategy", r#""tag":"a","selector":"d""#, r#""tag":"a","selector":"d","strategy":{"type":"leastPing"}"#, Applied),
        ("fallbackTag", r#""tag":"a","selector":"d""#, r#""tag":"a","selector":"d","fallbackTag":"d""#, Applied)]),
    ("routing.balancers[].strategy", r#"{"observatory":{"subjectSelector":["d"]},"outbounds":[{"protocol":"freedom","tag":"d"}],"routing":{"balancers":[{"tag":"a","selector":"d","strategy":{$}}]}}"#, &[
        ("type", "", r#""type":"leastLoad""#, Applied),
        ("settings", r#""type":"leastLoad""#, r#""type":"leastLoad","settings":{"expected":2}"#, Applied)]),
    ("routing.balancers[].strategy.settings", r#"{"observatory":{"subjectSelector":["d"]},"outbounds":[{"protocol":"freedom","tag":"d"}],"routing":{"balancers":[{"tag":"a","selector":"d","strategy":{"type":"leastLoad","settings":{$}}}]}}"#, &[
        ("expected", "", r#""expected":2"#, Applied),
        ("maxRTT", "", r#""maxRTT":"1s""#, Applied),
        ("tolerance", "", r#""tolerance":0.5"#, Applied),
        ("baselines", "", r#""baselines":["1s"]"#, Applied),
        ("costs", "", r#""costs":[{"match":"d","value":2}]"#, Applied)]),
    ("routing.balancers[].strategy.settings.costs[]", r#"{"observatory":{"subjectSelector":["d"]},"outbounds":[{"protocol":"freedom","tag":"d"}],"routing":{"balancers":[{"tag":"a","selector":"d","strategy":{"type":"leastLoad","settings":{"costs":[{$}]}}}]}}"#, &[
        ("regexp", r#""match":"d""#, r#""match":"d","regexp":true"#, Applied),
        ("match", r#""match":"d""#, r#""match":"e""#, Applied),
        ("value", r#""match":"d""#, r#""match":"d","value":1.5"#, Applied)]),
    ("observatory", r#"{"outbounds":[{"protocol":"freedom","tag":"d"}],"observatory":{$}}"#, &[
        ("subjectSelector", "", r#""subjectSelector":["d"]"#, Applied),
        ("probeURL", "", r#""probeURL":"http://192.0.2.1/""#, Applied),
        ("probeInterval", "", r#""probeInterval":"1m""#, Applied),
        ("enableConcurrency", "", r#""enableConcurrency":true"#, Applied)]),
    ("burstObservatory", r#"{"outbounds":[{"protocol":"freedom","tag":"d"}],"burstObservatory":{$}}"#, &[
        ("subjectSelector", "", r#""subjectSelector":["d"]"#, Applied),
        ("pingConfig", "", r#""pingConfig":{"sampling":3}"#, Applied)]),
    ("burstObservatory.pingConfig", r#"{"outbounds":[{"protocol":"freedom","tag":"d"}],"burstObservatory":{"pingConfig":{$}}}"#, &[
        ("destination", "", r#""destination":"http://192.0.2.1/""#, Applied),
        ("connectivity", "", r#""connectivity":"http://192.0.2.1/""#, Applied),
        ("interval", "", r#""interval":"5m""#, Applied),
        ("sampling", "", r#""sampling":3"#, Applied),
        ("timeout", "", r#""timeout":"1s""#, Applied),
        ("httpMethod", "", r#""httpMethod":"GET""#, Applied)]),
    ("routing.rules[]", r#"{"inbounds":[{"tag":"i","port":1,"protocol":"socks"}],"outbounds":[{"protocol":"freedom","tag":"d"},{"protocol":"freedom","tag":"e"}],"routing":{"balancers":[{"tag":"b","selector":"d"}],"rules":[{$}]}}"#, &[
        ("ruleTag", r#""port":1,"outboundTag":"d""#, r#""port":1,"outboundTag":"d","ruleTag":"r""#, Read),
        ("domain", r#""port":1,"outboundTag":"d""#, r#""port":1,"outboundTag":"d","domain":"a""#, Applied),
        ("ip", r#""port":1,"outboundTag":"d""#, r#""port":1,"outboundTag":"d","ip":"192.0.2.1""#, Applied),
        ("port", r#""port":1,"outboundTag":"d""#, r#""port":2,"outboundTag":"d""#, Applied),
        ("network", r#""port":1,"outboundTag":"d""#, r#""port":1,"outboundTag":"d","network":"udp""#, Applied),
        ("source", r#""port":1,"outboundTag":"d""#, r#""port":1,"outboundTag":"d","source":"192.0.2.1""#, Applied),
        ("sourcePort", r#""port":1,"outboundTag":"d""#, r#""port":1,"outboundTag":"d","sourcePort":7"#, Applied),
        ("localIP", r#""port":1,"outboundTag":"d""#, r#""port":1,"outboundTag":"d","localIP":"192.0.2.1""#, Applied),
        ("localPort", r#""port":1,"outboundTag":"d""#, r#""port":1,"outboundTag":"d","localPort":7"#, Applied),
        ("user", r#""port":1,"outboundTag":"d""#, r#""port":1,"outboundTag":"d","user":"a@b""#, Applied),
        ("inboundTag", r#""port":1,"outboundTag":"d""#, r#""port":1,"outboundTag":"d","inboundTag":"i""#, Applied),
        ("protocol", r#""port":1,"outboundTag":"d""#, r#""port":1,"outboundTag":"d","protocol":"tls""#, Applied),
        ("attrs", r#""port":1,"outboundTag":"d""#, r#""port":1,"outboundTag":"d","attrs":{":path":"a"}"#, Applied),
        ("vlessRoute", r#""port":1,"outboundTag":"d""#, r#""port":1,"outboundTag":"d","vlessRoute":"7""#, Applied),
        ("process", r#""port":1,"outboundTag":"d""#, r#""port":1,"outboundTag":"d","process":"curl""#, Applied),
        ("balancerTag", r#""port":1,"outboundTag":"d""#, r#""port":1,"balancerTag":"b""#, Applied),
        ("localOS", r#""port":1,"outboundTag":"d""#, r#""port":1,"outboundTag":"d","localOS":"linux""#, Applied),
        ("outboundTag", r#""port":1,"outboundTag":"d""#, r#""port":1,"outboundTag":"e""#, Applied)]),
    ("policy", r#"{OUT,"stats":{},"policy":{$}}"#, &[
        ("levels", "", r#""levels":{"0":{"connIdle":7}}"#, Applied),
        ("system", "", r#""system":{"statsInboundUplink":true}"#, Applied)]),
    ("policy.levels", r#"{OUT,"stats":{},"policy":{"levels":{"0":{$}}}}"#, &[
        ("handshake", "", r#""handshake":7"#, Applied),
        ("connIdle", "", r#""connIdle":7"#, Applied),
        ("uplinkOnly", "", r#""uplinkOnly":7"#, Applied),
        ("downlinkOnly", "", r#""downlinkOnly":7"#, Applied),
        ("statsUserUplink", "", r#""statsUserUplink":true"#, Applied),
        ("statsUserDownlink", "", r#""statsUserDownlink":true"#, Applied)]),
    ("policy.system", r#"{OUT,"stats":{},"policy":{"system":{$}}}"#, &[
        ("statsInboundUplink", "", r#""statsInboundUplink":true"#, Applied),
        ("statsInboundDownlink", "", r#""statsInboundDownlink":true"#, Applied),
        ("statsOutboundUplink", "", r#""statsOutboundUplink":true"#, Applied),
        ("statsOutboundDownlink", "", r#""statsOutboundDownlink":true"#, Applied)]),
    ("inbounds[]", r#"{OUT,"inbounds":[{$}]}"#, &[
        ("tag", r#""port":1,"protocol":"socks""#, r#""port":1,"protocol":"socks","tag":"t""#, Applied),
        ("listen", r#""port":1,"protocol":"socks""#, r#""port":1,"protocol":"socks","listen":"127.0.0.1""#, Applied),
        ("port", r#""port":1,"protocol":"socks""#, r#""port":2,"protocol":"socks""#, Applied),
        ("protocol", r#""port":1,"protocol":"socks""#, r#""port":1,"protocol":"http""#, Applied),
        ("settings", r#""port":1,"protocol":"socks""#, r#""port":1,"protocol":"socks","settings":{"udp":true}"#, Applied),
        ("streamSettings", r#""port":1,"protocol":"socks""#, r#""port":1,"protocol":"socks","streamSettings":{"network":"ws"}"#, Applied),
        ("sniffing", r#""port":1,"protocol":"socks""#, r#""port":1,"protocol":"socks","sniffing":{"enabled":true}"#, Applied),
        ("domainOverride", r#""port":1,"protocol":"socks""#, r#""port":1,"protocol":"socks","domainOverride":["tls"]"#, Applied),
        ("allocate", r#""port":1,"protocol":"socks""#, r#""port":1,"protocol":"socks","allocate":{"strategy":"random"}"#, Named)]),
    ("inbounds[].sniffing", r#"{OUT,"inbounds":[{"port":1,"protocol":"socks","sniffing":{$}}]}"#, &[
        ("enabled", "", r#""enabled":true"#, Applied),
        ("destOverride", r#""enabled":true"#, r#""enabled":true,"destOverride":["tls"]"#, Applied),
        ("domainsExcluded", r#""enabled":true"#, r#""enabled":true,"domainsExcluded":["a"]"#, Applied),
        ("ipsExcluded", r#""enabled":true"#, r#""enabled":true,"ipsExcluded":["192.0.2.1"]"#, Applied),
        ("metadataOnly", r#""enabled":true"#, r#""enabled":true,"metadataOnly":true"#, Applied),
        ("routeOnly", r#""enabled":true"#, r#""enabled":true,"routeOnly":true"#, Applied),
        ("serverFirstPorts", r#""enabled":true"#, r#""enabled":true,"serverFirstPorts":"22""#, Applied)]),
    ("inbounds[].allocate", r#"{OUT,"inbounds":[{"port":1,"protocol":"socks","allocate":{$}}]}"#, &[
        ("strategy", "", r#""strategy":"random""#, Named)]),
    ("streamSettings", r#"{OUT,"inbounds":[{"port":1,"protocol":"socks","streamSettings":{$}}]}"#, &[
        ("network", "", r#""network":"ws""#, Applied),
        ("security", r#""tlsSettings":{"certificates":[PEM]}"#, r#""security":"tls","tlsSettings":{"certificates":[PEM]}"#, Applied),
        ("tlsSettings", r#""security":"tls","tlsSettings":{"certificates":[PEM]}"#, r#""security":"tls","tlsSettings":{"certificates":[PEM],"alpn":["h3"]}"#, Applied),
        ("rawSettings", "", r#""rawSettings":{"acceptProxyProtocol":true}"#, Applied),
        ("wsSettings", r#""network":"ws""#, r#""network":"ws","wsSettings":{"path":"/p"}"#, Applied),
        ("httpupgradeSettings", r#""network":"httpupgrade""#, r#""network":"httpupgrade","httpupgradeSettings":{"path":"/p"}"#, Applied),
        ("sockopt", "", r#""sockopt":{"mark":1}"#, Applied)]),
    ("streamSettings.rawSettings", r#"{OUT,"inbounds":[{"port":1,"protocol":"socks","streamSettings":{"rawSettings":{$}}}]}"#, &[
        ("acceptProxyProtocol", "", r#""acceptProxyProtocol":true"#, Applied),
        ("header", "", r#""header":{"type":"http"}"#, Applied)]),
    ("rawSettings.header", r#"{OUT,"inbounds":[{"port":1,"protocol":"socks","streamSettings":{"rawSettings":{"header":{$}}}}]}"#, &[
        ("type", "", r#""type":"http""#, Applied)]),
    ("rawSettings.header", r#"{OUT,"inbounds":[{"port":1,"protocol":"socks","streamSettings":{"rawSettings":{"header":{"type":"http"$}}}}]}"#, &[
        ("request", "", r#","request":{"path":"/q"}"#, Applied),
        ("response", "", r#","response":{"reason":"No"}"#, Applied)]),
    ("rawSettings.header.request", r#"{OUT,"inbounds":[{"port":1,"protocol":"socks","streamSettings":{"rawSettings":{"header":{"type":"http","request":{$}}}}}]}"#, &[
        ("version", "", r#""version":"1.0""#, Applied),
        ("method", "", r#""method":"POST""#, Applied),
        ("path", "", r#""path":"/q""#, Applied),
        ("headers", "", r#""headers":{"a":"b"}"#, Applied)]),
    ("rawSettings.header.response", r#"{OUT,"inbounds":[{"port":1,"protocol":"socks","streamSettings":{"rawSettings":{"header":{"type":"http","response":{$}}}}}]}"#, &[
        ("version", "", r#""version":"1.0""#, Applied),
        ("status", "", r#""status":"404""#, Applied),
        ("reason", "", r#""reason":"No""#, Applied),
        ("headers", "", r#""headers":{"a":"b"}"#, Applied)]),
    ("streamSettings", r#"{OUT,"inbounds":[{"port":1,"protocol":"socks","streamSettings":{$}}]}"#, &[
        ("grpcSettings", r#""network":"grpc""#, r#""network":"grpc","grpcSettings":{"serviceName":"s"}"#, Applied),
        ("xhttpSettings", r#""network":"xhttp""#, r#""network":"xhttp","xhttpSettings":{"path":"/p"}"#, Applied),
        ("finalmask", "", r#""finalmask":{"tcp":[{"type":"sudoku"}]}"#, Named)]),
    ("streamSettings.finalmask", r#"{OUT,"inbounds":[{"port":1,"protocol":"socks","streamSettings":{"finalmask":{$}}}]}"#, &[
        ("tcp", "", r#""tcp":[{"type":"sudoku"}]"#, Named),
        ("udp", "", r#""udp":[{"type":"salamander"}]"#, Named)]),
    ("streamSettings.grpcSettings", r#"{"outbounds":[{"protocol":"vless","settings":{"vnext":[{"address":"127.0.0.1","port":1,"users":[{"id":"ID","encryption":"none"}]}]},"streamSettings":{"network":"grpc","grpcSettings":{$}}}]}"#, &[
        ("serviceName", "", r#""serviceName":"s""#, Applied),
        ("authority", "", r#""authority":"a""#, Applied),
        ("multiMode", "", r#""multiMode":true"#, Applied),
        ("idle_timeout", "", r#""idle_timeout":60"#, Applied),
        ("health_check_timeout", "", r#""health_check_timeout":30"#, Applied),
        ("permit_without_stream", "", r#""permit_without_stream":true"#, Applied),
        ("initial_windows_size", "", r#""initial_windows_size":70000"#, Applied),
        ("user_agent", "", r#""user_agent":"a""#, Applied),
        ("parseXForwardedFor", "", r#""parseXForwardedFor":true"#, Applied)]),
    ("streamSettings.xhttpSettings", r#"{"outbounds":[{"protocol":"vless","settings":{"vnext":[{"address":"127.0.0.1","port":1,"users":[{"id":"ID","encryption":"none"}]}]},"streamSettings":{"network":"xhttp","security":"tls","xhttpSettings":{$}}}]}"#, &[
        ("host", "", r#""host":"a""#, Applied),
        ("path", "", r#""path":"/p""#, Applied),
        ("mode", "", r#""mode":"packet-up""#, Applied),
        ("headers", "", r#""headers":{"a":"b"}"#, Applied),
        ("xPaddingBytes", "", r#""xPaddingBytes":"50-60""#, Applied),
        ("xPaddingObfsMode", "", r#""xPaddingObfsMode":true"#, Applied),
        ("noGRPCHeader", "", r#""noGRPCHeader":true"#, Applied),
        ("noSSEHeader", "", r#""noSSEHeader":true"#, Applied),
        ("scMaxEachPostBytes", "", r#""scMaxEachPostBytes":9000"#, Applied),
        ("scMinPostsIntervalMs", "", r#""scMinPostsIntervalMs":7"#, Applied),
        ("scMaxBufferedPosts", "", r#""scMaxBufferedPosts":7"#, Applied),
        ("scStreamUpServerSecs", "", r#""scStreamUpServerSecs":7"#, Applied),
        ("serverMaxHeaderBytes", "", r#""serverMaxHeaderBytes":9000"#, Applied),
        ("xmux", "", r#""xmux":{"maxConnections":3}"#, Applied),
        ("downloadSettings", "", r#""downloadSettings":{"address":"a"}"#, Named),
        ("extra", "", r#""extra":{"noSSEHeader":true}"#, Applied),
        ("xPaddingKey", r#""xPaddingObfsMode":true"#, r#""xPaddingObfsMode":true,"xPaddingKey":"k""#, Applied),
        ("xPaddingHeader", r#""xPaddingObfsMode":true"#, r#""xPaddingObfsMode":true,"xPaddingHeader":"k""#, Applied),
        ("xPaddingPlacement", r#""xPaddingObfsMode":true"#, r#""xPaddingObfsMode":true,"xPaddingPlacement":"header""#, Applied),
        ("xPaddingMethod", r#""xPaddingObfsMode":true"#, r#""xPaddingObfsMode":true,"xPaddingMethod":"tokenish""#, Applied),
        ("uplinkHTTPMethod", r#""mode":"packet-up""#, r#""mode":"packet-up","uplinkHTTPMethod":"PUT""#, Applied),
        ("sessionIDPlacement", r#""mode":"packet-up""#, r#""mode":"packet-up","sessionIDPlacement":"query""#, Applied),
        ("sessionIDTable", r#""mode":"packet-up""#, r#""mode":"packet-up","sessionIDTable":"base62""#, Applied),
        ("seqPlacement", r#""mode":"packet-up""#, r#""mode":"packet-up","seqPlacement":"query""#, Applied),
        ("uplinkDataPlacement", r#""mode":"packet-up""#, r#""mode":"packet-up","uplinkDataPlacement":"header""#, Applied),
        ("sessionIDKey", r#""mode":"packet-up","sessionIDPlacement":"query""#, r#""mode":"packet-up","sessionIDPlacement":"query","sessionIDKey":"k""#, Applied),
        ("sessionIDLength", r#""mode":"packet-up","sessionIDTable":"base62""#, r#""mode":"packet-up","sessionIDTable":"base62","sessionIDLength":"20-30""#, Applied),
        ("seqKey", r#""mode":"packet-up","seqPlacement":"query""#, r#""mode":"packet-up","seqPlacement":"query","seqKey":"k""#, Applied),
        ("uplinkDataKey", r#""mode":"packet-up","uplinkDataPlacement":"header""#, r#""mode":"packet-up","uplinkDataPlacement":"header","uplinkDataKey":"k""#, Applied),
        ("uplinkChunkSize", r#""mode":"packet-up","uplinkDataPlacement":"header""#, r#""mode":"packet-up","uplinkDataPlacement":"header","uplinkChunkSize":100"#, Applied)]),
    ("streamSettings.xhttpSettings.xmux", r#"{"outbounds":[{"protocol":"vless","settings":{"vnext":[{"address":"127.0.0.1","port":1,"users":[{"id":"ID","encryption":"none"}]}]},"streamSettings":{"network":"xhttp","security":"tls","xhttpSettings":{"xmux":{$}}}}]}"#, &[
        ("maxConcurrency", "", r#""maxConcurrency":3"#, Applied),
        ("maxConnections", "", r#""maxConnections":3"#, Applied),
        ("cMaxReuseTimes", "", r#""cMaxReuseTimes":3"#, Applied),
        ("hMaxRequestTimes", "", r#""hMaxRequestTimes":3"#, Applied),
        ("hMaxReusableSecs", "", r#""hMaxReusableSecs":3"#, Applied),
        ("hKeepAlivePeriod", "", r#""hKeepAlivePeriod":30"#, Applied)]),
    ("trojan settings", r#"{OUT,"inbounds":[{"port":1,"protocol":"trojan","settings":{$}}]}"#, &[
        ("clients", r#""clients":[{"password":"p"}]"#, r#""clients":[{"password":"p"},{"password":"q"}]"#, Applied),
        ("fallbacks", r#""clients":[{"password":"p"}]"#, r#""clients":[{"password":"p"}],"fallbacks":[{"dest":80}]"#, Applied)]),
    ("trojan settings.clients[]", r#"{OUT,"inbounds":[{"port":1,"protocol":"trojan","settings":{"clients":[{$}]}}]}"#, &[
        ("password", r#""password":"p""#, r#""password":"q""#, Applied),
        ("email", r#""password":"p""#, r#""password":"p","email":"a""#, Applied),
        ("level", r#""password":"p""#, r#""password":"p","level":7"#, Applied),
        ("flow", r#""password":"p""#, r#""password":"p","flow":"xtls-rprx-vision""#, Named)]),
    ("trojan outbound settings", r#"{"outbounds":[{"protocol":"trojan","settings":{$}}]}"#, &[
        ("servers", r#""servers":[{"address":"127.0.0.1","port":1,"password":"p"}]"#, r#""servers":[{"address":"127.0.0.2","port":1,"password":"p"}]"#, Applied)]),
    ("trojan outbound settings.servers[]", r#"{"outbounds":[{"protocol":"trojan","settings":{"servers":[{$}]}}]}"#, &[
        ("address", r#""address":"127.0.0.1","port":1,"password":"p""#, r#""address":"127.0.0.2","port":1,"password":"p""#, Applied),
        ("port", r#""address":"127.0.0.1","port":1,"password":"p""#, r#""address":"127.0.0.1","port":2,"password":"p""#, Applied),
        ("password", r#""address":"127.0.0.1","port":1,"password":"p""#, r#""address":"127.0.0.1","port":1,"password":"q""#, Applied),
        ("flow", r#""address":"127.0.0.1","port":1,"password":"p""#, r#""address":"127.0.0.1","port":1,"password":"p","flow":"xtls-rprx-vision""#, Named),
        ("level", r#""address":"127.0.0.1","port":1,"password":"p""#, r#""address":"127.0.0.1","port":1,"password":"p","level":7"#, Named),
        ("email", r#""address":"127.0.0.1","port":1,"password":"p""#, r#""address":"127.0.0.1","port":1,"password":"p","email":"a""#, Read)]),
    ("shadowsocks settings", r#"{OUT,"inbounds":[{"port":1,"protocol":"shadowsocks","settings":{$}}]}"#, &[
        ("method", r#""method":"aes-128-gcm","password":"p""#, r#""method":"aes-256-gcm","password":"p""#, Applied),
        ("password", r#""method":"aes-128-gcm","password":"p""#, r#""method":"aes-128-gcm","password":"q""#, Applied),
        ("email", r#""method":"aes-128-gcm","password":"p""#, r#""method":"aes-128-gcm","password":"p","email":"a""#, Applied),
        ("level", r#""method":"aes-128-gcm","password":"p""#, r#""method":"aes-128-gcm","password":"p","level":7"#, Applied),
        ("network", r#""method":"aes-128-gcm","password":"p""#, r#""method":"aes-128-gcm","password":"p","network":"udp""#, Applied),
        ("ivCheck", r#""method":"aes-128-gcm","password":"p""#, r#""method":"aes-128-gcm","password":"p","ivCheck":false"#, Applied),
        ("clients", r#""method":"aes-128-gcm","password":"p""#, r#""clients":[{"method":"aes-128-gcm","password":"q"}]"#, Applied)]),
    ("shadowsocks settings.clients[]", r#"{OUT,"inbounds":[{"port":1,"protocol":"shadowsocks","settings":{"clients":[{$}]}}]}"#, &[
        ("method", r#""method":"aes-128-gcm","password":"p""#, r#""method":"aes-256-gcm","password":"p""#, Applied),
        ("password", r#""method":"aes-128-gcm","password":"p""#, r#""method":"aes-128-gcm","password":"q""#, Applied),
        ("email", r#""method":"aes-128-gcm","password":"p""#, r#""method":"aes-128-gcm","password":"p","email":"a""#, Applied),
        ("level", r#""method":"aes-128-gcm","password":"p""#, r#""method":"aes-128-gcm","password":"p","level":7"#, Applied)]),
    ("shadowsocks outbound settings", r#"{"outbounds":[{"protocol":"shadowsocks","settings":{$}}]}"#, &[
        ("servers", r#""servers":[{"address":"127.0.0.1","port":1,"method":"aes-128-gcm","password":"p"}]"#, r#""servers":[{"address":"127.0.0.2","port":1,"method":"aes-128-gcm","password":"p"}]"#, Applied)]),
    ("shadowsocks outbound settings.servers[]", r#"{"outbounds":[{"protocol":"shadowsocks","settings":{"servers":[{$}]}}]}"#, &[
        ("address", r#""address":"127.0.0.1","port":1,"method":"aes-128-gcm","password":"p""#, r#""address":"127.0.0.2","port":1,"method":"aes-128-gcm","password":"p""#, Applied),
        ("port", r#""address":"127.0.0.1","port":1,"method":"aes-128-gcm","password":"p""#, r#""address":"127.0.0.1","port":2,"method":"aes-128-gcm","password":"p""#, Applied),
        ("password", r#""address":"127.0.0.1","port":1,"method":"aes-128-gcm","password":"p""#, r#""address":"127.0.0.1","port":1,"method":"aes-128-gcm","password":"q""#, Applied),
        ("method", r#""address":"127.0.0.1","port":1,"method":"aes-128-gcm","password":"p""#, r#""address":"127.0.0.1","port":1,"method":"aes-256-gcm","password":"p""#, Applied),
        ("level", r#""address":"127.0.0.1","port":1,"method":"aes-128-gcm","password":"p""#, r#""address":"127.0.0.1","port":1,"method":"aes-128-gcm","password":"p","level":7"#, Named),
        ("email", r#""address":"127.0.0.1","port":1,"method":"aes-128-gcm","password":"p""#, r#""address":"127.0.0.1","port":1,"method":"aes-128-gcm","password":"p","email":"a""#, Read)]),
    ("streamSettings.wsSettings", r#"{OUT,"inbounds":[{"port":1,"protocol":"socks","streamSettings":{"network":"ws","wsSettings":{$}}}]}"#, &[
        ("path", "", r#""path":"/p""#, Applied),
        ("host", "", r#""host":"a""#, Applied),
        ("headers", "", r#""headers":{"a":"b"}"#, Applied),
        ("acceptProxyProtocol", "", r#""acceptProxyProtocol":true"#, Applied),
        ("maxEarlyData", "", r#""maxEarlyData":9"#, Applied),
        ("earlyDataHeaderName", r#""maxEarlyData":9"#, r#""maxEarlyData":9,"earlyDataHeaderName":"h""#, Applied)]),
    ("streamSettings.httpupgradeSettings", r#"{OUT,"inbounds":[{"port":1,"protocol":"socks","streamSettings":{"network":"httpupgrade","httpupgradeSettings":{$}}}]}"#, &[
        ("path", "", r#""path":"/p""#, Applied),
        ("host", "", r#""host":"a""#, Applied),
        ("headers", "", r#""headers":{"a":"b"}"#, Applied),
        ("acceptProxyProtocol", "", r#""acceptProxyProtocol":true"#, Applied),
        ("maxEarlyData", "", r#""maxEarlyData":9"#, Applied),
        ("earlyDataHeaderName", r#""maxEarlyData":9"#, r#""maxEarlyData":9,"earlyDataHeaderName":"h""#, Applied)]),
    ("streamSettings.sockopt", r#"{OUT,"inbounds":[{"port":1,"protocol":"socks","streamSettings":{"network":"ws","sockopt":{$}}}]}"#, &[
        ("mark", "", r#""mark":7"#, Applied),
        ("tproxy", "", r#""tproxy":"redirect""#, Applied),
        ("acceptProxyProtocol", "", r#""acceptProxyProtocol":true"#, Applied),
        ("domainStrategy", "", r#""domainStrategy":"UseIP""#, Named),
        ("tcpKeepAliveInterval", "", r#""tcpKeepAliveInterval":7"#, Applied),
        ("tcpKeepAliveIdle", "", r#""tcpKeepAliveIdle":7"#, Applied),
        ("tcpUserTimeout", "", r#""tcpUserTimeout":7"#, Applied),
        ("tcpCongestion", "", r#""tcpCongestion":"bbr""#, Applied),
        ("tcpMaxSeg", "", r#""tcpMaxSeg":1200"#, Applied),
        ("tcpMptcp", "", r#""tcpMptcp":true"#, Applied),
        ("V6Only", "", r#""V6Only":true"#, Applied),
        ("penetrate", "", r#""penetrate":true"#, Named),
        ("interface", "", r#""interface":"eth0""#, Applied),
        ("rxBufSize", "", r#""rxBufSize":7"#, Applied),
        ("txBufSize", "", r#""txBufSize":7"#, Applied),
        ("trustedXForwardedFor", "", r#""trustedXForwardedFor":["a"]"#, Applied)]),
    ("streamSettings.sockopt", r#"{"outbounds":[{"protocol":"freedom","streamSettings":{"sockopt":{$}}}]}"#, &[
        ("mark", "", r#""mark":7"#, Applied),
        ("tproxy", "", r#""tproxy":"tproxy""#, Applied),
        ("interface", "", r#""interface":"eth0""#, Applied),
        ("domainStrategy", "", r#""domainStrategy":"UseIPv4""#, Applied),
        ("V6Only", "", r#""V6Only":true"#, Named),
        ("acceptProxyProtocol", "", r#""acceptProxyProtocol":true"#, Named),
        ("trustedXForwardedFor", "", r#""trustedXForwardedFor":["a"]"#, Named)]),
    ("streamSettings.sockopt", r#"{"outbounds":[{"protocol":"socks","settings":{"address":"a","port":1},"streamSettings":{"network":"xhttp","xhttpSettings":{"downloadSettings":{"address":"b","port":1,"network":"xhttp"}},"sockopt":{"mark":7,$}}}]}"#, &[
        ("penetrate", r#""V6Only":false"#, r#""V6Only":false,"penetrate":true"#, Applied)]),
    ("streamSettings.tlsSettings", r#"{OUT,"inbounds":[{"port":1,"protocol":"socks","streamSettings":{"security":"tls","tlsSettings":{$}}}]}"#, &[
        ("serverName", r#""certificates":[PEM]"#, r#""certificates":[PEM],"serverName":"a""#, Named),
        ("alpn", r#""certificates":[PEM]"#, r#""certificates":[PEM],"alpn":["h3"]"#, Applied),
        ("minVersion", r#""certificates":[PEM]"#, r#""certificates":[PEM],"minVersion":"1.3""#, Applied),
        ("maxVersion", r#""certificates":[PEM]"#, r#""certificates":[PEM],"maxVersion":"1.2""#, Applied),
        ("cipherSuites", r#""certificates":[PEM]"#, r#""certificates":[PEM],"cipherSuites":"TLS_AES_128_GCM_SHA256""#, Applied),
        ("curvePreferences", r#""certificates":[PEM]"#, r#""certificates":[PEM],"curvePreferences":["x25519"]"#, Applied),
        ("certificates", r#""certificates":[PEM]"#, r#""certificates":[PEM,PEM]"#, Applied),
        ("rejectUnknownSni", r#""certificates":[PEM]"#, r#""certificates":[PEM],"rejectUnknownSni":true"#, Applied),
        ("enableSessionResumption", r#""certificates":[PEM]"#, r#""certificates":[PEM],"enableSessionResumption":true"#, Applied),
        ("disableSystemRoot", r#""certificates":[PEM]"#, r#""certificates":[PEM],"disableSystemRoot":true"#, Named),
        ("fingerprint", r#""certificates":[PEM]"#, r#""certificates":[PEM],"fingerprint":"chrome""#, Named),
        ("pinnedPeerCertSha256", r#""certificates":[PEM]"#, r#""certificates":[PEM],"pinnedPeerCertSha256":"0000000000000000000000000000000000000000000000000000000000000000""#, Named),
        ("pinnedPeerCertificateChainSha256", r#""certificates":[PEM]"#, r#""certificates":[PEM],"pinnedPeerCertificateChainSha256":["HASH"]"#, Named),
        ("pinnedPeerCertificatePublicKeySha256", r#""certificates":[PEM]"#, r#""certificates":[PEM],"pinnedPeerCertificatePublicKeySha256":["HASH"]"#, Named),
        ("verifyPeerCertByName", r#""certificates":[PEM]"#, r#""certificates":[PEM],"verifyPeerCertByName":["a"]"#, Named),
        ("verifyClientCertificate", r#""certificates":[PEM,{"certificateFile":"a","usage":"verifyclient"}]"#, r#""certificates":[PEM,{"certificateFile":"a","usage":"verifyclient"}],"verifyClientCertificate":true"#, Applied),
        ("masterKeyLog", r#""certificates":[PEM]"#, r#""certificates":[PEM],"masterKeyLog":"/k""#, Named),
        ("allowInsecure", r#""certificates":[PEM]"#, r#""certificates":[PEM],"allowInsecure":true"#, Named)]),
    ("streamSettings.tlsSettings", r#"{"outbounds":[{"protocol":"socks","settings":{"address":"a","port":1},"streamSettings":{"security":"tls","tlsSettings":{$}}}]}"#, &[
        ("serverName", "", r#""serverName":"a""#, Applied),
        ("rejectUnknownSni", "", r#""rejectUnknownSni":true"#, Named),
        ("disableSystemRoot", "", r#""disableSystemRoot":true"#, Applied),
        ("certificates", "", r#""certificates":[PEM]"#, Applied),
        ("cipherSuites", "", r#""cipherSuites":"TLS_AES_128_GCM_SHA256""#, Applied),
        ("curvePreferences", "", r#""curvePreferences":["x25519"]"#, Applied),
        ("pinnedPeerCertSha256", "", r#""pinnedPeerCertSha256":"0000000000000000000000000000000000000000000000000000000000000000""#, Applied),
        ("pinnedPeerCertificateChainSha256", "", r#""pinnedPeerCertificateChainSha256":["HASH"]"#, Applied),
        ("pinnedPeerCertificatePublicKeySha256", "", r#""pinnedPeerCertificatePublicKeySha256":["HASH"]"#, Applied),
        ("verifyPeerCertByName", "", r#""verifyPeerCertByName":["a"]"#, Applied),
        ("verifyClientCertificate", "", r#""verifyClientCertificate":true"#, Named)]),
    ("tlsSettings.certificates[]", r#"{OUT,"inbounds":[{"port":1,"protocol":"socks","streamSettings":{"security":"tls","tlsSettings":{"certificates":[PEM,{$}]}}}]}"#, &[
        ("certificateFile", r#""certificateFile":"c","keyFile":"k""#, r#""certificateFile":"d","keyFile":"k""#, Applied),
        ("keyFile", r#""certificateFile":"c","keyFile":"k""#, r#""certificateFile":"c","keyFile":"l""#, Applied),
        ("certificate", r#""certificate":["c"],"keyFile":"k""#, r#""certificate":["d"],"keyFile":"k""#, Applied),
        ("key", r#""certificateFile":"c","key":["k"]"#, r#""certificateFile":"c","key":["l"]"#, Applied),
        ("usage", r#""certificateFile":"c","keyFile":"k""#, r#""certificateFile":"c","keyFile":"k","usage":"verify""#, Named),
        ("ocspStapling", r#""certificateFile":"c","keyFile":"k""#, r#""certificateFile":"c","keyFile":"k","ocspStapling":60"#, Named),
        ("oneTimeLoading", r#""certificateFile":"c","keyFile":"k""#, r#""certificateFile":"c","keyFile":"k","oneTimeLoading":true"#, Applied)]),
    ("dokodemo-door settings", r#"{OUT,"inbounds":[{"port":1,"protocol":"tunnel","settings":{$}}]}"#, &[
        ("address", "", r#""address":"a""#, Applied),
        ("port", "", r#""port":7"#, Applied),
        ("network", "", r#""network":"udp""#, Applied),
        ("followRedirect", "", r#""followRedirect":true"#, Applied),
        ("userLevel", "", r#""userLevel":7"#, Applied)]),
    ("streamSettings.sockopt", r#"{OUT,"inbounds":[{"port":1,"protocol":"tunnel","settings":{"followRedirect":true},"streamSettings":{"sockopt":{$}}}]}"#, &[
        ("tproxy", "", r#""tproxy":"tproxy""#, Applied)]),
    ("socks settings", r#"{OUT,"inbounds":[{"port":1,"protocol":"socks","settings":{$}}]}"#, &[
        ("auth", "", r#""auth":"password","accounts":[{"user":"a","pass":"b"}]"#, Applied),
        ("accounts", r#""auth":"password","accounts":[{"user":"a","pass":"b"}]"#, r#""auth":"password","accounts":[{"user":"c","pass":"b"}]"#, Applied),
        ("udp", "", r#""udp":true"#, Applied),
        ("ip", "", r#""ip":"192.0.2.1""#, Applied),
        ("userLevel", "", r#""userLevel":7"#, Applied)]),
    ("accounts[]", r#"{OUT,"inbounds":[{"port":1,"protocol":"http","settings":{"accounts":[{$}]}}]}"#, &[
        ("user", r#""user":"a","pass":"b""#, r#""user":"c","pass":"b""#, Applied),
        ("pass", r#""user":"a","pass":"b""#, r#""user":"a","pass":"c""#, Applied)]),
    ("http settings", r#"{OUT,"inbounds":[{"port":1,"protocol":"http","settings":{$}}]}"#, &[
        ("accounts", "", r#""accounts":[{"user":"a","pass":"b"}]"#, Applied),
        ("allowTransparent", "", r#""allowTransparent":true"#, Applied),
        ("userLevel", "", r#""userLevel":7"#, Applied)]),
    ("vless settings", r#"{OUT,"inbounds":[{"port":1,"protocol":"vless","settings":{$}}]}"#, &[
        ("clients", r#""decryption":"none""#, r#""decryption":"none","clients":[{"id":"ID"}]"#, Applied),
        ("decryption", r#""decryption":"none""#, r#""decryption":"mlkem768x25519plus.native""#, Named),
        ("fallbacks", r#""decryption":"none""#, r#""decryption":"none","fallbacks":[{"dest":80}]"#, Applied),
        ("flow", r#""decryption":"none""#, r#""decryption":"none","flow":"xtls-rprx-vision""#, Read),
        ("testseed", r#""decryption":"none","clients":[{"id":"ID"}]"#, r#""decryption":"none","clients":[{"id":"ID"}],"testseed":[1,2,3,4]"#, Applied)]),
    ("vless settings.clients[]", r#"{OUT,"inbounds":[{"port":1,"protocol":"vless","settings":{"decryption":"none","clients":[{$}]},"streamSettings":{"security":"tls","tlsSettings":{"certificates":[PEM]}}}]}"#, &[
        ("id", r#""id":"ID""#, r#""id":"OTHER""#, Applied),
        ("email", r#""id":"ID""#, r#""id":"ID","email":"a@b""#, Applied),
        ("level", r#""id":"ID""#, r#""id":"ID","level":7"#, Applied),
        ("flow", r#""id":"ID""#, r#""id":"ID","flow":"xtls-rprx-vision""#, Applied),
        ("testseed", r#""id":"ID""#, r#""id":"ID","testseed":[1,2,3,4]"#, Applied)]),
    ("fallbacks[]", r#"{OUT,"inbounds":[{"port":1,"protocol":"vless","settings":{"decryption":"none","fallbacks":[{"dest":1},{$}]}}]}"#, &[
        ("name", r#""dest":80,"path":"/q""#, r#""dest":80,"path":"/q","name":"a""#, Applied),
        ("alpn", r#""dest":80,"path":"/q""#, r#""dest":80,"path":"/q","alpn":"h2""#, Applied),
        ("path", r#""dest":80,"path":"/q""#, r#""dest":80,"path":"/p""#, Applied),
        ("type", r#""dest":"a:80","path":"/q""#, r#""dest":"a:80","path":"/q","type":"tcp""#, Read),
        ("dest", r#""dest":80,"path":"/q""#, r#""dest":81,"path":"/q""#, Applied),
        ("xver", r#""dest":80,"path":"/q""#, r#""dest":80,"path":"/q","xver":1"#, Applied)]),
    ("vmess settings", r#"{OUT,"inbounds":[{"port":1,"protocol":"vmess","settings":{$}}]}"#, &[
        ("clients", "", r#""clients":[{"id":"ID"}]"#, Applied),
        ("default", r#""clients":[{"id":"ID"}]"#, r#""clients":[{"id":"ID"}],"default":{"level":7}"#, Applied),
        ("disableInsecureEncryption", "", r#""disableInsecureEncryption":true"#, Applied)]),
    ("vmess settings.default", r#"{OUT,"inbounds":[{"port":1,"protocol":"vmess","settings":{"clients":[{"id":"ID"}],"default":{$}}}]}"#, &[
        ("level", "", r#""level":7"#, Applied)]),
    ("vmess settings.clients[]", r#"{OUT,"inbounds":[{"port":1,"protocol":"vmess","settings":{"clients":[{$}]}}]}"#, &[
        ("id", r#""id":"ID""#, r#""id":"OTHER""#, Applied),
        ("email", r#""id":"ID""#, r#""id":"ID","email":"a@b""#, Applied),
        ("level", r#""id":"ID""#, r#""id":"ID","level":7"#, Applied),
        ("alterId", r#""id":"ID""#, r#""id":"ID","alterId":7"#, Named),
        ("experiments", r#""id":"ID""#, r#""id":"ID","experiments":"NoTerminationSignal""#, Named)]),
    ("outbounds[]", r#"{"outbounds":[{$}]}"#, &[
        ("tag", r#""protocol":"freedom""#, r#""protocol":"freedom","tag":"t""#, Applied),
        ("protocol", r#""protocol":"freedom""#, r#""protocol":"blackhole""#, Applied),
        ("settings", r#""protocol":"freedom""#, r#""protocol":"freedom","settings":{"redirect":"a:1"}"#, Applied),
        ("streamSettings", r#""protocol":"freedom""#, r#""protocol":"freedom","streamSettings":{"sockopt":{"mark":1}}"#, Applied),
        ("sendThrough", r#""protocol":"freedom""#, r#""protocol":"freedom","sendThrough":"192.0.2.1""#, Applied),
        ("mux", r#""protocol":"freedom""#, r#""protocol":"freedom","mux":{"enabled":true}"#, Named),
        ("targetStrategy", r#""protocol":"freedom""#, r#""protocol":"freedom","targetStrategy":"UseIPv4""#, Applied)]),
    ("outbounds[]", r#"{"outbounds":[{"protocol":"freedom",$},{"protocol":"freedom","tag":"d"}]}"#, &[
        ("proxySettings", r#""tag":"a""#, r#""tag":"a","proxySettings":{"tag":"d"}"#, Applied)]),
    ("outbounds[].proxySettings", r#"{"outbounds":[{"protocol":"socks","settings":{"address":"a","port":1},"streamSettings":{"network":"ws"},"proxySettings":{$}},{"protocol":"freedom","tag":"d"},{"protocol":"freedom","tag":"e"}]}"#, &[
        ("tag", r#""tag":"d""#, r#""tag":"e""#, Applied),
        ("transportLayer", r#""tag":"d""#, r#""tag":"d","transportLayer":true"#, Applied)]),
    ("streamSettings.sockopt", r#"{"outbounds":[{"protocol":"freedom","streamSettings":{"sockopt":{"mark":7,$}}},{"protocol":"freedom","tag":"d"},{"protocol":"freedom","tag":"e"}]}"#, &[
        ("dialerProxy", r#""dialerProxy":"d""#, r#""dialerProxy":"e""#, Applied)]),
    ("outbounds[].mux", r#"{"outbounds":[{"protocol":"socks","settings":{"servers":[{"address":"a","port":1}]},"mux":{$}}]}"#, &[
        ("enabled", "", r#""enabled":true"#, Applied),
        ("concurrency", r#""enabled":true"#, r#""enabled":true,"concurrency":7"#, Applied),
        ("xudpConcurrency", r#""enabled":true"#, r#""enabled":true,"xudpConcurrency":7"#, Applied),
        ("xudpProxyUDP443", r#""enabled":true"#, r#""enabled":true,"xudpProxyUDP443":"allow""#, Applied)]),
    ("freedom settings", r#"{"outbounds":[{"protocol":"freedom","settings":{$}}]}"#, &[
        ("domainStrategy", "", r#""domainStrategy":"UseIPv4""#, Applied),
        ("redirect", "", r#""redirect":"a:1""#, Applied),
        ("userLevel", "", r#""userLevel":7"#, Named),
        ("proxyProtocol", "", r#""proxyProtocol":1"#, Applied),
        ("fragment", "", r#""fragment":{"length":1,"interval":1}"#, Applied),
        ("noises", "", r#""noises":[{"type":"str","packet":"a"}]"#, Applied),
        ("finalRules", "", r#""finalRules":[{"action":"allow"}]"#, Applied)]),
    ("freedom settings.fragment", r#"{"outbounds":[{"protocol":"freedom","settings":{"fragment":{$}}}]}"#, &[
        ("packets", r#""length":1,"interval":1"#, r#""length":1,"interval":1,"packets":"tlshello""#, Applied),
        ("length", r#""length":1,"interval":1"#, r#""length":2,"interval":1"#, Applied),
        ("interval", r#""length":1,"interval":1"#, r#""length":1,"interval":2"#, Applied),
        ("maxSplit", r#""length":1,"interval":1"#, r#""length":1,"interval":1,"maxSplit":3"#, Applied)]),
    ("freedom settings.noises[]", r#"{"outbounds":[{"protocol":"freedom","settings":{"noises":[{$}]}}]}"#, &[
        ("type", r#""type":"str","packet":"ab""#, r#""type":"hex","packet":"ab""#, Applied),
        ("packet", r#""type":"str","packet":"ab""#, r#""type":"str","packet":"cd""#, Applied),
        ("delay", r#""type":"str","packet":"ab""#, r#""type":"str","packet":"ab","delay":7"#, Applied),
        ("applyTo", r#""type":"str","packet":"ab""#, r#""type":"str","packet":"ab","applyTo":"ipv6""#, Applied)]),
    ("freedom settings.finalRules[]", r#"{"outbounds":[{"protocol":"freedom","settings":{"finalRules":[{$}]}}]}"#, &[
        ("action", r#""action":"allow""#, r#""action":"block""#, Applied),
        ("network", r#""action":"allow""#, r#""action":"allow","network":"udp""#, Applied),
        ("port", r#""action":"allow""#, r#""action":"allow","port":7"#, Applied),
        ("ip", r#""action":"allow""#, r#""action":"allow","ip":"192.0.2.1""#, Applied)]),
    ("blackhole settings", r#"{"outbounds":[{"protocol":"blackhole","settings":{$}}]}"#, &[
        ("response", "", r#""response":{"type":"http"}"#, Applied)]),
    ("blackhole settings.response", r#"{"outbounds":[{"protocol":"blackhole","settings":{"response":{$}}}]}"#, &[
        ("type", "", r#""type":"http""#, Applied)]),
    ("vless outbound settings", r#"{"outbounds":[{"protocol":"vless","settings":{$}}]}"#, &[
        ("vnext", r#""vnext":[{"address":"127.0.0.1","port":1,"users":[{"id":"ID","encryption":"none"}]}]"#, r#""vnext":[{"address":"127.0.0.1","port":2,"users":[{"id":"ID","encryption":"none"}]}]"#, Applied)]),
    ("vless outbound settings.vnext[]", r#"{"outbounds":[{"protocol":"vless","settings":{"vnext":[{$}]}}]}"#, &[
        ("address", r#""address":"127.0.0.1","port":1,"users":[{"id":"ID","encryption":"none"}]"#, r#""address":"127.0.0.2","port":1,"users":[{"id":"ID","encryption":"none"}]"#, Applied),
        ("port", r#""address":"127.0.0.1","port":1,"users":[{"id":"ID","encryption":"none"}]"#, r#""address":"127.0.0.1","port":2,"users":[{"id":"ID","encryption":"none"}]"#, Applied),
        ("users", r#""address":"127.0.0.1","port":1,"users":[{"id":"ID","encryption":"none"}]"#, r#""address":"127.0.0.1","port":1,"users":[{"id":"OTHER","encryption":"none"}]"#, Applied)]),
    ("vless outbound settings.vnext[].users[]", r#"{"outbounds":[{"protocol":"vless","settings":{"vnext":[{"address":"127.0.0.1","port":1,"users":[{$}]}]},"streamSettings":{"security":"tls","tlsSettings":{"serverName":"a"}}}]}"#, &[
        ("id", r#""id":"ID","encryption":"none""#, r#""id":"OTHER","encryption":"none""#, Applied),
        ("encryption", r#""id":"ID","encryption":"none""#, r#""id":"ID","encryption":"mlkem768x25519plus.native""#, Named),
        ("flow", r#""id":"ID","encryption":"none""#, r#""id":"ID","encryption":"none","flow":"xtls-rprx-vision""#, Applied),
        ("testseed", r#""id":"ID","encryption":"none","flow":"xtls-rprx-vision""#, r#""id":"ID","encryption":"none","flow":"xtls-rprx-vision","testseed":[1,2,3,4]"#, Applied),
        ("testpre", r#""id":"ID","encryption":"none","flow":"xtls-rprx-vision""#, r#""id":"ID","encryption":"none","flow":"xtls-rprx-vision","testpre":3"#, Applied),
        ("level", r#""id":"ID","encryption":"none""#, r#""id":"ID","encryption":"none","level":7"#, Named),
        ("email", r#""id":"ID","encryption":"none""#, r#""id":"ID","encryption":"none","email":"a""#, Read)]),
    ("vmess outbound settings", r#"{"outbounds":[{"protocol":"vmess","settings":{$}}]}"#, &[
        ("vnext", r#""vnext":[{"address":"127.0.0.1","port":1,"users":[{"id":"ID"}]}]"#, r#""vnext":[{"address":"127.0.0.1","port":2,"users":[{"id":"ID"}]}]"#, Applied)]),
    ("vmess outbound settings.vnext[]", r#"{"outbounds":[{"protocol":"vmess","settings":{"vnext":[{$}]}}]}"#, &[
        ("address", r#""address":"127.0.0.1","port":1,"users":[{"id":"ID"}]"#, r#""address":"127.0.0.2","port":1,"users":[{"id":"ID"}]"#, Applied),
        ("port", r#""address":"127.0.0.1","port":1,"users":[{"id":"ID"}]"#, r#""address":"127.0.0.1","port":2,"users":[{"id":"ID"}]"#, Applied),
        ("users", r#""address":"127.0.0.1","port":1,"users":[{"id":"ID"}]"#, r#""address":"127.0.0.1","port":1,"users":[{"id":"OTHER"}]"#, Applied)]),
    ("vmess outbound settings.vnext[].users[]", r#"{"outbounds":[{"protocol":"vmess","settings":{"vnext":[{"address":"127.0.0.1","port":1,"users":[{$}]}]}}]}"#, &[
        ("id", r#""id":"ID""#, r#""id":"OTHER""#, Applied),
        ("security", r#""id":"ID""#, r#""id":"ID","security":"none""#, Applied),
        ("alterId", r#""id":"ID""#, r#""id":"ID","alterId":7"#, Named),
        ("level", r#""id":"ID""#, r#""id":"ID","level":7"#, Named),
        ("experiments", r#""id":"ID""#, r#""id":"ID","experiments":"NoTerminationSignal""#, Applied),
        ("email", r#""id":"ID""#, r#""id":"ID","email":"a""#, Read)]),
    ("socks and http outbound settings", r#"{"outbounds":[{"protocol":"http","settings":{$}}]}"#, &[
        ("servers", r#""servers":[{"address":"a","port":1}]"#, r#""servers":[{"address":"a","port":2}]"#, Applied),
        ("headers", r#""servers":[{"address":"a","port":1}]"#, r#""servers":[{"address":"a","port":1}],"headers":{"a":"b"}"#, Applied)]),
    ("socks and http outbound settings", r#"{"outbounds":[{"protocol":"socks","settings":{$}}]}"#, &[
        ("headers", r#""servers":[{"address":"a","port":1}]"#, r#""servers":[{"address":"a","port":1}],"headers":{"a":"b"}"#, Named)]),
    ("socks and http outbound settings.servers[]", r#"{"outbounds":[{"protocol":"http","settings":{"servers":[{$}]}}]}"#, &[
        ("address", r#""address":"a","port":1"#, r#""address":"b","port":1"#, Applied),
        ("port", r#""address":"a","port":1"#, r#""address":"a","port":2"#, Applied),
        ("users", r#""address":"a","port":1"#, r#""address":"a","port":1,"users":[{"user":"a","pass":"b"}]"#, Applied)]),
    ("servers[].users[]", r#"{"outbounds":[{"protocol":"http","settings":{"servers":[{"address":"a","port":1,"users":[{$}]}]}}]}"#, &[
        ("user", r#""user":"a","pass":"b""#, r#""user":"c","pass":"b""#, Applied),
        ("pass", r#""user":"a","pass":"b""#, r#""user":"a","pass":"c""#, Applied),
        ("level", r#""user":"a","pass":"b""#, r#""user":"a","pass":"b","level":7"#, Named),
        ("email", r#""user":"a","pass":"b""#, r#""user":"a","pass":"b","email":"e""#, Read)]),
];

/// Which passwords of the table are those of Shadowsocks: `Debug` hides the keys that they become.
fn passwords(settings: &Settings) -> Vec<&'static str> {
    let mut found = Vec::new();
    for password in ["p", "q"] {
        let inbounds = settings.inbounds.iter().any(|inbound| match &inbound.protocol {
            InboundProtocol::Shadowsocks(ShadowsocksIn {
                users: ShadowsocksUsers::Classic(users),
                ..
            }) => users
                .iter()
                .any(|user| Key::new(user.key.method(), password).is_ok_and(|key| key == user.key)),
            _ => false,
        });
        let outbounds = settings.outbounds.iter().any(|outbound| match &outbound.protocol {
            OutboundProtocol::Shadowsocks(out) => {
                KeyChain::new(Method::Aes128Gcm, password).is_ok_and(|keys| keys == out.keys)
            }
            _ => false,
        });
        if inbounds || outbounds {
            found.push(password);
        }
    }
    found
}

/// What a configuration makes, or `None`, and what is said about it.
fn made(template: &str, members: &str) -> (Option<String>, Vec<Problem>) {
    let text = template.replace('$', members);
    let text = text
        .replace("PEM", PEM)
        .replace("HASH", HASH)
        .replace("OTHER", OTHER_ID);
    let text = text.replace(r#""ID""#, &format!("\"{ID}\"")).replace("OUT", OUT);
    let file = File {
        name: "c.json",
        text: text.as_bytes(),
    };
    let loaded = load(&[file], &Options::default());
    let made = loaded.config.map(|config| {
        let settings = Settings::from_config(&config).unwrap_or_else(|error| panic!("{text}: {error}"));
        // The error log is the caller's.
        format!("{settings:?} {:?} {:?}", config.log, passwords(&settings))
    });
    (made, loaded.problems)
}

/// Whether a problem is about the key: it stands in its path, or in what is said of the object around it.
fn is_about(problem: &Problem, object: &str, key: &str) -> bool {
    let within = match object {
        "outbounds[].mux" => "mux",
        "tlsSettings.certificates[]" if key == "usage" => "certificates",
        _ => key,
    };
    let named = problem.path.contains(within) || problem.text.contains(&format!("`{within}`"));
    named && problem.file == "c.json" && problem.line == 1 && problem.column > 1 && !problem.hint.is_empty()
}

#[test]
fn no_key_is_left_out_in_silence() {
    let (mut declared, mut wrong) = (BTreeSet::new(), Vec::new());
    for (object, template, rows) in GROUPS {
        for (key, without, with, becomes) in *rows {
            declared.insert((*object, *key));
            let ((before, told_before), (after, told)) = (made(template, without), made(template, with));
            let Some(before) = before else {
                wrong.push(format!("{object}, {key}: {told_before:?}"));
                continue;
            };
            let new: Vec<_> = told.iter().filter(|p| is_about(p, object, key)).collect();
            let is_named = !new.is_empty() && !told_before.iter().any(|p| is_about(p, object, key));
            let is_applied = after.as_ref().is_some_and(|after| *after != before);
            let found = match (is_named, is_applied) {
                (true, _) => Named,
                (false, true) => Applied,
                (false, false) => Read,
            };
            if found != *becomes || !(*becomes == Named || after.is_some()) {
                wrong.push(format!("{object}, {key}: {found:?}, {told:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    let all: BTreeSet<_> = keys().into_iter().collect();
    let missing: Vec<_> = all.difference(&declared).collect();
    assert!(missing.is_empty(), "nothing is declared about {missing:?}");
    let gone: Vec<_> = declared.difference(&all).collect();
    assert!(gone.is_empty(), "{gone:?} is not read any more");
}
