//! Share links: `vless://`, `vmess://` and their kin.
