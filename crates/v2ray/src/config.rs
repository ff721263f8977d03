//! `config.json`, parsed into valid types.
