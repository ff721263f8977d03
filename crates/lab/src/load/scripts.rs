//! The exchanges of the workloads.

use super::script::{Ending, KeyPlace, Message, Script, Side};

/// Bytes of a reply's body.
pub(crate) const BODY: usize = 1024;

const fn client(head: &'static [u8], body: usize) -> Message {
    Message {
        from: Side::Client,
        head,
        body,
    }
}

const fn server(head: &'static [u8], body: usize) -> Message {
    Message {
        from: Side::Server,
        head,
        body,
    }
}

/// `GET` with a reply of [`BODY`] bytes, on a connection that is kept.
pub(crate) const HTTP_KEEP: Script = Script {
    messages: &[
        client(b"GET /0000000000000000 HTTP/1.1\r\nHost: lab.invalid\r\n\r\n", 0),
        server(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: 1024\r\n\r\n",
            BODY,
        ),
    ],
    key: KeyPlace::Hex(5),
    ending: Ending::Stays,
};

/// The same on a connection of its own.
pub(crate) const HTTP_CLOSE: Script = Script {
    messages: &[
        client(
            b"GET /0000000000000000 HTTP/1.1\r\nHost: lab.invalid\r\nConnection: close\r\n\r\n",
            0,
        ),
        server(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: 1024\r\nConnection: close\r\n\r\n",
            BODY,
        ),
    ],
    key: KeyPlace::Hex(5),
    ending: Ending::ServerCloses,
};

/// A short connection with the sizes of one that carries TLS and a small page.
pub(crate) const FLOW: Script = Script {
    messages: &[
        client(b"", 517),
        server(b"", 3200),
        client(b"", 64),
        client(b"", 350),
        server(b"", 2048),
    ],
    key: KeyPlace::Word,
    ending: Ending::ClientCloses,
};

/// The same with the first two flights of a key exchange that resists quantum computers.
pub(crate) const FLOW_PQ: Script = Script {
    messages: &[
        client(b"", 1750),
        server(b"", 4400),
        client(b"", 64),
        client(b"", 350),
        server(b"", 2048),
    ],
    key: KeyPlace::Word,
    ending: Ending::ClientCloses,
};

/// The first two flights of a flow; then the connection lies idle.
pub(crate) const HOLD: Script = Script {
    messages: &[client(b"", 517), server(b"", 3200)],
    key: KeyPlace::Word,
    ending: Ending::Stays,
};
