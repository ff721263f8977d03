//! Keys of inbounds.

use super::Becomes::*;
use super::{Group, Rows};

/// Keys of a user of any protocol, after the members that name the user.
#[rustfmt::skip]
const LIMITS: Rows = &[
    ("maxConnections", "", r#","maxConnections":7"#, Applied),
    ("maxIPs", "", r#","maxIPs":7"#, Applied),
    ("uplinkMbps", "", r#","uplinkMbps":7"#, Applied),
    ("downlinkMbps", "", r#","downlinkMbps":7"#, Applied),
    ("burstKiB", r#","uplinkMbps":7"#, r#","uplinkMbps":7,"burstKiB":64"#, Applied),
    ("quotaGiB", "", r#","quotaGiB":7"#, Applied),
    ("quotaResetDay", r#","quotaGiB":7"#, r#","quotaGiB":7,"quotaResetDay":7"#, Applied),
];

#[rustfmt::skip]
pub(super) const GROUPS: &[Group] = &[
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
    ("trojan settings", r#"{OUT,"inbounds":[{"port":1,"protocol":"trojan","settings":{$}}]}"#, &[
        ("clients", r#""clients":[{"password":"p"}]"#, r#""clients":[{"password":"p"},{"password":"q"}]"#, Applied),
        ("fallbacks", r#""clients":[{"password":"p"}]"#, r#""clients":[{"password":"p"}],"fallbacks":[{"dest":80}]"#, Applied)]),
    ("trojan settings.clients[]", r#"{OUT,"stats":{"store":"s"},"inbounds":[{"port":1,"protocol":"trojan","settings":{"clients":[{$}]}}]}"#, &[
        ("password", r#""password":"p""#, r#""password":"q""#, Applied),
        ("email", r#""password":"p""#, r#""password":"p","email":"a""#, Applied),
        ("level", r#""password":"p""#, r#""password":"p","level":7"#, Applied),
        ("flow", r#""password":"p""#, r#""password":"p","flow":"xtls-rprx-vision""#, Named)]),
    ("trojan settings.clients[]", r#"{OUT,"stats":{"store":"s"},"inbounds":[{"port":1,"protocol":"trojan","settings":{"clients":[{"password":"p","email":"a"$}]}}]}"#, LIMITS),
    ("shadowsocks settings", r#"{OUT,"inbounds":[{"port":1,"protocol":"shadowsocks","settings":{$}}]}"#, &[
        ("method", r#""method":"aes-128-gcm","password":"p""#, r#""method":"aes-256-gcm","password":"p""#, Applied),
        ("password", r#""method":"aes-128-gcm","password":"p""#, r#""method":"aes-128-gcm","password":"q""#, Applied),
        ("email", r#""method":"aes-128-gcm","password":"p""#, r#""method":"aes-128-gcm","password":"p","email":"a""#, Applied),
        ("level", r#""method":"aes-128-gcm","password":"p""#, r#""method":"aes-128-gcm","password":"p","level":7"#, Applied),
        ("network", r#""method":"aes-128-gcm","password":"p""#, r#""method":"aes-128-gcm","password":"p","network":"udp""#, Applied),
        ("ivCheck", r#""method":"aes-128-gcm","password":"p""#, r#""method":"aes-128-gcm","password":"p","ivCheck":false"#, Applied),
        ("clients", r#""method":"aes-128-gcm","password":"p""#, r#""clients":[{"method":"aes-128-gcm","password":"q"}]"#, Applied)]),
    ("shadowsocks settings.clients[]", r#"{OUT,"stats":{"store":"s"},"inbounds":[{"port":1,"protocol":"shadowsocks","settings":{"clients":[{$}]}}]}"#, &[
        ("method", r#""method":"aes-128-gcm","password":"p""#, r#""method":"aes-256-gcm","password":"p""#, Applied),
        ("password", r#""method":"aes-128-gcm","password":"p""#, r#""method":"aes-128-gcm","password":"q""#, Applied),
        ("email", r#""method":"aes-128-gcm","password":"p""#, r#""method":"aes-128-gcm","password":"p","email":"a""#, Applied),
        ("level", r#""method":"aes-128-gcm","password":"p""#, r#""method":"aes-128-gcm","password":"p","level":7"#, Applied)]),
    ("shadowsocks settings.clients[]", r#"{OUT,"stats":{"store":"s"},"inbounds":[{"port":1,"protocol":"shadowsocks","settings":{"clients":[{"method":"aes-128-gcm","password":"p","email":"a"$}]}}]}"#, LIMITS),
    ("dokodemo-door settings", r#"{OUT,"inbounds":[{"port":1,"protocol":"tunnel","settings":{$}}]}"#, &[
        ("address", "", r#""address":"a""#, Applied),
        ("port", "", r#""port":7"#, Applied),
        ("network", "", r#""network":"udp""#, Applied),
        ("followRedirect", "", r#""followRedirect":true"#, Applied),
        ("userLevel", "", r#""userLevel":7"#, Applied)]),
    ("socks settings", r#"{OUT,"inbounds":[{"port":1,"protocol":"socks","settings":{$}}]}"#, &[
        ("auth", "", r#""auth":"password","accounts":[{"user":"a","pass":"b"}]"#, Applied),
        ("accounts", r#""auth":"password","accounts":[{"user":"a","pass":"b"}]"#, r#""auth":"password","accounts":[{"user":"c","pass":"b"}]"#, Applied),
        ("udp", "", r#""udp":true"#, Applied),
        ("ip", "", r#""ip":"192.0.2.1""#, Applied),
        ("userLevel", "", r#""userLevel":7"#, Applied)]),
    ("accounts[]", r#"{OUT,"inbounds":[{"port":1,"protocol":"http","settings":{"accounts":[{$}]}}]}"#, &[
        ("user", r#""user":"a","pass":"b""#, r#""user":"c","pass":"b""#, Applied),
        ("pass", r#""user":"a","pass":"b""#, r#""user":"a","pass":"cd""#, Applied)]),
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
    ("vless settings.clients[]", r#"{OUT,"stats":{"store":"s"},"inbounds":[{"port":1,"protocol":"vless","settings":{"decryption":"none","clients":[{$}]},"streamSettings":{"security":"tls","tlsSettings":{"certificates":[PEM]}}}]}"#, &[
        ("id", r#""id":"ID""#, r#""id":"OTHER""#, Applied),
        ("email", r#""id":"ID""#, r#""id":"ID","email":"a@b""#, Applied),
        ("level", r#""id":"ID""#, r#""id":"ID","level":7"#, Applied),
        ("flow", r#""id":"ID""#, r#""id":"ID","flow":"xtls-rprx-vision""#, Applied),
        ("testseed", r#""id":"ID""#, r#""id":"ID","testseed":[1,2,3,4]"#, Applied)]),
    ("vless settings.clients[]", r#"{OUT,"stats":{"store":"s"},"inbounds":[{"port":1,"protocol":"vless","settings":{"decryption":"none","clients":[{"id":"ID","email":"a"$}]},"streamSettings":{"security":"tls","tlsSettings":{"certificates":[PEM]}}}]}"#, LIMITS),
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
    ("vmess settings.clients[]", r#"{OUT,"stats":{"store":"s"},"inbounds":[{"port":1,"protocol":"vmess","settings":{"clients":[{$}]}}]}"#, &[
        ("id", r#""id":"ID""#, r#""id":"OTHER""#, Applied),
        ("email", r#""id":"ID""#, r#""id":"ID","email":"a@b""#, Applied),
        ("level", r#""id":"ID""#, r#""id":"ID","level":7"#, Applied),
        ("alterId", r#""id":"ID""#, r#""id":"ID","alterId":7"#, Named),
        ("experiments", r#""id":"ID""#, r#""id":"ID","experiments":"NoTerminationSignal""#, Named)]),
    ("vmess settings.clients[]", r#"{OUT,"stats":{"store":"s"},"inbounds":[{"port":1,"protocol":"vmess","settings":{"clients":[{"id":"ID","email":"a"$}]}}]}"#, LIMITS),
];
