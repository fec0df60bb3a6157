//! Somebody between the hammer and a log, who changes what the log says.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

/// A question and its answer, on the way back.
pub(crate) struct Exchange {
    /// `POST /entries`, without the version.
    pub(crate) request: String,
    /// The body of the request.
    pub(crate) sent: Vec<u8>,
    pub(crate) status: u16,
    pub(crate) location: Option<String>,
    pub(crate) body: Vec<u8>,
    content_type: String,
}

/// What is made of an exchange.
pub(crate) type Lie = dyn Fn(&mut Exchange) + Send + Sync;

/// Listens until the test process ends; gives the address.
pub(crate) fn proxy(upstream: &str, lie: Box<Lie>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (upstream, lie) = (upstream.to_owned(), Arc::new(lie));
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let (upstream, lie) = (upstream.clone(), lie.clone());
            std::thread::spawn(move || relay(stream, &upstream, &**lie));
        }
    });
    format!("http://{address}")
}

/// One request on a connection of its own; none when it breaks off.
fn relay(mut client: TcpStream, upstream: &str, lie: &Lie) -> Option<()> {
    let mut reader = BufReader::new(client.try_clone().ok()?);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line == "\r\n" {
            break;
        }
        head.push_str(&line);
    }
    let mut sent = vec![0; length];
    reader.read_exact(&mut sent).ok()?;
    let mut server = TcpStream::connect(upstream).ok()?;
    server.write_all(format!("{head}connection: close\r\n\r\n").as_bytes()).ok()?;
    server.write_all(&sent).ok()?;
    let mut answer = Vec::new();
    server.read_to_end(&mut answer).ok()?;
    let (request, _) = head.split_once(" HTTP/")?;
    let mut exchange = read(request, sent, &answer)?;
    lie(&mut exchange);
    let Exchange { status, location, body, content_type, .. } = exchange;
    let location = location.map_or(String::new(), |place| format!("location: {place}\r\n"));
    let told = format!(
        "HTTP/1.1 {status} x\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\n{location}connection: close\r\n\r\n",
        body.len()
    );
    client.write_all(told.as_bytes()).ok()?;
    client.write_all(&body).ok()
}

fn read(request: &str, sent: Vec<u8>, answer: &[u8]) -> Option<Exchange> {
    let end = answer.windows(4).position(|w| w == b"\r\n\r\n")?;
    let head = std::str::from_utf8(answer.get(..end)?).ok()?;
    let field = |name: &str| {
        let line = head.lines().find_map(|line| line.strip_prefix(name));
        line.map(|value| value.trim().to_owned())
    };
    Some(Exchange {
        request: request.to_owned(),
        sent,
        status: head.split(' ').nth(1)?.parse().ok()?,
        location: field("location:"),
        body: answer.get(end + 4..)?.to_vec(),
        content_type: field("content-type:").unwrap_or_default(),
    })
}
