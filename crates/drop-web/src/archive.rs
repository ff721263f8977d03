//! Folders as one file, made while it is sent.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use rustix::io::Errno;
use sealway_drop::names::RelPath;
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use crate::path::Format;
use crate::shared::{Found, Member, Shared, read_at};
use crate::waited::Waited;
use crate::zip::Zip;
use crate::{tar, zip};

/// What is read of a file at once.
const BUFFER: usize = 256 << 10;
/// Such pieces that wait to be sent.
const WAITING: usize = 4;

/// An archive that is ready to be made.
pub(crate) struct Archive {
    format: Format,
    /// Names in the archive, with what they stand for. The first is the folder itself, which is no member.
    members: Vec<(Vec<u8>, Option<Member>)>,
    /// The length of the whole.
    pub(crate) length: u64,
}

impl Archive {
    /// Of a folder and all that is below it. `None` if that is too much, [`Errno::CANCELED`] if nobody waits any more.
    pub(crate) fn new(
        shared: &Shared,
        path: Option<&RelPath>,
        format: Format,
        waited: &Waited,
    ) -> Result<Option<Archive>, Errno> {
        let Some(found) = shared.walk(path, waited)? else {
            return Ok(None);
        };
        let depth = path.map_or(0, RelPath::depth);
        let top = path.map_or(&*shared.name, RelPath::name);
        let mut members = vec![([top, b"/"].concat(), None)];
        members.extend(found.into_iter().map(|member| {
            let mut name = top.to_vec();
            for component in member.path.components().skip(depth) {
                name.push(b'/');
                name.extend_from_slice(component);
            }
            if member.size.is_none() {
                name.push(b'/');
            }
            (name, Some(member))
        }));
        let length = match format {
            Format::Zip => zip::length(members.iter().map(|(name, member)| in_zip(name, member.as_ref()))),
            Format::Tar => tar::length(members.iter().map(|(name, member)| (&**name, size(member.as_ref())))),
        };
        Ok(Some(Archive {
            format,
            members,
            length,
        }))
    }

    /// Makes it, in a thread that ends when nobody takes what it makes, and with it its permit. A file that became shorter or went away
    /// breaks it off.
    pub(crate) fn make(self, shared: Arc<Shared>, permit: OwnedSemaphorePermit) -> mpsc::Receiver<io::Result<Bytes>> {
        let (to, made) = mpsc::channel(WAITING);
        tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let mut out = Out { to: &to };
            if let Err(error) = self.write(&shared, &mut out) {
                let _ = to.blocking_send(Err(error));
            }
        });
        made
    }

    fn write(self, shared: &Shared, out: &mut Out<'_>) -> io::Result<()> {
        let mut zip = Zip::default();
        for (name, member) in &self.members {
            let in_zip = in_zip(name, member.as_ref());
            let head = match self.format {
                Format::Zip => zip.begin(&in_zip),
                Format::Tar => tar::begin(name, in_zip.size, in_zip.modified),
            };
            out.push(head)?;
            let crc = match member {
                Some(member) if member.size.is_some() => content(shared, member, self.format, out)?,
                _ => 0,
            };
            let tail = match self.format {
                Format::Zip => zip.end(&in_zip, crc),
                Format::Tar => vec![0; tar::padding(in_zip.size)],
            };
            out.push(tail)?;
        }
        out.push(match self.format {
            Format::Zip => zip.finish(),
            Format::Tar => tar::END.to_vec(),
        })
    }
}

/// Where it goes.
struct Out<'a> {
    to: &'a mpsc::Sender<io::Result<Bytes>>,
}

impl Out<'_> {
    fn push(&mut self, bytes: Vec<u8>) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let gone = |_| io::ErrorKind::BrokenPipe.into();
        self.to.blocking_send(Ok(bytes.into())).map_err(gone)
    }
}

fn content(shared: &Shared, member: &Member, format: Format, out: &mut Out<'_>) -> io::Result<u32> {
    let Found::File(opened) = shared.find(Some(&member.path))? else {
        return Err(io::ErrorKind::NotFound.into());
    };
    let mut crc = crc32fast::Hasher::new();
    let (mut at, size) = (0, member.size.unwrap_or(0));
    while at < size {
        let mut buffer = vec![0; usize::try_from(size - at).unwrap_or(BUFFER).min(BUFFER)];
        let count = read_at(&opened.file, &mut buffer, at)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        buffer.truncate(count);
        if format == Format::Zip {
            crc.update(&buffer);
        }
        at += count as u64;
        out.push(buffer)?;
    }
    Ok(crc.finalize())
}

fn size(member: Option<&Member>) -> u64 {
    member.and_then(|member| member.size).unwrap_or(0)
}

fn in_zip<'a>(name: &'a [u8], member: Option<&Member>) -> zip::Member<'a> {
    let modified = member.map_or(0, |member| member.modified);
    zip::Member {
        name,
        size: size(member),
        modified,
        dos: dos(modified),
    }
}

/// Date and time as MS-DOS has them, in UTC: 1980 is the earliest year, 2107 the last.
fn dos(seconds: i64) -> (u16, u16) {
    let earliest = (1 << 5 | 1, 0);
    let Ok(time) = Timestamp::from_second(seconds) else {
        return earliest;
    };
    let time = time.to_zoned(TimeZone::UTC);
    let Ok(year @ 0..=127) = u16::try_from(time.year() - 1980) else {
        return earliest;
    };
    let number = |number: i8| u16::try_from(number).unwrap_or(0);
    let date = year << 9 | number(time.month()) << 5 | number(time.day());
    let clock = number(time.hour()) << 11 | number(time.minute()) << 5 | (number(time.second()) / 2);
    (date, clock)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_dos() {
        assert_eq!(dos(1_000_000_000), (0x2b29, 0x0dd4));
        assert_eq!(dos(0), (33, 0));
        assert_eq!(dos(i64::MAX), (33, 0));
        assert_eq!(dos(4_354_819_200), (33, 0), "2108");
    }
}
