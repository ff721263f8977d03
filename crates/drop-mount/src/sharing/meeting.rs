//! What the ends of a session tell each other first: who shares, who mounts, and who changes what.

use super::Options;
use crate::changes;
use sealway_drop::Error;
use sealway_drop::link::{Reader, Writer};
use sealway_drop::wire::control::{self, Hello, Role};
use sealway_drop::wire::talk::greet_or_part;

/// What the other end does.
pub(super) struct Theirs {
    pub(super) shares: bool,
    pub(super) mounts: bool,
    pub(super) bulk: bool,
    pub(super) again: bool,
    /// Whether it changes what it mounts.
    pub(super) writes: bool,
    /// Whether it looks for direct paths.
    pub(super) direct: bool,
}

/// `None` if the other end is done already. `again` and `direct`: whether this end can come together again, and looks for direct paths.
pub(super) fn meet(
    options: &Options,
    (again, direct): (bool, bool),
    reader: &mut Reader,
    writer: &mut Writer,
) -> Result<Option<Theirs>, Error> {
    let (shares, mounts) = (options.share.is_some(), options.mount.is_some());
    let ours = Hello {
        version: control::VERSION,
        role: Role::Share as i32,
        shares,
        mounts,
        bulk: true,
        again,
        writable: if shares && options.writable.is_some() {
            changes::VERSION
        } else {
            0
        },
        writes: if mounts && options.mounting.writable {
            changes::VERSION
        } else {
            0
        },
        direct,
    };
    let Some(hello) = greet_or_part(writer, reader, ours)? else {
        return Ok(None);
    };
    if hello.role != Role::Share as i32 {
        return Err(Error::Usage(
            "the other end sends or receives files: share and mount go together".into(),
        ));
    }
    if mounts && !hello.shares {
        return Err(Error::Usage(
            "the other end shares nothing that could be mounted".into(),
        ));
    }
    if mounts && options.mounting.writable && hello.writable != changes::VERSION {
        return Err(Error::Usage(match hello.writable {
            0 => "the other end shares its folder read-only: it must say --writable, in a version that knows it; \
                  without --writable here, the folder is mounted read-only"
                .into(),
            version => format!(
                "the other end takes changes in version {version}, this end makes them in version {}",
                changes::VERSION
            ),
        }));
    }
    if !mounts && !hello.mounts {
        return Err(Error::Usage("the other end does not mount what is shared".into()));
    }
    Ok(Some(Theirs {
        shares: hello.shares,
        mounts: hello.mounts,
        bulk: hello.bulk,
        again: hello.again,
        writes: hello.writes == changes::VERSION,
        direct: hello.direct,
    }))
}
