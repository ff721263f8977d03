//! A tree in memory: what a mount can do when nothing stands behind it, and the tests' tree.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry as Slot;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use sealway_drop::lock;

use super::{
    Attr, Call, Chunk, Entry, Event, EventSink, Kind, MAX_PAGE, MAX_READ, Opened, Page, ReadDone, ReadRequest,
    RemoteTree, Sinks, Subscription, Time, TreeError, TreePath,
};

/// Files and directories kept in memory, changed by the program that owns it. Changes are told to subscribers.
#[derive(Clone, Default)]
pub struct MemoryTree {
    state: Arc<Mutex<State>>,
    sinks: Arc<Sinks>,
    next: Arc<AtomicU64>,
}

#[derive(Default)]
struct State {
    nodes: BTreeMap<TreePath, Node>,
    handles: BTreeMap<u64, TreePath>,
    count: u64,
}

struct Node {
    id: u64,
    version: u64,
    mode: u32,
    content: Content,
}

enum Content {
    Directory,
    File(Bytes),
}

impl MemoryTree {
    /// An empty tree.
    pub fn new() -> Self {
        let tree = Self::default();
        tree.put(TreePath::root(), Content::Directory);
        tree
    }

    /// Puts a directory there; directories above it must be there already.
    pub fn put_directory(&self, path: &TreePath) {
        self.put(path.clone(), Content::Directory);
    }

    /// Puts a file there, or gives the file there another content.
    pub fn put_file(&self, path: &TreePath, data: impl Into<Bytes>) {
        self.put(path.clone(), Content::File(data.into()));
    }

    /// Takes away what is there and everything below it.
    pub fn remove(&self, path: &TreePath) {
        self.lock().nodes.retain(|at, _| !at.is_within(path));
        self.tell(&Event::Entry(path.clone()));
    }

    /// Open handles.
    pub fn open_handles(&self) -> usize {
        self.lock().handles.len()
    }

    /// Tells every subscriber.
    pub fn tell(&self, event: &Event) {
        self.sinks.tell(event);
    }

    fn put(&self, path: TreePath, content: Content) {
        let event = {
            let mut state = self.lock();
            state.count += 1;
            let count = state.count;
            match state.nodes.entry(path.clone()) {
                Slot::Occupied(mut slot) => {
                    slot.get_mut().content = content;
                    slot.get_mut().version = count;
                    Event::Changed(path)
                }
                Slot::Vacant(slot) => {
                    let mode = match content {
                        Content::Directory => 0o755,
                        Content::File(_) => 0o644,
                    };
                    slot.insert(Node {
                        id: count,
                        version: count,
                        mode,
                        content,
                    });
                    Event::Entry(path)
                }
            }
        };
        self.tell(&event);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl Node {
    fn attr(&self) -> Attr {
        let (kind, size) = match &self.content {
            Content::Directory => (Kind::Directory, 0),
            Content::File(data) => (Kind::File, data.len() as u64),
        };
        let time = Time {
            seconds: 1_700_000_000 + self.version as i64,
            nanoseconds: 0,
        };
        let (node, mode, version) = (self.id, self.mode, self.version);
        Attr {
            node,
            kind,
            size,
            mode,
            mtime: time,
            ctime: time,
            nlink: 1,
            version,
            allocated: size,
        }
    }
}

impl State {
    fn get(&self, path: &TreePath) -> Result<&Node, TreeError> {
        self.nodes.get(path).ok_or(TreeError::NotFound)
    }

    fn read(&self, request: &ReadRequest) -> Result<Chunk, TreeError> {
        if request.len > MAX_READ {
            return Err(TreeError::Invalid("too long a read"));
        }
        let node = self
            .get(self.handles.get(&request.handle).ok_or(TreeError::Stale)?)
            .map_err(|_| TreeError::Stale)?;
        let Content::File(data) = &node.content else {
            return Err(TreeError::Stale);
        };
        let from = request.offset.min(data.len() as u64) as usize;
        let to = data.len().min(from + request.len as usize);
        Ok(Chunk {
            data: data.slice(from..to),
            size: data.len() as u64,
            version: node.version,
        })
    }
}

impl RemoteTree for MemoryTree {
    fn attr(&self, path: &TreePath, _call: &Call) -> Result<Attr, TreeError> {
        Ok(self.lock().get(path)?.attr())
    }

    fn list(&self, path: &TreePath, cursor: u64, limit: usize, _call: &Call) -> Result<Page, TreeError> {
        let state = self.lock();
        if !matches!(state.get(path)?.content, Content::Directory) {
            return Err(TreeError::NotDirectory);
        }
        let limit = limit.clamp(1, MAX_PAGE);
        let children = state.nodes.range(path.clone()..);
        let entries: Vec<Entry> = children
            .filter_map(|(at, node)| match at.split() {
                Some((parent, name)) if parent == *path => Some(Entry {
                    name: name.to_vec(),
                    attr: node.attr(),
                }),
                _ => None,
            })
            .skip(usize::try_from(cursor).unwrap_or(usize::MAX))
            .take(limit)
            .collect();
        let next = (entries.len() == limit).then_some(cursor.saturating_add(limit as u64));
        Ok(Page { entries, next })
    }

    fn read_link(&self, path: &TreePath, _call: &Call) -> Result<Vec<u8>, TreeError> {
        self.lock().get(path).and(Err(TreeError::NotLink))
    }

    fn open(&self, path: &TreePath, _call: &Call) -> Result<Opened, TreeError> {
        let handle = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        let mut state = self.lock();
        let node = state.get(path)?;
        if !matches!(node.content, Content::File(_)) {
            return Err(TreeError::NotFile);
        }
        let attr = node.attr();
        state.handles.insert(handle, path.clone());
        Ok(Opened { handle, attr })
    }

    fn submit(&self, request: ReadRequest, done: ReadDone) {
        let result = self.lock().read(&request);
        done(result);
    }

    fn close(&self, handle: u64) {
        self.lock().handles.remove(&handle);
    }

    fn subscribe(&self, sink: EventSink) -> Result<Subscription, TreeError> {
        Ok(self.sinks.subscribe(sink))
    }
}
