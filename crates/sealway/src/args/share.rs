//! Arguments of `share`, `mount` and `pair`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum, ValueHint};

use super::after;
use super::drop::{Guard, Link};
use super::web::Web;

/// Show a folder to someone, who mounts it
///
/// The other end runs `sealway mount`. It may read all that is in the folder, and nothing else, and change it only with --writable;
/// symbolic links are shown and not followed. With --mount, the folder that the other end shares is mounted here at the same time.
///
/// With --http, someone reads it in a browser, until Ctrl-C; files can be shared so, too, and several of both.
#[derive(Args, Debug)]
#[command(after_help = after::short(after::SHARE), after_long_help = after::long(after::SHARE))]
// What is of transfers alone.
#[command(mut_arg("connections", |arg| arg.hide(true)), mut_arg("hash", |arg| arg.hide(true)), mut_arg("via", |arg| arg.hide(true)),
    mut_arg("no_notify", |arg| arg.hide(true)))]
#[command(group = ArgGroup::new("reaching").args(["writable", "http"]))]
#[command(mut_arg("keep_free", |arg| arg.requires("writable")))]
#[command(mut_arg("pin", |arg| arg.requires("http").help_heading("With a browser")), mut_arg("hidden", |arg| arg.requires("reaching").help(
    "With --http: also show names that begin with a dot; with --writable: let the other end also change those right in a home directory")))]
pub(crate) struct Share {
    /// The folder; with --http also files, and several of both
    #[arg(value_name = "DIR", required = true, value_hint = ValueHint::AnyPath)]
    pub(crate) paths: Vec<PathBuf>,

    /// Also mount the folder of the other end here
    #[arg(long, value_name = "MOUNTPOINT", conflicts_with = "http", value_hint = ValueHint::DirPath)]
    pub(crate) mount: Option<PathBuf>,

    /// Let the other end change DIR; =both also lets programs change what --mount shows, if the other end allows it
    #[arg(long, value_name = "WHAT", num_args = 0..=1, require_equals = true, default_missing_value = "share", conflicts_with = "http")]
    pub(crate) writable: Option<Direction>,

    #[command(flatten)]
    pub(crate) changing: Changing,

    #[command(flatten)]
    pub(crate) mounting: Mounting,

    #[command(flatten)]
    pub(crate) link: Link,

    #[command(flatten)]
    pub(crate) web: Web,

    #[command(flatten)]
    pub(crate) guard: Guard,

    /// Let files be sent into the folder as well; nothing there is replaced
    #[arg(long, requires = "http", help_heading = "With a browser")]
    pub(crate) allow_upload: bool,
}

/// Mount the folder that someone shows
///
/// The folder is read-only, unless both ends say --writable, and appears at MOUNTPOINT until the other end stops, or this one does (Ctrl-C, or umount). What
/// cannot be read is an error of reading, never data cut short.
#[derive(Args, Debug)]
#[command(after_help = after::short(after::MOUNT), after_long_help = after::long(after::MOUNT))]
// What is of transfers alone.
#[command(mut_arg("connections", |arg| arg.hide(true)), mut_arg("hash", |arg| arg.hide(true)), mut_arg("via", |arg| arg.hide(true)),
    mut_arg("no_notify", |arg| arg.hide(true)))]
#[command(mut_arg("hidden", |arg| arg.requires("writable")), mut_arg("keep_free", |arg| arg.requires("writable")))]
pub(crate) struct Mount {
    /// An empty folder
    #[arg(value_name = "MOUNTPOINT", value_hint = ValueHint::DirPath)]
    pub(crate) mountpoint: PathBuf,

    /// Also show a folder of this end
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) share: Option<PathBuf>,

    /// Let programs change what is mounted, if the other end allows it; =both also lets the other end change what --share shows
    #[arg(long, value_name = "WHAT", num_args = 0..=1, require_equals = true, default_missing_value = "mount")]
    pub(crate) writable: Option<Direction>,

    #[command(flatten)]
    pub(crate) changing: Changing,

    #[command(flatten)]
    pub(crate) mounting: Mounting,

    #[command(flatten)]
    pub(crate) link: Link,
}

/// Work in a folder of someone, and let them work in one of yours
///
/// Each end owns DIR, and finds the folder of the other one at MOUNTPOINT, to read and to write. The other end can change and delete all that
/// is in DIR, and nothing else. The first end shows a code; the second one says --join. It lasts until either end stops (Ctrl-C, or umount).
#[derive(Args, Debug)]
#[command(after_help = after::short(after::PAIR), after_long_help = after::long(after::PAIR))]
// What is of transfers and of one direction alone.
#[command(mut_arg("connections", |arg| arg.hide(true)), mut_arg("hash", |arg| arg.hide(true)), mut_arg("via", |arg| arg.hide(true)),
    mut_arg("no_notify", |arg| arg.hide(true)))]
pub(crate) struct Pair {
    /// The folder of this end
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) folder: PathBuf,

    /// An empty folder, where that of the other end appears
    #[arg(value_name = "MOUNTPOINT", value_hint = ValueHint::DirPath)]
    pub(crate) mountpoint: PathBuf,

    /// Come to the end that shows the code
    #[arg(long)]
    pub(crate) join: bool,

    #[command(flatten)]
    pub(crate) changing: Changing,

    #[command(flatten)]
    pub(crate) mounting: MountAt,

    #[command(flatten)]
    pub(crate) link: Link,
}

/// What may be changed.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Direction {
    /// The folder of this end, by the other end
    Share,
    /// The folder of the other end, by programs of this one
    Mount,
    /// Both
    Both,
}

/// What an end that may change a folder is kept from.
#[derive(Args, Debug)]
pub(crate) struct Changing {
    /// Room that stays free on the disk of a folder that the other end may change, such as 500M or 10G
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = super::values::size)]
    pub(crate) keep_free: u64,

    /// Let the other end also change names that begin with a dot right in a home directory, such as .ssh
    #[arg(long)]
    pub(crate) hidden: bool,
}

/// How a folder is mounted.
#[derive(Args, Debug)]
pub(crate) struct MountAt {
    /// Let other users of this machine read it (needs user_allow_other in /etc/fuse.conf, or root)
    #[arg(long)]
    pub(crate) allow_other: bool,

    /// Mount over a folder that is not empty
    #[arg(long)]
    pub(crate) nonempty: bool,

    /// How long an end that was lost is looked for; 0: not at all. What is read meanwhile waits for a minute
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    pub(crate) reconnect: u64,
}

/// The same where it may be read-only.
#[derive(Args, Debug)]
pub(crate) struct Mounting {
    #[command(flatten)]
    pub(crate) at: MountAt,

    /// Keep whole files that were read in this folder, for the next time; what came by a code goes with the mount
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) cache: Option<PathBuf>,

    /// How much is kept, such as 500M, 4G or 1T; what was used least recently goes first
    #[arg(long, value_name = "SIZE", default_value = "4G", value_parser = super::values::size, requires = "cache")]
    pub(crate) cache_size: u64,
}
