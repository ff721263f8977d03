//! What is offered: files with their names, types, times and hashes.

use std::collections::HashSet;
use std::sync::Arc;

use sealway_drop_transfer::entry::{Entry, Kind};
use sealway_drop_transfer::source::Scan;
use sha2::{Digest, Sha256};
use tokio::sync::watch;

use super::Sender;
use crate::error::blocking;
use crate::fingerprint::Fingerprint;
use crate::message::{File, Metadata};
use crate::names;

impl Sender {
    /// The files that can be offered. One warning a kind says what LocalSend cannot carry.
    pub(super) async fn offer(
        self: &Arc<Self>,
        scan: &Arc<Scan>,
        hash: bool,
    ) -> Result<Vec<(String, File, Option<Entry>)>, sealway_drop::Error> {
        let (sender, scan) = (self.clone(), scan.clone());
        let listing = blocking(move || {
            let mut offer = Vec::new();
            let (mut links, mut parents) = (0, HashSet::new());
            for entry in &scan.entries {
                parents.extend(entry.path.parent());
            }
            let mut empty = 0;
            for entry in &scan.entries {
                let size = match &entry.kind {
                    Kind::File { size, .. } => *size,
                    Kind::Symlink { .. } => {
                        links += 1;
                        continue;
                    }
                    Kind::Directory => {
                        empty += u64::from(!parents.contains(&entry.path));
                        continue;
                    }
                };
                let Some(name) = names::offered(&entry.path) else {
                    sender.failed(
                        entry,
                        "its name cannot be said in LocalSend: it is not UTF-8, or has a \\ in it",
                    );
                    continue;
                };
                let sha256 = match hash {
                    true => match hashed(&scan, entry, &sender.stopped) {
                        Ok(hash) => Some(hash.to_string().to_lowercase()),
                        Err(why) => {
                            sender.failed(entry, &why);
                            continue;
                        }
                    },
                    false => None,
                };
                let id = offer.len().to_string();
                let file = File {
                    id: id.clone(),
                    file_type: kind(&name).into(),
                    file_name: name,
                    size,
                    sha256,
                    preview: None,
                    metadata: Metadata::of(entry.mtime),
                };
                offer.push((id, file, Some(entry.clone())));
            }
            for (count, what) in [(links, "symbolic link"), (empty, "empty folder")] {
                if count > 0 {
                    let s = if count == 1 { "" } else { "s" };
                    sender.left_out(format!("{count} {what}{s}, which LocalSend cannot carry"), count);
                }
            }
            offer
        });
        let offer = listing.await?;
        match *self.stopped.borrow() {
            true => Err(sealway_drop::Error::Cancelled),
            false => Ok(offer),
        }
    }
}

fn hashed(scan: &Scan, entry: &Entry, stopped: &watch::Receiver<bool>) -> Result<Fingerprint, String> {
    let file = scan.open(entry).map_err(|error| error.to_string())?;
    let (mut hash, mut at, mut buffer) = (Sha256::new(), 0, vec![0; 1 << 20]);
    while at < file.size() {
        if *stopped.borrow() {
            return Err("stopped".into());
        }
        let len = usize::try_from(file.size() - at)
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        let piece = buffer.get_mut(..len).unwrap_or_default();
        file.read_at(piece, at).map_err(|error| error.to_string())?;
        hash.update(piece);
        at += len as u64;
    }
    Ok(Fingerprint::from_hash(hash.finalize().into()))
}

/// The MIME type that goes with a name, for what phones show in their own ways; anything else is bytes.
fn kind(name: &str) -> &'static str {
    let end = name.rsplit_once('.').map(|(_, end)| end.to_ascii_lowercase());
    match end.as_deref() {
        Some("jpg" | "jpeg") => "image/jpeg",
        Some("png") => "image/png",
        Some("gif") => "image/gif",
        Some("webp") => "image/webp",
        Some("heic") => "image/heic",
        Some("mp4" | "m4v") => "video/mp4",
        Some("mov") => "video/quicktime",
        Some("mkv") => "video/x-matroska",
        Some("mp3") => "audio/mpeg",
        Some("pdf") => "application/pdf",
        Some("txt") => "text/plain",
        Some("apk") => "application/vnd.android.package-archive",
        Some("zip") => "application/zip",
        _ => "application/octet-stream",
    }
}
