//! Over HTTP, the client on the same cores: the server is the real program
//! in a process of its own, the client writes prepared bytes to kept-alive
//! connections and reads whole answers.

use std::cell::{Cell, RefCell};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};

use capstan::key::Algorithm;
use capstan::service;
use serde_json::Value as Json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::task::LocalSet;

use crate::cores::{Rate, core_us};
use crate::statements::{Agent, Kind};
use crate::table::Table;

const CONNECTIONS: usize = 256;
const BATCH: usize = 256;
/// Statements over which the cost at a size is measured.
const WINDOW: usize = 20_480;

/// A log of its own, with the agent's key pinned.
struct Log {
    _dir: tempfile::TempDir,
    data: PathBuf,
    agent: Agent,
}

impl Log {
    fn new() -> Self {
        let dir = tempfile::tempdir_in(".").expect("a directory");
        let data = dir.path().join("data");
        let policy = include_str!("../../policy/open.toml");
        service::init(&data, "bench.invalid", policy, Algorithm::Es256).expect("a log");
        let agent = Agent::new();
        std::fs::write(data.join("trust.toml"), agent.trust()).expect("trust");
        Self { _dir: dir, data, agent }
    }
}

struct Server {
    child: Child,
    address: String,
}

impl Server {
    /// Starts the program and waits for the line that says it is ready.
    fn start(data: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_capstan"))
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(data)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("stdout");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        let address = line.trim().strip_prefix("listening on http://").expect("an address");
        Self { address: address.to_owned(), child }
    }

    /// What it has spent, starting included.
    fn core_us(&self) -> f64 {
        core_us(&self.child.id().to_string())
    }

    fn resident_mb(&self) -> f64 {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).expect("status");
        let line = status.lines().find(|l| l.starts_with("VmRSS:")).expect("VmRSS");
        let kib: f64 = line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("KiB");
        kib / 1024.0
    }
}

impl Drop for Server {
    /// SIGKILL: the next start is always a recovery.
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }
}

/// A kept-alive connection.
struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    async fn open(address: &str) -> Self {
        let stream = TcpStream::connect(address).await.expect("connected");
        stream.set_nodelay(true).expect("nodelay");
        Self { stream, buffer: vec![0; 1 << 16] }
    }

    /// Sends one request and reads its whole answer.
    async fn send(&mut self, request: &[u8], expect: &str) {
        self.stream.write_all(request).await.expect("sent");
        let mut filled = 0;
        let whole = loop {
            let read = self.stream.read(&mut self.buffer[filled..]).await.expect("read");
            assert_ne!(read, 0, "the connection was closed");
            filled += read;
            if let Some(length) = whole_length(&self.buffer[..filled], expect) {
                break length;
            }
        };
        let mut left = whole.saturating_sub(filled);
        while left > 0 {
            let room = left.min(self.buffer.len());
            left -= self.stream.read(&mut self.buffer[..room]).await.expect("read");
        }
    }
}

/// The length of an answer with its head, once its head is there.
fn whole_length(text: &[u8], expect: &str) -> Option<usize> {
    let end = text.windows(4).position(|w| w == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&text[..end]).expect("text");
    assert!(head.starts_with(expect), "{head}");
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    Some(end + 4 + length.expect("a length").parse::<usize>().expect("a number"))
}

fn post(path: &str, content_type: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: bench\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

fn singles(statements: &[Vec<u8>]) -> Vec<Vec<u8>> {
    statements.iter().map(|s| post("/entries", "application/cose", s)).collect()
}

fn batches(statements: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let batch = |chunk: &[Vec<u8>]| post("/entries/batch", "application/cbor-seq", &chunk.concat());
    statements.chunks(BATCH).map(batch).collect()
}

/// A client's runtime: one thread for all connections, as a generator that is
/// in nobody's way has.
fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_io().build().expect("a runtime")
}

/// Sends all requests over some connections; the seconds it took.
fn drive(server: &Server, requests: Vec<Vec<u8>>, connections: usize, expect: &'static str) -> f64 {
    let shared = Rc::new((requests, Cell::new(0)));
    let tasks = LocalSet::new();
    for _ in 0..connections {
        let (shared, address) = (shared.clone(), server.address.clone());
        tasks.spawn_local(async move {
            let (requests, next) = &*shared;
            let mut connection = Connection::open(&address).await;
            while let Some(request) = requests.get(next.replace(next.get() + 1)) {
                connection.send(request, expect).await;
            }
        });
    }
    let started = Instant::now();
    runtime().block_on(tasks);
    started.elapsed().as_secs_f64()
}

/// Registrations per second, one statement a request.
pub(crate) fn single_rate(count: usize) -> Rate {
    let log = Log::new();
    let requests = singles(&log.agent.sign(Kind::Opaque, 0, count));
    let server = Server::start(&log.data);
    let seconds = drive(&server, requests, CONNECTIONS, "HTTP/1.1 201");
    Rate { per_second: count as f64 / seconds, core_us: server.core_us() / count as f64 }
}

/// Registrations per second, 256 statements a request.
pub(crate) fn batch_rate(count: usize) -> Rate {
    let log = Log::new();
    let requests = batches(&log.agent.sign(Kind::Opaque, 0, count));
    let server = Server::start(&log.data);
    let seconds = drive(&server, requests, 8, "HTTP/1.1 200");
    Rate { per_second: count as f64 / seconds, core_us: server.core_us() / count as f64 }
}

/// Answers a second and their median time, with so many requests in flight.
pub(crate) struct Load {
    pub(crate) per_second: f64,
    pub(crate) p50_ms: f64,
}

/// Keeps some requests in flight until all are answered.
pub(crate) fn load(in_flight: usize, count: usize) -> Load {
    let log = Log::new();
    let requests = singles(&log.agent.sign(Kind::Opaque, 0, count.max(20 * in_flight)));
    let server = Server::start(&log.data);
    let shared = Rc::new((requests, Cell::new(0), RefCell::new(Vec::new())));
    let tasks = LocalSet::new();
    for _ in 0..in_flight {
        let (shared, address) = (shared.clone(), server.address.clone());
        tasks.spawn_local(async move {
            let (requests, next, times) = &*shared;
            let mut connection = Connection::open(&address).await;
            while let Some(request) = requests.get(next.replace(next.get() + 1)) {
                let started = Instant::now();
                connection.send(request, "HTTP/1.1 201").await;
                times.borrow_mut().push(started.elapsed().as_secs_f64() * 1e3);
            }
        });
    }
    let started = Instant::now();
    runtime().block_on(tasks);
    let mut times = shared.2.take();
    times.sort_by(f64::total_cmp);
    let per_second = times.len() as f64 / started.elapsed().as_secs_f64();
    Load { per_second, p50_ms: times[times.len() / 2] }
}

/// Answer times while half of what the log can do is asked of it. The load is
/// made by the hammer: by the clock, whatever is answered.
pub(crate) fn half_load(table: &mut Table, seconds: u64) {
    let log = Log::new();
    let server = Server::start(&log.data);
    let url = format!("http://{}", server.address);
    let time = seconds.to_string();
    let hammer = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_capstan"));
        command.args(["hammer", "--url", &url, "--plain", "--keys", "es256", "--json"]);
        command.args(["--in-flight", "64", "--seconds", &time]).args(more);
        let output = command.output().expect("the hammer");
        let told: Json = serde_json::from_slice(&output.stdout).expect("an object");
        assert_eq!(told["ok"], true, "{told}");
        let ms = |name: &str| told["statements"]["answer_ms"][name].as_f64().expect("a time");
        (told["statements"]["registered"].as_u64().expect("a count"), ms("p50"), ms("p99"))
    };
    let half = (hammer(&[]).0 / seconds / 2).max(1);
    let (_, p50, p99) = hammer(&["--rate", &half.to_string()]);
    let what = format!("p99 at half load, {half} /s");
    table.at_most(&what, p99, 4.0 * p50, "ms", &format!("4 x p50 of {p50:.2} ms"));
}

/// What changes as the log grows to `size`.
pub(crate) fn growth(table: &mut Table, size: usize) {
    let log = Log::new();
    let window = WINDOW.min(size / 4);
    let mut logged = 0;
    let mut server = Server::start(&log.data);
    let mut append = |server: &Server, count: usize| {
        let requests = batches(&log.agent.sign(Kind::Opaque, logged, count));
        logged += count;
        drive(server, requests, 8, "HTTP/1.1 200") / count as f64
    };
    append(&server, 1_000.min(size / 4));
    let early = append(&server, window);
    let mut at = window;
    while at + window < size {
        append(&server, window.min(size - at));
        at += window;
    }
    let late = append(&server, window);
    table.figure("cost of a registration at 1 000 entries", early * 1e6, "us");
    table.at_most(
        &format!("the same at {size} entries"),
        late * 1e6,
        early * 1.25e6,
        "us",
        "1.25 x",
    );
    table.at_most(
        &format!("resident at {size} entries"),
        server.resident_mb(),
        400.0,
        "MB",
        "400 MB",
    );
    drop(server);
    let started = Instant::now();
    server = Server::start(&log.data);
    let seconds = started.elapsed().as_secs_f64();
    table.at_most(&format!("start after kill -9 at {size} entries"), seconds, 5.0, "s", "5 s");
    std::thread::sleep(Duration::from_millis(10));
    drop(server);
}
