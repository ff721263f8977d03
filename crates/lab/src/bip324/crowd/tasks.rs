//! An end of the connections that seals and opens packet by packet, over tokio: two tasks for each connection.

use std::cell::{Cell, RefCell};
use std::io::ErrorKind;
use std::net::TcpStream as Socket;
use std::rc::Rc;
use std::time::{Duration, Instant};

use sealway_bip324::OVERHEAD;
use tokio::net::TcpStream;
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
    socket: &TcpStream,
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
        let mut rest = &wire[..];
        while !rest.is_empty() {
            socket.writable().await.map_err(broken)?;
            match socket.try_write(rest) {
                Ok(count) => rest = &rest[count..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(broken(error)),
            }
        }
        node.written.set(node.written.get() + count);
        node.news.notify_one();
    }
    Ok(())
}

/// Reads what comes on a connection and opens it.
async fn read<C: Ciphers>(
    node: &Node,
    connection: usize,
    mut opener: C::Opener,
    socket: &TcpStream,
) -> Result<(), CellError> {
    let (mut begun, mut need) = (Vec::new(), None);
    loop {
        socket.readable().await.map_err(broken)?;
        let (mut wire, mut text) = (node.wire.borrow_mut(), node.text.borrow_mut());
        wire[..begun.len()].copy_from_slice(&begun);
        let got = match socket.try_read(&mut wire[begun.len()..]) {
            Ok(0) => return Err(failed("the other end has closed a connection")),
            Ok(got) => got,
            Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
            Err(error) => return Err(broken(error)),
        };
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
                let socket = Rc::new(TcpStream::from_std(socket).map_err(failed)?);
                let (sender, queue) = unbounded_channel();
                queues.push(sender);
                let (its, there) = (Rc::clone(&node), Rc::clone(&socket));
                spawn_local(async move { its.note(write::<C>(&its, sealer, &there, queue).await) });
                let its = Rc::clone(&node);
                spawn_local(async move { its.note(read::<C>(&its, connection, opener, &socket).await) });
            }
            drive(&node, &queues).await
        })?;
        node.course.borrow().leave();
        Ok(())
    }
}
