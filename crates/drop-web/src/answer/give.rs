//! Folders, files and archives are given out.

use std::num::NonZeroU64;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_SECURITY_POLICY,
    CONTENT_TYPE, ETAG, HeaderName, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, LAST_MODIFIED, LOCATION,
    RANGE,
};
use hyper::{Method, Request, Response, StatusCode};
use rustix::fs::Advice;
use rustix::io::Errno;
use sealway_drop::names::RelPath;

use super::{Answer, Client, No, VIEWER, Web, broken, page};
use crate::archive::Archive;
use crate::body::Body;
use crate::head::{self, Conditions};
use crate::media;
use crate::page::{Folder, Line, folder, sort};
use crate::path::{Format, Target, encoded};
use crate::shared::{Found, MAX_MEMBERS, Opened, Shared};
use crate::telling::{Download, Report};
use crate::waited;

/// What was found, with all that takes time done.
enum Ready {
    Listing(Vec<Line>, usize),
    File(Opened),
    /// A folder that was asked for without its slash.
    Elsewhere,
}

pub(super) async fn give(
    web: &Arc<Web>,
    client: &Client,
    request: &Request<Incoming>,
    target: Target,
) -> Result<Answer, No> {
    let Some(shared) = web.shared.clone() else {
        return drop_box(web, &target);
    };
    if target.path.is_none() && !target.folder {
        return redirect(&format!("/{}/", web.token.reveal()));
    }
    if let Some(format) = target.query.archive {
        return archive(web, client, request, shared, target.path, format).await;
    }
    let (wanted, is_folder) = (target.path.clone(), target.folder);
    let looking = tokio::task::spawn_blocking({
        let shared = Arc::clone(&shared);
        move || look(&shared, wanted.as_ref(), is_folder)
    });
    match looking.await.map_err(|_| broken())?.map_err(no)? {
        Ready::Elsewhere => {
            let name = target.path.as_ref().map(RelPath::name).unwrap_or_default();
            redirect(&format!("./{}/", encoded(name)))
        }
        Ready::Listing(mut lines, more) => {
            sort(&mut lines, target.query.order);
            let mut way = vec![shared.name.clone()];
            way.extend(target.path.iter().flat_map(RelPath::components).map(<[u8]>::to_vec));
            let shown = Folder {
                way: &way,
                lines: Some(&lines),
                more,
                order: target.query.order,
                upload: web.inbox.is_some(),
            };
            Ok(page(StatusCode::OK, folder(&shown)))
        }
        Ready::File(opened) => file(web, client, request, &target, opened),
    }
}

/// The page of a folder that only takes files: nothing in it is to be seen.
fn drop_box(web: &Web, target: &Target) -> Result<Answer, No> {
    match (&target.path, target.folder) {
        (None, true) => {
            let shown = Folder {
                way: &[b"Send files".to_vec()],
                lines: None,
                more: 0,
                order: target.query.order,
                upload: true,
            };
            Ok(page(StatusCode::OK, folder(&shown)))
        }
        (None, false) => redirect(&format!("/{}/", web.token.reveal())),
        _ => Err(No::nothing()),
    }
}

fn look(shared: &Shared, path: Option<&RelPath>, folder: bool) -> Result<Ready, Errno> {
    if path.is_none() && shared.is_list() {
        return Ok(Ready::Listing(shared.list_tops(), 0));
    }
    match shared.find(path)? {
        Found::Folder(_) if !folder => Ok(Ready::Elsewhere),
        Found::Folder(folder) => {
            let (lines, more) = shared.list(&folder)?;
            Ok(Ready::Listing(lines, more))
        }
        Found::File(_) if folder => Err(Errno::NOTDIR),
        Found::File(opened) => Ok(Ready::File(opened)),
    }
}

fn no(errno: Errno) -> No {
    match errno {
        Errno::NOENT | Errno::NOTDIR | Errno::ISDIR | Errno::LOOP | Errno::XDEV | Errno::NAMETOOLONG => No::nothing(),
        Errno::ACCESS | Errno::PERM => No::new(StatusCode::FORBIDDEN, "Not to be read", "This may not be read here."),
        _ => broken(),
    }
}

fn file(
    web: &Arc<Web>,
    client: &Client,
    request: &Request<Incoming>,
    target: &Target,
    opened: Opened,
) -> Result<Answer, No> {
    let Opened {
        file, size, version, ..
    } = opened;
    let header = |name: HeaderName| request.headers().get(name).map(HeaderValue::as_bytes);
    let conditions = Conditions {
        none_match: header(IF_NONE_MATCH),
        modified_since: header(IF_MODIFIED_SINCE),
        if_range: header(IF_RANGE),
        range: header(RANGE),
    };
    let (status, range) = match head::answer(conditions, &version, size) {
        head::Answer::Fresh => (StatusCode::NOT_MODIFIED, 0..0),
        head::Answer::Whole => (StatusCode::OK, 0..size),
        head::Answer::Part(range) => (StatusCode::PARTIAL_CONTENT, range),
        head::Answer::Nothing => (StatusCode::RANGE_NOT_SATISFIABLE, 0..0),
    };
    let name = target.path.as_ref().map(RelPath::name).unwrap_or_default();
    let media = media::of(name);
    let shown = media.shown && !target.query.download;
    let mut answer = Response::new(Body::Empty);
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    let value = |text: &str| HeaderValue::from_str(text).map_err(|_| broken());
    headers.insert(ETAG, value(&version.tag)?);
    headers.insert(LAST_MODIFIED, value(&version.date)?);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    match status {
        StatusCode::NOT_MODIFIED => return Ok(answer),
        StatusCode::RANGE_NOT_SATISFIABLE => {
            headers.insert(CONTENT_RANGE, value(&format!("bytes */{size}"))?);
            return Ok(answer);
        }
        StatusCode::PARTIAL_CONTENT => {
            let part = format!("bytes {}-{}/{size}", range.start, range.end - 1);
            headers.insert(CONTENT_RANGE, value(&part)?);
        }
        _ => {}
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media.kind));
    headers.insert(CONTENT_DISPOSITION, value(&head::disposition(name, shown))?);
    if media.kind == media::PDF {
        headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(VIEWER));
    }
    let length = range.end - range.start;
    headers.insert(CONTENT_LENGTH, length.into());
    if request.method() == Method::HEAD {
        return Ok(answer);
    }
    // What is read next is on its way from the disk before it is asked for.
    let _ = rustix::fs::fadvise(&file, range.start, NonZeroU64::new(length), Advice::Sequential);
    let path = target.path.as_ref().map(|path| sealway_drop::names::join(path.key()));
    let report = report(web, client, path.unwrap_or_default(), length);
    *answer.body_mut() = Body::file(Arc::new(file), range, client.pieces.clone(), report);
    Ok(answer)
}

fn report(web: &Web, client: &Client, path: Vec<u8>, wanted: u64) -> Arc<Report> {
    let download = Download {
        path,
        client: client.address,
        wanted,
        sent: 0,
    };
    Report::new(&web.telling, download)
}

async fn archive(
    web: &Arc<Web>,
    client: &Client,
    request: &Request<Incoming>,
    shared: Arc<Shared>,
    path: Option<RelPath>,
    format: Format,
) -> Result<Answer, No> {
    let busy = |_| {
        No::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "Busy",
            "Too many folders are being packed; try again soon.",
        )
    };
    let permit = Arc::clone(&web.archives).try_acquire_owned().map_err(busy)?;
    let (end, kind) = match format {
        Format::Zip => (&b".zip"[..], "application/zip"),
        Format::Tar => (&b".tar"[..], "application/x-tar"),
    };
    let top = path.as_ref().map_or(&*shared.name, RelPath::name);
    let name = [top, end].concat();
    let mut told = path
        .as_ref()
        .map_or_else(|| shared.name.clone(), |path| sealway_drop::names::join(path.key()));
    told.extend_from_slice(end);
    let finding = waited::blocking(permit, {
        let shared = Arc::clone(&shared);
        move |waited| Archive::new(&shared, path.as_ref(), format, waited)
    });
    let too_much = || {
        let text =
            format!("The folder holds more than {MAX_MEMBERS} files and folders. Take the folders in it one by one.");
        No::new(StatusCode::FORBIDDEN, "Too much for one file", text)
    };
    let (archive, permit) = finding.await.map_err(|_| broken())?;
    let archive = archive.map_err(no)?.ok_or_else(too_much)?;
    let length = archive.length;
    let mut answer = Response::new(Body::Empty);
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    let disposition = HeaderValue::from_str(&head::disposition(&name, false)).map_err(|_| broken())?;
    headers.insert(CONTENT_DISPOSITION, disposition);
    headers.insert(CONTENT_LENGTH, length.into());
    if request.method() != Method::HEAD {
        let made = archive.make(shared, permit);
        *answer.body_mut() = Body::made(made, length, report(web, client, told, length));
    }
    Ok(answer)
}

fn redirect(to: &str) -> Result<Answer, No> {
    let mut answer = Response::new(Body::Empty);
    *answer.status_mut() = StatusCode::PERMANENT_REDIRECT;
    let to = HeaderValue::from_str(to).map_err(|_| broken())?;
    answer.headers_mut().insert(LOCATION, to);
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;
    use std::sync::mpsc::channel;

    use tokio::sync::Semaphore;

    use super::*;
    use crate::waited::Waited;

    #[tokio::test(flavor = "multi_thread")]
    async fn a_walk_that_nobody_waits_for_ends_and_then_gives_its_permit_back() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "").unwrap();
        let shared = Shared::open(&[PathBuf::from(folder.path())], false).unwrap();
        let places = Arc::new(Semaphore::new(1));
        let permit = || Arc::clone(&places).try_acquire_owned().unwrap();
        let ((begun, has_begun), (go, may_go), (end, ended)) = (channel(), channel(), channel());
        let work = move |waited: &Waited| {
            begun.send(()).unwrap();
            may_go.recv().unwrap();
            end.send(shared.walk(None, waited).map(|found| found.map(|found| found.len())))
                .unwrap();
        };
        let request = tokio::spawn(waited::blocking(permit(), work));
        tokio::task::spawn_blocking(move || has_begun.recv().unwrap())
            .await
            .unwrap();
        // The client hangs up.
        request.abort();
        assert!(request.await.unwrap_err().is_cancelled());
        assert_eq!(places.available_permits(), 0);
        go.send(()).unwrap();
        let walked = tokio::task::spawn_blocking(move || ended.recv().unwrap())
            .await
            .unwrap();
        assert_eq!(walked, Err(Errno::CANCELED));
        drop(places.acquire().await.unwrap());

        // One that is waited for ends with what there is.
        let shared = Shared::open(&[PathBuf::from(folder.path())], false).unwrap();
        let found = waited::blocking(permit(), move |waited| {
            shared.walk(None, waited).unwrap().unwrap().len()
        });
        let (found, permit) = found.await.unwrap();
        assert_eq!((found, places.available_permits()), (1, 0));
        drop(permit);
    }
}
