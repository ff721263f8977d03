//! What ends the help of the file drop's commands: exit codes, environment, and an example for each use.

use crate::exit::Exit;

/// How a transfer, a share or a mount ends.
const EXITS: [(Exit, &str); 9] = [
    (Exit::Done, "everything is in place, and what came is verified"),
    (Exit::Internal, Exit::Internal.words()),
    (
        Exit::Usage,
        "the command line is wrong, or an end was told something that does not fit",
    ),
    (Exit::Verification, "what arrived is not what was announced"),
    (Exit::Remote, "the other end refused, or the connection was lost"),
    (Exit::Identity, Exit::Identity.words()),
    (Exit::Storage, Exit::Storage.words()),
    (Exit::Partial, Exit::Partial.words()),
    (Exit::Interrupted, "interrupted"),
];

const ENVIRONMENT: &str = "\
Environment:
  SEALWAY_CODE        the code phrase, for both ends; never give it on the command line, where others see it
  SEALWAY_RELAY       relay that is used where no address is given (HOST:PORT)
  SEALWAY_NOTIFY      never, or always: whether the desktop says that a transfer has ended (default: one of ten seconds or more)
  SEALWAY_PIN         the PIN of this end with --pin; LocalSend: the PIN of the device that is sent to or fetched from
  SEALWAY_CONFIG_DIR  folder of this machine's key, certificate and known keys (default: ~/.config/sealway)";

pub(super) const SEND: &str = "\
Examples:
  sealway send holiday/ notes.txt                         show a code, which the other end types
  sealway send --relay relay.example.org:26600 holiday/   through a relay
  sealway send --connect ann.example.org:4000 holiday/    to an end that waits at an address
  sealway send --peer ann --listen 0.0.0.0:4000 holiday/  to a key that is known
  pg_dump shop | sealway send - --name shop.sql           what another program prints
  sealway send --localsend phone photo.jpg                to a phone that has the app LocalSend
  sealway send --localsend phone --text \"see you at 8\"    a message to it";

pub(super) const RECEIVE: &str = "\
Examples:
  sealway receive                                         ask for the code of the other end
  sealway receive incoming --create                       into a folder of its own
  sealway receive --relay relay.example.org:26600         through a relay
  sealway receive --listen 0.0.0.0:4000                   wait at an address
  sealway receive --listen 0.0.0.0:4000 --peer ben --yes  from a key that is known; asks nobody
  sealway receive --localsend incoming                    from a phone that has the app LocalSend
  sealway receive --http incoming                         from someone with nothing but a browser";

pub(super) const SHARE: &str = "\
Examples:
  sealway share photos/                                   show a code, with which it is mounted
  sealway share --relay relay.example.org:26600 photos/   through a relay
  sealway share --writable project/                       let the other end change it
  sealway share --mount theirs ours/                      and mount what the other end shares
  sealway share --peer ann --listen 0.0.0.0:4000 photos/  to a key that is known
  sealway share --http photos/                            to someone who has nothing but a browser";

pub(super) const MOUNT: &str = "\
Examples:
  sealway mount remote                                            ask for the code of the other end
  sealway mount remote --relay relay.example.org:26600            through a relay
  sealway mount remote --connect ann.example.org:4000             an end that waits at an address
  sealway mount remote --peer ann --connect ann.example.org:4000  an end whose key is known
  sealway mount remote --writable                                 change files, if they may be
  sealway mount remote --cache ~/.cache/sealway                   keep copies of what was read";

pub(super) const PAIR: &str = "\
Examples:
  sealway pair mine/ theirs/                                  show a code
  sealway pair mine/ theirs/ --join                           at the other end: ask for the code
  sealway pair mine/ theirs/ --relay relay.example.org:26600  through a relay; the same at both ends";

pub(super) const LOCALSEND: &str = "\
Examples:
  sealway localsend --output incoming        ask about every offer
  sealway localsend devices                  list who is there
  sealway localsend remember phone           know a device by its certificate
  sealway localsend --output incoming --yes  take what remembered devices offer
  sealway localsend --yes --anyone --pin     take what anyone offers who knows the PIN";

/// What ends the short help: how the command may end, and examples.
pub(super) fn short(examples: &str) -> String {
    format!("{}\n\n{examples}", Exit::help_of(&EXITS))
}

/// What ends the long help.
pub(super) fn long(examples: &str) -> String {
    format!("{}\n\n{ENVIRONMENT}\n\n{examples}", Exit::help_of(&EXITS))
}
