//! A server of PostgreSQL for tests, of this crate and of others (feature `testing`): it ends with the process that started it.

#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tempfile::TempDir;

/// The password of its users.
pub const PASSWORD: &str = "hunter2";

/// The server, with TLS, and a user `sealway` who may do everything.
#[derive(Debug)]
pub struct Real {
    /// Its port on 127.0.0.1.
    pub port: u16,
    /// File with the authority that signed its certificate.
    pub authority: PathBuf,
    /// File with an authority that did not.
    pub other_authority: PathBuf,
    folder: TempDir,
    programs: PathBuf,
    /// It ends when this process closes its standard input, however it ends.
    _shell: Child,
}

impl Real {
    /// The one server of this process, if its programs are there.
    ///
    /// # Panics
    /// If they are not there and `SEALWAY_REQUIRE_PEERS` is 1, or if the server does not start.
    pub fn get() -> Option<&'static Real> {
        static REAL: LazyLock<Option<Real>> = LazyLock::new(|| Real::start(&programs()?));
        if REAL.is_none() {
            let required = std::env::var("SEALWAY_REQUIRE_PEERS").is_ok_and(|value| value == "1");
            assert!(
                !required,
                "SEALWAY_REQUIRE_PEERS=1, but there is no PostgreSQL: scripts/install-peers --tests"
            );
            println!("skipped: no PostgreSQL here");
        }
        REAL.as_ref()
    }

    fn start(programs: &Path) -> Option<Real> {
        let folder = TempDir::new().unwrap();
        let path = |name: &str| folder.path().join(name);
        let [authority, other_authority] = ["authority.pem", "other.pem"].map(path);
        let (ours, issuer) = new_authority();
        std::fs::write(&authority, ours).unwrap();
        std::fs::write(&other_authority, new_authority().0).unwrap();
        let own = KeyPair::generate().unwrap();
        let leaf = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let leaf = leaf.signed_by(&own, &issuer).unwrap();
        std::fs::write(path("server.pem"), leaf.pem()).unwrap();
        std::fs::write(path("server.key"), own.serialize_pem()).unwrap();
        std::fs::set_permissions(path("server.key"), PermissionsExt::from_mode(0o600)).unwrap();
        std::fs::write(path("password"), PASSWORD).unwrap();
        std::fs::create_dir(path("data")).unwrap();
        if is_root() {
            // It does not run as root.
            std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
            let (user, group) = user();
            for file in ["data", "server.key", "server.pem", "password"] {
                std::os::unix::fs::chown(path(file), Some(user), Some(group)).unwrap();
            }
        }
        let data = path("data");
        let made = as_somebody(programs.join("initdb").as_os_str().to_str()?)
            .args([
                "--username=sealway",
                "--auth-local=trust",
                "--auth-host=scram-sha-256",
                "--no-sync",
                "--locale=C",
            ])
            .args(["--encoding=UTF8", "-D"])
            .arg(&data)
            .arg(format!("--pwfile={}", path("password").display()))
            .current_dir(&data)
            .output()
            .unwrap();
        assert!(
            made.status.success(),
            "initdb: {}",
            String::from_utf8_lossy(&made.stderr)
        );
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let settings = format!(
            "listen_addresses = '127.0.0.1'\nport = {port}\nunix_socket_directories = '{}'\nfsync = off\nssl = on\n\
             ssl_cert_file = '{}'\nssl_key_file = '{}'\nmax_connections = 60\nshared_buffers = 16MB\n",
            data.display(),
            path("server.pem").display(),
            path("server.key").display(),
        );
        let mut config = std::fs::OpenOptions::new()
            .append(true)
            .open(data.join("postgresql.conf"))
            .unwrap();
        config.write_all(settings.as_bytes()).unwrap();
        let script = "\"$0\" -D \"$1\" >\"$1/log\" 2>&1 </dev/null & read -r line; kill -QUIT $!; wait";
        let shell = as_somebody("sh")
            .args(["-c", script])
            .arg(programs.join("postgres"))
            .arg(&data)
            .current_dir(&data)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let real = Real {
            port,
            authority,
            other_authority,
            folder,
            programs: programs.to_owned(),
            _shell: shell,
        };
        let begun = Instant::now();
        while !real
            .psql("postgres", "CREATE ROLE reader LOGIN PASSWORD 'hunter2'")
            .status
            .success()
        {
            let log = std::fs::read_to_string(data.join("log")).unwrap_or_default();
            assert!(begun.elapsed() < Duration::from_secs(60), "it does not start: {log}");
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(real)
    }

    fn psql(&self, database: &str, sql: &str) -> std::process::Output {
        Command::new(self.programs.join("psql"))
            .args([
                "-XAtq",
                "-U",
                "sealway",
                "-p",
                &self.port.to_string(),
                "-d",
                database,
                "-c",
                sql,
                "-h",
            ])
            .arg(self.folder.path().join("data"))
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    /// What a statement gives.
    ///
    /// # Panics
    /// If the server refuses it.
    pub fn sql(&self, database: &str, sql: &str) -> String {
        let done = self.psql(database, sql);
        assert!(
            done.status.success(),
            "{sql}: {}",
            String::from_utf8_lossy(&done.stderr)
        );
        String::from_utf8_lossy(&done.stdout).trim().to_owned()
    }

    /// The URL of a database, which is made if it is not there.
    pub fn database(&self, name: &str) -> String {
        self.psql("postgres", &format!("CREATE DATABASE {name}"));
        format!("postgres://sealway:{PASSWORD}@127.0.0.1:{}/{name}", self.port)
    }

    /// Whether our connection to a database is encrypted: `t` or `f`. Empty: there is none.
    pub fn encrypted(&self, database: &str) -> String {
        let sql = format!(
            "SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
             WHERE datname = '{database}' AND application_name = 'sealway'"
        );
        self.sql("postgres", &sql)
    }
}

fn new_authority() -> (String, Issuer<'static, KeyPair>) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let own = params.self_signed(&key).unwrap();
    (own.pem(), Issuer::new(params, key))
}

/// The folder of the newest server's programs.
fn programs() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path =
        std::env::split_paths(&path).find(|folder| folder.join("postgres").is_file() && folder.join("psql").is_file());
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let installed = versions.map(|version| version.path().join("bin"));
    let mut installed: Vec<_> = installed.filter(|folder| folder.join("initdb").is_file()).collect();
    installed.sort();
    installed.pop().or(on_path)
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

/// The user `postgres`, or `nobody`: user and group.
fn user() -> (u32, u32) {
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let find = |name: &str| {
        let mut fields = users
            .lines()
            .map(|line| line.split(':'))
            .find(|line| line.clone().next() == Some(name))?
            .skip(2);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    };
    find("postgres")
        .or_else(|| find("nobody"))
        .expect("somebody who is not root")
}

/// A command that does not run as root.
fn as_somebody(program: &str) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    let (user, group) = user();
    command.args([format!("--reuid={user}"), format!("--regid={group}")]);
    command.args(["--clear-groups", "--", program]);
    command
}
