//! Handshake and records of the file drop, with no I/O, no clock and no randomness of its own.

#![forbid(unsafe_code)]
