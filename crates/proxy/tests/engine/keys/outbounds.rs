//! Keys of outbounds.

use super::Becomes::*;
use super::Group;

#[rustfmt::skip]
pub(super) const GROUPS: &[Group] = &[
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
    ("trojan outbound settings", r#"{"outbounds":[{"protocol":"trojan","settings":{$}}]}"#, &[
        ("servers", r#""servers":[{"address":"127.0.0.1","port":1,"password":"p"}]"#, r#""servers":[{"address":"127.0.0.2","port":1,"password":"p"}]"#, Applied)]),
    ("trojan outbound settings.servers[]", r#"{"outbounds":[{"protocol":"trojan","settings":{"servers":[{$}]}}]}"#, &[
        ("address", r#""address":"127.0.0.1","port":1,"password":"p""#, r#""address":"127.0.0.2","port":1,"password":"p""#, Applied),
        ("port", r#""address":"127.0.0.1","port":1,"password":"p""#, r#""address":"127.0.0.1","port":2,"password":"p""#, Applied),
        ("password", r#""address":"127.0.0.1","port":1,"password":"p""#, r#""address":"127.0.0.1","port":1,"password":"q""#, Applied),
        ("flow", r#""address":"127.0.0.1","port":1,"password":"p""#, r#""address":"127.0.0.1","port":1,"password":"p","flow":"xtls-rprx-vision""#, Named),
        ("level", r#""address":"127.0.0.1","port":1,"password":"p""#, r#""address":"127.0.0.1","port":1,"password":"p","level":7"#, Named),
        ("email", r#""address":"127.0.0.1","port":1,"password":"p""#, r#""address":"127.0.0.1","port":1,"password":"p","email":"a""#, Read)]),
    ("shadowsocks outbound settings", r#"{"outbounds":[{"protocol":"shadowsocks","settings":{$}}]}"#, &[
        ("servers", r#""servers":[{"address":"127.0.0.1","port":1,"method":"aes-128-gcm","password":"p"}]"#, r#""servers":[{"address":"127.0.0.2","port":1,"method":"aes-128-gcm","password":"p"}]"#, Applied)]),
    ("shadowsocks outbound settings.servers[]", r#"{"outbounds":[{"protocol":"shadowsocks","settings":{"servers":[{$}]}}]}"#, &[
        ("address", r#""address":"127.0.0.1","port":1,"method":"aes-128-gcm","password":"p""#, r#""address":"127.0.0.2","port":1,"method":"aes-128-gcm","password":"p""#, Applied),
        ("port", r#""address":"127.0.0.1","port":1,"method":"aes-128-gcm","password":"p""#, r#""address":"127.0.0.1","port":2,"method":"aes-128-gcm","password":"p""#, Applied),
        ("password", r#""address":"127.0.0.1","port":1,"method":"aes-128-gcm","password":"p""#, r#""address":"127.0.0.1","port":1,"method":"aes-128-gcm","password":"q""#, Applied),
        ("method", r#""address":"127.0.0.1","port":1,"method":"aes-128-gcm","password":"p""#, r#""address":"127.0.0.1","port":1,"method":"aes-256-gcm","password":"p""#, Applied),
        ("level", r#""address":"127.0.0.1","port":1,"method":"aes-128-gcm","password":"p""#, r#""address":"127.0.0.1","port":1,"method":"aes-128-gcm","password":"p","level":7"#, Named),
        ("email", r#""address":"127.0.0.1","port":1,"method":"aes-128-gcm","password":"p""#, r#""address":"127.0.0.1","port":1,"method":"aes-128-gcm","password":"p","email":"a""#, Read)]),
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
        ("pass", r#""user":"a","pass":"b""#, r#""user":"a","pass":"cd""#, Applied),
        ("level", r#""user":"a","pass":"b""#, r#""user":"a","pass":"b","level":7"#, Named),
        ("email", r#""user":"a","pass":"b""#, r#""user":"a","pass":"b","email":"e""#, Read)]),
];
