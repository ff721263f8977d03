//! An end of the connections that seals and opens packet by packet, over tokio: two tasks for each connection.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::net::TcpStream as Socket;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use sealway_bip324::OVERHEAD;
use tokio::io::{AsyncRead, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{LocalSet, spawn_local};

use super::course::Course;
use super::{End, PATIENCE, broken};
use crate::bip324::ciphers::Ciphers;
use crate::bip324::links::{Link, failed};
use crate::bip324::sockets::unseal;
use crate::run::CellError;

/// Bytes that are read at once.
const READ: usize = 16 * 1024;

/// Packets that are sealed for one write, at most.
const WRITE: usize = 64;

/// How often an end that waits looks whether it is over.
const TICK: Duration = Duration::from_millis(10);

/// The ciphers of all connections.
pub(super) struct Tasks<C: Ciphers> {
    sealers: Vec<C::Sealer>,
    openers: Vec<C::Opener>,
}

impl<C: Ciphers> Tasks<C> {
    pub(super) fn new(ciphers: &C, links: &[Link]) -> Result<Self, CellError> {
        let (sealers, openers) = (ciphers.sealers(links)?, ciphers.openers(links)?);
        Ok(Tasks { sealers, openers })
    }
}

/// What the tasks of an end have in common.
struct Node {
    course: RefCell<Course>,
    /// Memory that is read and opened into; nobody waits while it is borrowed.
    wire: RefCell<Vec<u8>>,
    text: RefCell<Vec<u8>>,
    /// Packets that were written.
    written: Cell<u64>,
    failure: RefCell<Option<CellError>>,
    news: Notify,
}

impl Node {
    /// Keeps the first failure, and says that something has changed.
    fn note(&self, result: Result<(), CellError>) {
        if let Err(error) = result {
            self.failure.borrow_mut().get_or_insert(error);
        }
        self.news.notify_one();
    }
}

/// Seals the packets of a connection and writes them.
async fn write<C: Ciphers>(
    node: &Node,
    mut sealer: C::Sealer,
    mut socket: OwnedWriteHalf,
    mut queue: UnboundedReceiver<usize>,
) -> Result<(), CellError> {
    let traffic = node.course.borrow().traffic().clone();
    let (mut packets, mut wire) = (Vec::new(), Vec::new());
    while queue.recv_many(&mut packets, WRITE).await > 0 {
        wire.clear();
        let count = packets.len() as u64;
        for i in packets.drain(..) {
            let (start, contents) = (wire.len(), traffic.contents(i));
            wire.resize(start + contents.len() + OVERHEAD, 0);
            if !C::seal(&mut sealer, traffic.decoy(i), contents, &mut wire[start..]) {
                return Err(failed(format_args!("{} refused packet {i}", C::NAME)));
            }
        }
        socket.write_all(&wire).await.map_err(broken)?;
        node.written.set(node.written.get() + count);
        node.news.notify_one();
    }
    Ok(())
}

/// Reads behind what begins a packet, into the memory that all tasks have; gives how much came.
///
/// `poll_read` knows after a short read that there is no more, and does not ask the system again.
fn poll_behind(
    node: &Node,
    begun: &[u8],
    socket: &mut OwnedReadHalf,
    context: &mut Context<'_>,
) -> Poll<std::io::Result<usize>> {
    let mut wire = node.wire.borrow_mut();
    wire[..begun.len()].copy_from_slice(begun);
    let mut room = ReadBuf::new(&mut wire[begun.len()..]);
    ready!(Pin::new(socket).poll_read(context, &mut room))?;
    Poll::Ready(Ok(room.filled().len()))
}

/// Reads what comes on a connection and opens it.
async fn read<C: Ciphers>(
    node: &Node,
    connection: usize,
    mut opener: C::Opener,
    mut socket: OwnedReadHalf,
) -> Result<(), CellError> {
    let (mut begun, mut need) = (Vec::new(), None);
    loop {
        let behind = poll_fn(|context| poll_behind(node, &begun, &mut socket, context));
        let got = behind.await.map_err(broken)?;
        if got == 0 {
            return Err(failed("the other end has closed a connection"));
        }
        // No other task has run since: the bytes are still there.
        let (wire, mut text) = (node.wire.borrow(), node.text.borrow_mut());
        let mut course = node.course.borrow_mut();
        let came = &wire[..begun.len() + got];
        course.came(connection, &came[begun.len()..]);
        let rest = unseal::<C>(&mut opener, &mut need, came, &mut text, &mut |contents| {
            course.opened(connection, contents);
        })?;
        begun.clear();
        begun.extend_from_slice(rest);
        course.tell()?;
        node.news.notify_one();
    }
}

/// Hands packets to the tasks of their connections until all is over.
async fn drive(node: &Node, queues: &[UnboundedSender<usize>]) -> Result<(), CellError> {
    let mut last = Instant::now();
    loop {
        if let Some(failure) = node.failure.borrow_mut().take() {
            return Err(failure);
        }
        let next = node.course.borrow_mut().next();
        if let Some(packets) = next {
            let traffic = node.course.borrow().traffic().clone();
            for i in packets {
                queues[traffic.connection(i)].send(i).map_err(failed)?;
            }
            continue;
        }
        if node.course.borrow().is_over() && node.written.get() == node.course.borrow().sent() {
            return Ok(());
        }
        match tokio::time::timeout(TICK, node.news.notified()).await {
            Ok(()) => last = Instant::now(),
            Err(_) if last.elapsed() > PATIENCE => return Err(failed("nothing came for 20 s")),
            Err(_) => {}
        }
    }
}

impl<C: Ciphers> End for Tasks<C> {
    fn run(self: Box<Self>, course: Course, sockets: Vec<Socket>) -> Result<(), CellError> {
        let Tasks { sealers, openers } = *self;
        let node = Rc::new(Node {
            course: RefCell::new(course),
            wire: RefCell::new(vec![0; 2 * READ]),
            text: RefCell::new(vec![0; READ]),
            written: Cell::new(0),
            failure: RefCell::new(None),
            news: Notify::new(),
        });
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().build().map_err(failed)?;
        let tasks = LocalSet::new();
        tasks.block_on(&runtime, async {
            let mut queues = Vec::with_capacity(sockets.len());
            let ciphers = sealers.into_iter().zip(openers);
            for (connection, (socket, (sealer, opener))) in sockets.into_iter().zip(ciphers).enumerate() {
                let (from, to) = TcpStream::from_std(socket).map_err(failed)?.into_split();
                let (sender, queue) = unbounded_channel();
                queues.push(sender);
                let its = Rc::clone(&node);
                spawn_local(async move { its.note(write::<C>(&its, sealer, to, queue).await) });
                let its = Rc::clone(&node);
                spawn_local(async move { its.note(read::<C>(&its, connection, opener, from).await) });
            }
            drive(&node, &queues).await
        })?;
        node.course.borrow().leave();
        Ok(())
    }
}
