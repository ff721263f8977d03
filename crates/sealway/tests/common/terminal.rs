//! A person at a terminal: a pseudo-terminal that a program has for all of its input and output.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use super::PATIENCE;
use super::program::{Program, ended};

/// A program that runs there, and what it has shown.
pub struct Terminal {
    pub child: Program,
    keys: File,
    shown: Arc<Mutex<String>>,
    read: usize,
}

impl Terminal {
    pub fn run(mut command: Command, columns: u16) -> Terminal {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
        let master = openpt(flags).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let size = Winsize {
            ws_row: 40,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&master, size).unwrap();
        let slave = ioctl_tiocgptpeer(&master, flags).unwrap();
        let stdio = || Stdio::from(slave.try_clone().unwrap());
        command.stdin(stdio()).stdout(stdio()).stderr(stdio());
        let child = Program::start(&mut command);
        drop(command);
        let keys = File::from(master);
        let (mut screen, shown) = (keys.try_clone().unwrap(), Arc::new(Mutex::new(String::new())));
        let to = shown.clone();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // At its end a terminal gives an error.
            while let Ok(count @ 1..) = screen.read(&mut bytes) {
                to.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
        });
        Terminal {
            child,
            keys,
            shown,
            read: 0,
        }
    }

    /// Waits until `text` is shown behind what was waited for before, and gives what came up to its end.
    pub fn until(&mut self, text: &str) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let shown = self.shown.lock().unwrap();
            if let Some(at) = shown[self.read..].find(text) {
                let end = self.read + at + text.len();
                let came = shown[self.read..end].to_owned();
                self.read = end;
                return came;
            }
            assert!(Instant::now() < until, "{text:?} is not shown: {:?}", *shown);
            drop(shown);
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Whether the terminal is set as a shell leaves it: it echoes, and gives whole lines.
    pub fn is_plain(&self) -> bool {
        let modes = tcgetattr(&self.keys).unwrap().local_modes;
        modes.contains(LocalModes::ECHO | LocalModes::ICANON)
    }

    /// What is shown and was not waited for.
    pub fn rest(&self) -> String {
        self.shown.lock().unwrap()[self.read..].to_owned()
    }

    /// How it ended, and all that it showed.
    pub fn ended(mut self) -> (Option<i32>, String) {
        let status = ended(&mut self.child, PATIENCE);
        let status = status.unwrap_or_else(|| panic!("it goes on: {:?}", self.shown.lock().unwrap()));
        // What was written last may not have been read yet.
        std::thread::sleep(Duration::from_millis(100));
        let shown = self.shown.lock().unwrap().clone();
        (status.code(), shown)
    }
}
