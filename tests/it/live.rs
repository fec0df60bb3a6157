//! A real process with a real socket, and the smallest client for it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

use capstan::envelope::{Draft, seal};
use capstan::key::SigningKey;

/// A running `capstan serve`, killed when dropped.
pub(crate) struct Server {
    child: Mutex<Child>,
    pub(crate) address: String,
}

impl Server {
    pub(crate) fn start(data: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_capstan"))
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .env_remove("CAPSTAN_VECTORS")
            .arg(data)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on http://");
        let address = address.unwrap_or_else(|| panic!("no address in {line:?}")).to_owned();
        Self { child: Mutex::new(child), address }
    }

    /// SIGKILL: no chance to say goodbye.
    pub(crate) fn kill(&self) {
        let mut child = self.child.lock().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    pub(crate) fn pid(&self) -> String {
        self.child.lock().unwrap().id().to_string()
    }

    /// SIGTERM, and how it ended.
    pub(crate) fn terminate(&self) -> std::process::ExitStatus {
        Command::new("kill").args(["-TERM", &self.pid()]).status().unwrap();
        self.child.lock().unwrap().wait().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let mut child = self.child.lock().unwrap();
        let _gone = child.kill();
        let _gone = child.wait();
    }
}

/// A statement no profile looks into, as new as its text.
pub(crate) fn sealed(key: &SigningKey, text: &str) -> Vec<u8> {
    let draft = Draft {
        content_type: "text/plain",
        issuer: "https://agent.example",
        subject: "urn:example:live",
        issued_at: None,
        payload: text.as_bytes(),
    };
    seal(&draft, key).unwrap()
}

/// Status and body of one request on a connection of its own; an error when
/// the server goes away.
pub(crate) fn request(address: &str, head: &str, body: &[u8]) -> std::io::Result<(u16, Vec<u8>)> {
    request_of(address, head, ("application/cose", body))
}

/// The same with a body of any type.
pub(crate) fn request_of(
    address: &str,
    head: &str,
    (content_type, body): (&str, &[u8]),
) -> std::io::Result<(u16, Vec<u8>)> {
    let mut stream = TcpStream::connect(address)?;
    let length = body.len();
    let head = format!(
        "{head} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let cut = || std::io::Error::other("the answer was cut");
    let end = answer.windows(4).position(|w| w == b"\r\n\r\n").ok_or_else(cut)?;
    let text = String::from_utf8_lossy(&answer[..end]).to_ascii_lowercase();
    let status = text.split(' ').nth(1).and_then(|s| s.parse().ok()).ok_or_else(cut)?;
    let length = text.lines().find_map(|l| l.strip_prefix("content-length: ")).map(str::parse);
    let body = answer[end + 4..].to_vec();
    if length.is_some_and(|l| l != Ok(body.len())) {
        return Err(cut());
    }
    Ok((status, body))
}
