//! Keys of `realitySettings`.

use super::Becomes::*;
use super::Group;

/// What an inbound needs. It stands for `SERVER` in the rows.
pub(super) const SERVER: &str = r#""target":"a.test:443","serverNames":["a.test"],"privateKey":"AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA","shortIds":["aa"]"#;
/// What an outbound needs. It stands for `CLIENT` in the rows.
pub(super) const CLIENT: &str = r#""publicKey":"B6N8vBQgk8i3VdwbEOhstCY3StFqqFPtC9_AsrhtHHw""#;

#[rustfmt::skip]
pub(super) const GROUPS: &[Group] = &[
    ("streamSettings", r#"{OUT,"inbounds":[{"port":1,"protocol":"vless","settings":{"clients":[{"id":"ID"}],"decryption":"none"},"streamSettings":{"security":"reality",$}}]}"#, &[
        ("realitySettings", r#""realitySettings":{SERVER}"#, r#""realitySettings":{SERVER,"xver":1}"#, Applied)]),
    ("streamSettings.realitySettings", r#"{OUT,"inbounds":[{"port":1,"protocol":"vless","settings":{"clients":[{"id":"ID"}],"decryption":"none"},"streamSettings":{"security":"reality","realitySettings":{$}}}]}"#, &[
        ("target", r#""serverNames":["a.test"],"privateKey":"AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA","shortIds":["aa"],"target":"a.test:443""#, r#""serverNames":["a.test"],"privateKey":"AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA","shortIds":["aa"],"target":"b.test:443""#, Applied),
        ("type", r#""target":"a.test:443","serverNames":["a.test"],"privateKey":"AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA","shortIds":["aa"]"#, r#""target":"a.test:443","serverNames":["a.test"],"privateKey":"AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA","shortIds":["aa"],"type":"tcp""#, Read),
        ("xver", r#"SERVER"#, r#"SERVER,"xver":1"#, Applied),
        ("serverNames", r#""target":"a.test:443","privateKey":"AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA","shortIds":["aa"],"serverNames":["a.test"]"#, r#""target":"a.test:443","privateKey":"AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA","shortIds":["aa"],"serverNames":["b.test"]"#, Applied),
        ("privateKey", r#""target":"a.test:443","serverNames":["a.test"],"shortIds":["aa"],"privateKey":"AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA""#, r#""target":"a.test:443","serverNames":["a.test"],"shortIds":["aa"],"privateKey":"B6N8vBQgk8i3VdwbEOhstCY3StFqqFPtC9_AsrhtHHw""#, Applied),
        ("shortIds", r#""target":"a.test:443","serverNames":["a.test"],"privateKey":"AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA","shortIds":["aa"]"#, r#""target":"a.test:443","serverNames":["a.test"],"privateKey":"AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA","shortIds":["bb"]"#, Applied),
        ("minClientVer", r#"SERVER"#, r#"SERVER,"minClientVer":"1.8""#, Applied),
        ("maxClientVer", r#"SERVER"#, r#"SERVER,"maxClientVer":"26.3.27""#, Applied),
        ("maxTimeDiff", r#"SERVER"#, r#"SERVER,"maxTimeDiff":60000"#, Applied),
        ("mldsa65Seed", r#"SERVER"#, r#"SERVER,"mldsa65Seed":"B6N8vBQgk8i3VdwbEOhstCY3StFqqFPtC9_AsrhtHHw""#, Applied),
        ("limitFallbackUpload", r#"SERVER"#, r#"SERVER,"limitFallbackUpload":{"bytesPerSec":9}"#, Applied),
        ("limitFallbackDownload", r#"SERVER"#, r#"SERVER,"limitFallbackDownload":{"bytesPerSec":9}"#, Applied),
        ("masterKeyLog", r#"SERVER"#, r#"SERVER,"masterKeyLog":"/k""#, Named)]),
    ("streamSettings.realitySettings", r#"{"outbounds":[{"protocol":"vless","settings":{"vnext":[{"address":"127.0.0.1","port":1,"users":[{"id":"ID","encryption":"none"}]}]},"streamSettings":{"security":"reality","realitySettings":{$}}}]}"#, &[
        ("serverName", r#"CLIENT"#, r#"CLIENT,"serverName":"b.test""#, Applied),
        ("fingerprint", r#"CLIENT"#, r#"CLIENT,"fingerprint":"firefox""#, Named),
        ("password", r#""password":"B6N8vBQgk8i3VdwbEOhstCY3StFqqFPtC9_AsrhtHHw""#, r#""password":"AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA""#, Applied),
        ("shortId", r#"CLIENT"#, r#"CLIENT,"shortId":"aa""#, Applied),
        ("mldsa65Verify", r#"CLIENT"#, r#"CLIENT,"mldsa65Verify":"VERIFY""#, Applied),
        ("spiderX", r#"CLIENT"#, r#"CLIENT,"spiderX":"/p""#, Applied)]),
    ("realitySettings.limitFallback", r#"{OUT,"inbounds":[{"port":1,"protocol":"vless","settings":{"clients":[{"id":"ID"}],"decryption":"none"},"streamSettings":{"security":"reality","realitySettings":{SERVER,"limitFallbackUpload":{$}}}}]}"#, &[
        ("afterBytes", r#""bytesPerSec":9"#, r#""bytesPerSec":9,"afterBytes":7"#, Applied),
        ("bytesPerSec", r#""bytesPerSec":9"#, r#""bytesPerSec":8"#, Applied),
        ("burstBytesPerSec", r#""bytesPerSec":9"#, r#""bytesPerSec":9,"burstBytesPerSec":70"#, Applied)]),
];
