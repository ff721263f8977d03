//! The workload `primitives`: four suites, sealing, opening, key set-up and a fresh key per message, on one thread.
//!
//! Case parameters: `suite` (its name), `op` (`seal`, `open`, `key-setup`, `fresh-key`), `bytes` (message length; absent
//! for `key-setup`), `aad` (bytes). Metrics: `throughput` in B/s (higher is better) and `time_per_op` in s/op (lower) for
//! messages, `setup_time` in s/op (lower) for `key-setup`.
