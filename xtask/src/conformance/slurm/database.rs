//! The database of every slurmdbd: one server of this machine, on loopback.

use std::cell::Cell;
use std::net::TcpListener;
use std::process::Command;

use camino::{Utf8Path, Utf8PathBuf};

use super::super::tool;
use super::Failure;
use crate::conformance::daemon::Daemon;

/// A MariaDB that runs until it is dropped.
pub struct Database {
    /// Its port.
    pub port: u16,
    socket: String,
    folder: Utf8PathBuf,
    added: Cell<u32>,
    _daemon: Daemon,
}

impl Database {
    /// Starts it.
    pub fn start(scratch: &Utf8Path) -> Result<Self, Failure> {
        let folder = scratch.join("mariadb");
        std::fs::create_dir_all(&folder)?;
        let user = format!("--user={}", tool("id", &["-un"], &folder)?.trim());
        let data = format!("--datadir={folder}/data");
        let install = ["--no-defaults", &user, &data, "--auth-root-authentication-method=normal"];
        tool("mariadb-install-db", &install, &folder)?;
        let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        let (socket, on) = (format!("--socket={folder}/s"), format!("--port={port}"));
        let args = ["--no-defaults", &user, &data, &socket, &on, "--bind-address=127.0.0.1"];
        let mut daemon = Daemon::start(
            &Command::new("mariadbd"),
            &args,
            ("MYSQL_HOME", &folder),
            folder.join("mariadbd.log"),
        )?;
        let ask =
            |sql: &str| tool("mariadb", &["--no-defaults", &socket, "-uroot", "-e", sql], &folder);
        daemon.until("answering", |_| ask("select 1").is_ok())?;
        for host in ["localhost", "127.0.0.1"] {
            ask(&format!("create user slurm@'{host}' identified by 'lab'"))?;
        }
        Ok(Self { port, socket, folder, added: Cell::new(0), _daemon: daemon })
    }

    /// Makes an empty database, for the user `slurm`; gives its name.
    pub fn add(&self) -> Result<String, Failure> {
        self.added.set(self.added.get() + 1);
        let name = format!("lab{}", self.added.get());
        let grants = ["localhost", "127.0.0.1"]
            .map(|host| format!("grant all on {name}.* to slurm@'{host}'"));
        let sql = format!("create database {name}; {}", grants.join("; "));
        tool("mariadb", &["--no-defaults", &self.socket, "-uroot", "-e", &sql], &self.folder)?;
        Ok(name)
    }
}
