//! The page in a real browser, driven by the DevTools protocol through pipes: what it shows, what it sends, what it gets.
//!
//! Needs Chromium or Chrome on PATH. Without one the tests say so and pass, unless `SEALWAY_REQUIRE_PEERS=1` is set.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};

use crate::common::{LIMIT, Running, Setup, noise, program, until};

struct Browser {
    child: Child,
    to: File,
    from: BufReader<File>,
    session: Option<String>,
    next: u64,
    complaints: Vec<String>,
    _home: tempfile::TempDir,
}

impl Browser {
    fn start() -> Option<Browser> {
        let chromium = program("chromium")?;
        let home = tempfile::tempdir().unwrap();
        let pipes = ["in", "out"].map(|name| home.path().join(name));
        for pipe in &pipes {
            mknodat(CWD, pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        }
        let child = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<\"$IN\" 4>\"$OUT\""])
            .arg(chromium)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
                "--no-first-run",
                "--remote-debugging-pipe",
            ])
            .args([
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--disable-dev-shm-usage",
            ])
            .args([
                "--ignore-certificate-errors",
                "--no-proxy-server",
                "--force-device-scale-factor=1",
            ])
            .arg(format!("--user-data-dir={}", home.path().join("profile").display()))
            .arg("about:blank")
            .env("IN", &pipes[0])
            .env("OUT", &pipes[1])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let to = File::options().write(true).open(&pipes[0]).unwrap();
        let from = BufReader::new(File::open(&pipes[1]).unwrap());
        let mut browser = Browser {
            child,
            to,
            from,
            session: None,
            next: 0,
            complaints: Vec::new(),
            _home: home,
        };
        // A browser that hangs is ended, and the pipe with it.
        let pid = rustix::process::Pid::from_child(&browser.child);
        std::thread::spawn(move || {
            std::thread::sleep(3 * LIMIT);
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        });
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}))["targetId"].clone();
        let attached = browser.call("Target.attachToTarget", json!({"targetId": target, "flatten": true}));
        browser.session = Some(attached["sessionId"].as_str().unwrap().to_owned());
        for domain in ["Page", "Runtime", "DOM", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        Some(browser)
    }

    fn call(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let id = self.next;
        let mut message = json!({"id": id, "method": method, "params": params});
        let of_browser = method.starts_with("Target.") || method.starts_with("Browser.");
        if let Some(session) = self.session.as_ref().filter(|_| !of_browser) {
            message["sessionId"] = json!(session);
        }
        self.to.write_all(format!("{message}\0").as_bytes()).unwrap();
        loop {
            let mut bytes = Vec::new();
            self.from.read_until(0, &mut bytes).unwrap();
            assert!(bytes.pop() == Some(0), "the browser ended in {method}");
            let said: Value = serde_json::from_slice(&bytes).unwrap();
            if said["id"] == json!(id) {
                assert!(said.get("error").is_none(), "{method}: {said}");
                return said["result"].clone();
            }
            let about = &said["params"];
            match said["method"].as_str() {
                Some("Runtime.exceptionThrown") => self.complaints.push(about.to_string()),
                // A browser asks for this by itself, and for what is in a sandbox it is not even allowed to.
                Some("Log.entryAdded")
                    if about["entry"]["url"]
                        .as_str()
                        .is_some_and(|url| url.ends_with("/favicon.ico")) => {}
                Some("Log.entryAdded") if about["entry"]["level"] == "error" => self.complaints.push(about.to_string()),
                Some("Page.javascriptDialogOpening") => self.complaints.push(format!("a dialog: {about}")),
                _ => {}
            }
        }
    }

    fn run(&mut self, script: &str) -> Value {
        let wish = json!({"expression": script, "returnByValue": true, "awaitPromise": true, "userGesture": true});
        let result = self.call("Runtime.evaluate", wish);
        assert!(result.get("exceptionDetails").is_none(), "{script}: {result}");
        result["result"]["value"].clone()
    }

    fn open(&mut self, link: &str) {
        let gone = self.call("Page.navigate", json!({"url": link}));
        assert!(gone.get("errorText").is_none(), "{gone}");
        until("the page", || {
            self.run("document.readyState === 'complete' && location.href !== 'about:blank'") == json!(true)
        });
    }

    /// Presses a key, and lets it go.
    fn press(&mut self, key: &str, number: u32, text: &str) {
        for kind in ["keyDown", "keyUp"] {
            let event = json!({"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": number, "text": text});
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    /// Chooses files as a person does.
    fn choose(&mut self, input: &str, files: &[&Path]) {
        let root = self.call("DOM.getDocument", json!({}))["root"]["nodeId"].clone();
        let node = self.call("DOM.querySelector", json!({"nodeId": root, "selector": input}))["nodeId"].clone();
        self.call("DOM.setFileInputFiles", json!({"nodeId": node, "files": files}));
    }

    fn until_sent(&mut self) {
        until("the end of sending", || {
            self.run("document.getElementById('summary').dataset.left === '0'") == json!(true)
        });
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if !std::thread::panicking() {
            assert!(self.complaints.is_empty(), "the page complained: {:?}", self.complaints);
        }
    }
}

fn same(a: &Path, b: &Path) -> bool {
    fs::metadata(a).is_ok_and(|found| Some(found.len()) == fs::metadata(b).ok().map(|found| found.len()))
        && fs::read(a).unwrap() == fs::read(b).unwrap()
}

#[test]
fn files_go_up_and_come_down_by_the_page() {
    let Some(mut browser) = Browser::start() else { return };
    let (work, shared) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (large, small) = (work.path().join("large & <b>.bin"), work.path().join("kleine Datei"));
    fs::write(&large, noise(100 << 20)).unwrap();
    fs::write(&small, "").unwrap();
    let server = Setup::both(shared.path()).tls().start();
    browser.open(&server.link);
    assert_eq!(
        browser.run("document.getElementById('upload').dataset.script"),
        json!("ready")
    );
    browser.run(
        "window.seen = []; new MutationObserver(() => seen.push(document.querySelector('#transfers .soft').textContent)) \
         .observe(document.getElementById('transfers'), {subtree: true, childList: true, characterData: true})",
    );
    browser.choose("#files", &[&large, &small]);
    browser.until_sent();
    let progress = "seen.some((text) => text.endsWith(' of 100.0 MiB'))";
    assert_eq!(browser.run(progress), json!(true), "how far it is was shown");
    assert_eq!(
        browser.run("document.getElementById('summary').textContent"),
        json!("2 done")
    );
    for file in [&large, &small] {
        assert!(
            same(file, &shared.path().join(file.file_name().unwrap())),
            "{}",
            file.display()
        );
    }
    // Once more: it is there already, and nothing is sent.
    browser.choose("#files", &[&large]);
    browser.until_sent();
    assert!(
        browser
            .run("document.getElementById('transfers').textContent")
            .as_str()
            .unwrap()
            .contains("there already")
    );
    assert_eq!(server.heard.received.lock().unwrap().len(), 2);

    let down = tempfile::tempdir().unwrap();
    browser.call(
        "Browser.setDownloadBehavior",
        json!({"behavior": "allow", "downloadPath": down.path()}),
    );
    browser.open(&server.link);
    browser.run("document.querySelector('a[href*=\"large\"][download]').click()");
    until("the download", || {
        fs::read_dir(down.path())
            .unwrap()
            .any(|entry| same(&entry.unwrap().path(), &large))
    });
}

/// A way to the server that cuts the first connection off which has carried so many bytes.
fn cutting(to: SocketAddr, after: u64) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let cut = Arc::new(AtomicBool::new(false));
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (Ok(mut client), Ok(mut server)) = (client, TcpStream::connect(to)) else {
                return;
            };
            let (mut back, mut forth) = (server.try_clone().unwrap(), client.try_clone().unwrap());
            std::thread::spawn(move || std::io::copy(&mut back, &mut forth));
            let cut = cut.clone();
            std::thread::spawn(move || {
                let mut carried = 0;
                let mut buffer = vec![0; 64 << 10];
                while let Ok(count @ 1..) = client.read(&mut buffer) {
                    carried += count as u64;
                    let cuts = carried > after && !cut.swap(true, Ordering::SeqCst);
                    if cuts || server.write_all(&buffer[..count]).is_err() {
                        break;
                    }
                }
                let _ = (client.shutdown(Shutdown::Both), server.shutdown(Shutdown::Both));
            });
        }
    });
    address
}

#[test]
fn an_upload_goes_on_after_the_connection_was_lost() {
    let Some(mut browser) = Browser::start() else { return };
    let (work, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = work.path().join("file");
    fs::write(&file, noise(24 << 20)).unwrap();
    let server = Setup::receive(out.path()).start();
    let way = cutting(server.address, 8 << 20);
    browser.open(&server.link.replace(&server.address.to_string(), &way.to_string()));
    browser.choose("#files", &[&file]);
    browser.until_sent();
    assert!(same(&file, &out.path().join("file")));
    let refused = server.heard.refused.lock().unwrap().clone();
    assert!(
        refused.len() == 1 && refused[0].contains("broke off at byte"),
        "{refused:?}"
    );
    let at: u64 = refused[0]
        .split(|c: char| !c.is_ascii_digit())
        .find_map(|text| text.parse().ok())
        .unwrap();
    assert!(at > 4 << 20, "most of what came is kept: {at}");
    // That the connection was lost, and that the server had not noticed yet (409), are no complaints.
    browser
        .complaints
        .retain(|complaint| !complaint.contains("\"source\":\"network\""));
}

fn listing(server: &Running, browser: &mut Browser, dark: bool, width: u32) -> (i64, u32) {
    let scheme = if dark { "dark" } else { "light" };
    let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
    browser.call("Emulation.setEmulatedMedia", json!({"features": features}));
    let metrics = json!({"width": width, "height": 740, "deviceScaleFactor": 1, "mobile": true});
    browser.call("Emulation.setDeviceMetricsOverride", metrics);
    browser.open(&server.link);
    let over = browser
        .run("document.documentElement.scrollWidth - innerWidth")
        .as_i64()
        .unwrap();
    let ground = browser.run("getComputedStyle(document.body).backgroundColor");
    let parts = ground
        .as_str()
        .unwrap()
        .trim_start_matches("rgb(")
        .trim_end_matches(')');
    let sum: u32 = parts.split(", ").map(|part| part.parse::<u32>().unwrap()).sum();
    (over, sum / 3)
}

#[test]
fn the_page_fits_a_phone_in_light_and_dark() {
    let Some(mut browser) = Browser::start() else { return };
    let shared = tempfile::tempdir().unwrap();
    for name in [
        "a".repeat(200),
        "words and words ".repeat(10),
        "short".into(),
        "你好".repeat(30),
    ] {
        fs::write(shared.path().join(name.trim()), noise(1000)).unwrap();
    }
    fs::create_dir(shared.path().join("folder".repeat(20))).unwrap();
    let server = Setup::both(shared.path()).start();
    for width in [360, 1200] {
        let (over, ground) = listing(&server, &mut browser, false, width);
        assert!(
            over <= 0 && ground > 230,
            "{width}: {over} pixels too wide, ground {ground}"
        );
        let (over, ground) = listing(&server, &mut browser, true, width);
        assert!(
            over <= 0 && ground < 50,
            "{width}: {over} pixels too wide, ground {ground}"
        );
    }
}

#[test]
fn everything_is_reached_and_done_by_keys() {
    let Some(mut browser) = Browser::start() else { return };
    let (shared, down) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::create_dir(shared.path().join("folder")).unwrap();
    fs::write(shared.path().join("file"), noise(1000)).unwrap();
    let server = Setup::both(shared.path()).start();
    browser.call("Emulation.setFocusEmulationEnabled", json!({"enabled": true}));
    browser.call(
        "Browser.setDownloadBehavior",
        json!({"behavior": "allow", "downloadPath": down.path()}),
    );
    browser.open(&server.link);
    let parts = "Array.from(document.querySelectorAll('a, input, button:not([hidden])'))";
    for at in 0..browser.run(&format!("{parts}.length")).as_u64().unwrap() {
        browser.press("Tab", 9, "");
        let reached = browser.run(&format!("{parts}.indexOf(document.activeElement)"));
        assert_eq!(reached, json!(at), "in the order of the page");
        let outline = browser.run("getComputedStyle(document.activeElement).outlineStyle");
        assert_eq!(
            outline,
            json!("solid"),
            "the part with the number {at} shows that it is the one"
        );
    }
    browser.run("document.querySelector('a[href*=\"file\"][download]').focus()");
    browser.press("Enter", 13, "\r");
    until("the download", || {
        same(&down.path().join("file"), &shared.path().join("file"))
    });
}

#[test]
fn names_and_pages_of_a_folder_run_nothing() {
    let Some(mut browser) = Browser::start() else { return };
    let shared = tempfile::tempdir().unwrap();
    let names = [
        "<img src=x onerror=alert(1)>",
        "\"><svg onload=alert(2)>",
        "javascript:alert(3)",
        "a\nb",
    ];
    for name in names {
        fs::write(shared.path().join(name), "x").unwrap();
    }
    let script = "<script>alert(document.domain)</script><img src=x onerror=alert(1)>";
    fs::write(shared.path().join("page.html"), script).unwrap();
    let server = Setup::share(shared.path()).start();
    browser.open(&server.link);
    assert_eq!(browser.run("document.querySelectorAll('img, svg').length"), json!(0));
    let texts =
        browser.run("Array.from(document.querySelectorAll('td:first-child a'), (a) => a.textContent).join('|')");
    assert!(
        names[..3].iter().all(|name| texts.as_str().unwrap().contains(name)),
        "{texts}"
    );
    let schemes = "Array.from(document.links).every((a) => a.protocol === 'http:' && a.host === location.host)";
    assert_eq!(browser.run(schemes), json!(true));
    browser.open(&format!("{}page.html", server.link));
    assert_eq!(browser.run("document.contentType"), json!("text/plain"));
    assert_eq!(
        browser.run("self.origin"),
        json!("null"),
        "it has the rights of no origin"
    );
    assert!(
        browser
            .run("document.body.textContent")
            .as_str()
            .unwrap()
            .contains("<script>")
    );
}
