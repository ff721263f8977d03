use crate::settings::{FallbackDial, Secret, ServerReality};

use super::*;

fn reality() -> ServerReality {
    ServerReality {
        target: FallbackDial::Local(443),
        xver: 0,
        server_names: vec!["a.test".to_owned()],
        private_key: Secret([1; 32]),
        short_ids: vec![[0; 8]],
        min_client_version: None,
        max_client_version: None,
        max_time_diff: None,
        mldsa65_seed: None,
        limit_upload: None,
        limit_download: None,
        key_log: None,
    }
}

#[test]
fn with_reality_the_kernel_probes_nobody_unless_that_is_asked_for() {
    let seven = Some(Duration::from_secs(7));
    let chosen = |idle, interval| SocketOptions {
        keep_alive_idle: idle,
        keep_alive_interval: interval,
        ..SocketOptions::default()
    };
    for (socket, silent) in [
        (chosen(None, None), true),
        (chosen(seven, None), false),
        (chosen(None, seven), false),
    ] {
        let mut transport = ServerTransport {
            socket,
            reality: Some(Box::new(reality())),
            ..ServerTransport::default()
        };
        assert_eq!(listener_options(&transport).no_keep_alive, silent);
        transport.reality = None;
        assert!(!listener_options(&transport).no_keep_alive);
    }
}
