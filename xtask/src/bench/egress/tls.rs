//! A web server behind TLS, by `openssl`, and an authority that the broker is told to believe.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use super::network::{NAME, Network, SERVER};
use crate::bench::peer::find_program;

pub(super) const HTTPS: u16 = 443;
/// What it serves: as large as a download, and as small as an answer.
pub(super) const LARGE: &str = "large";
pub(super) const SMALL: &str = "small";
pub(super) const SMALL_BYTES: u64 = 100;

const START: Duration = Duration::from_secs(10);

/// Runs until it is dropped.
pub(super) struct Web {
    child: Child,
}

/// The authority's certificate, in the benchmark's folder.
pub(super) fn authority(dir: &Path) -> PathBuf {
    dir.join("tls/ca.pem")
}

impl Web {
    /// Without `openssl` there is nothing to measure, and why.
    pub(super) fn start(network: &Network, dir: &Path, mib: u32) -> Result<Self> {
        let program = find_program("openssl").context("there is no openssl: install it")?;
        let folder = dir.join("tls");
        fs::create_dir(&folder)?;
        certify(&program, &folder)?;
        File::create(folder.join(LARGE))?.set_len(u64::from(mib) << 20)?;
        File::create(folder.join(SMALL))?.set_len(SMALL_BYTES)?;
        let mut command = network.beside_servers(&program);
        command
            .current_dir(&folder)
            .args(["s_server", "-quiet", "-WWW", "-accept"])
            .arg(format!("{SERVER}:{HTTPS}"))
            .args(["-cert", "leaf.pem", "-key", "leaf.key"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = command.spawn().context("could not start openssl")?;
        let web = Web { child };
        web.wait(network)?;
        Ok(web)
    }

    fn wait(&self, network: &Network) -> Result<()> {
        let deadline = Instant::now() + START;
        let connect = || Ok(std::net::TcpStream::connect((SERVER, HTTPS)).is_ok());
        while !network.in_world(connect)? {
            if Instant::now() > deadline {
                bail!("openssl s_server doesn't listen");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// An authority, and a certificate of its for the server's name.
fn certify(program: &Path, folder: &Path) -> Result<()> {
    let leaf = format!("subjectAltName=DNS:{NAME}\nbasicConstraints=CA:FALSE\n");
    fs::write(folder.join("leaf.ext"), leaf)?;
    let subject = format!("/CN={NAME}");
    let key = [
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
    ];
    let openssl = |arguments: &[&str]| {
        let output = Command::new(program)
            .args(arguments)
            .current_dir(folder)
            .output()
            .context("could not start openssl")?;
        let complaints = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.success(),
            "openssl: {}",
            complaints.trim_end()
        );
        Ok(())
    };
    let authority = ["req", "-x509", "-days", "2", "-subj", "/CN=Benchmark"];
    let files = ["-keyout", "ca.key", "-out", "ca.pem"];
    openssl(&[&authority[..], &key, &files].concat())?;
    let request = ["req", "-new", "-subj", &subject];
    let files = ["-keyout", "leaf.key", "-out", "leaf.csr"];
    openssl(&[&request[..], &key, &files].concat())?;
    openssl(&[
        "x509",
        "-req",
        "-in",
        "leaf.csr",
        "-CA",
        "ca.pem",
        "-CAkey",
        "ca.key",
        "-CAcreateserial",
        "-days",
        "2",
        "-extfile",
        "leaf.ext",
        "-out",
        "leaf.pem",
    ])
}
