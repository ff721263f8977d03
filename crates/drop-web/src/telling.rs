//! What is told of a server to whoever runs it.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A download, or a part of one, that is over.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Download {
    /// The path below what is shared, with slashes; of an archive that of its folder, with its format.
    pub path: Vec<u8>,
    /// Who asked.
    pub client: IpAddr,
    /// Bytes that were asked for.
    pub wanted: u64,
    /// Bytes that went out.
    pub sent: u64,
}

/// A file that came.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Upload {
    /// The path under which it is in the folder now.
    pub path: Vec<u8>,
    /// Who sent it.
    pub client: IpAddr,
    /// Its size.
    pub bytes: u64,
}

/// Hears what happens. Calls come from several threads and must not take long.
pub trait Telling: Send + Sync {
    /// A download ended, whole or not.
    fn sent(&self, download: &Download);
    /// A file is in place.
    fn received(&self, upload: &Upload);
    /// An upload was refused, or broke off: the path, by whom, why.
    fn not_received(&self, path: &[u8], client: IpAddr, why: &str);
    /// The PIN was wrong so often that nobody gets in by it any more.
    fn locked(&self);
    /// Clients have so many seconds to end.
    fn stopping(&self, seconds: u64);
}

/// Says nothing.
#[derive(Clone, Copy, Debug)]
pub struct Quiet;

impl Telling for Quiet {
    fn sent(&self, _: &Download) {}
    fn received(&self, _: &Upload) {}
    fn not_received(&self, _: &[u8], _: IpAddr, _: &str) {}
    fn locked(&self) {}
    fn stopping(&self, _: u64) {}
}

/// Tells of a download when nobody has anything of it to send any more.
pub(crate) struct Report {
    telling: Arc<dyn Telling>,
    download: Download,
    sent: AtomicU64,
}

impl Report {
    pub(crate) fn new(telling: &Arc<dyn Telling>, download: Download) -> Arc<Report> {
        Arc::new(Report {
            telling: Arc::clone(telling),
            download,
            sent: AtomicU64::new(0),
        })
    }

    /// So many bytes more went out.
    pub(crate) fn sent(&self, bytes: u64) {
        self.sent.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        self.download.sent = *self.sent.get_mut();
        self.telling.sent(&self.download);
    }
}
