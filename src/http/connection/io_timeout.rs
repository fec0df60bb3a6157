//! Timeouts of a connection.
//!
//! hyper waits without limit in two places: for the first bytes, which tell
//! HTTP/1 from HTTP/2, and for the client to read its response. Both would let
//! a client occupy a connection for as long as it likes.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// Bytes of an HTTP/2 preface. After these the version is known, and hyper's
/// own timeouts apply.
const PREFACE: usize = 24;

/// How long each may take.
pub(super) struct Timeouts {
    /// For the first bytes to arrive.
    pub(super) first_bytes: Duration,
    /// For the client to read some of its response.
    pub(super) write: Duration,
}

/// A stream with both timeouts. Belongs to the task of its connection.
pub(super) struct IoTimeout<S> {
    stream: S,
    received: usize,
    /// Runs until the first bytes have arrived.
    first_bytes: Option<Pin<Box<Sleep>>>,
    write_time: Duration,
    /// Runs while a write is pending.
    write: Option<Pin<Box<Sleep>>>,
}

impl<S> IoTimeout<S> {
    pub(super) fn new(stream: S, timeouts: Timeouts) -> Self {
        let first_bytes = Some(Box::pin(tokio::time::sleep(timeouts.first_bytes)));
        Self { stream, received: 0, first_bytes, write_time: timeouts.write, write: None }
    }

    /// The result of a write, or a timeout if it has been pending too long.
    fn timed<T>(
        &mut self,
        context: &mut Context<'_>,
        write: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if write.is_ready() {
            self.write = None;
            return write;
        }
        let time = self.write_time;
        let timeout = self.write.get_or_insert_with(|| Box::pin(tokio::time::sleep(time)));
        timeout.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for IoTimeout<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        let Some(timeout) = &mut self.first_bytes else { return read };
        if read.is_pending() {
            let late = timeout.as_mut().poll(context);
            return late.map(|()| Err(io::ErrorKind::TimedOut.into()));
        }
        self.received += buffer.filled().len() - before;
        if self.received >= PREFACE {
            self.first_bytes = None;
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for IoTimeout<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let write = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.timed(context, write)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let write = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.timed(context, write)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flush = Pin::new(&mut self.stream).poll_flush(context);
        self.timed(context, flush)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shutdown = Pin::new(&mut self.stream).poll_shutdown(context);
        self.timed(context, shutdown)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    const SHORT: Duration = Duration::from_millis(10);
    const LONG: Duration = Duration::from_secs(600);

    #[tokio::test]
    async fn silent_client_times_out() {
        for sent in [b"".as_slice(), b"PRI * HTTP/2.0"] {
            let (mut client, server) = duplex(1000);
            client.write_all(sent).await.unwrap();
            let timeouts = Timeouts { first_bytes: SHORT, write: LONG };
            let mut server = IoTimeout::new(server, timeouts);
            let mut received = Vec::new();
            let late = server.read_to_end(&mut received).await.unwrap_err();
            assert_eq!((late.kind(), received.as_slice()), (io::ErrorKind::TimedOut, sent));
        }
    }

    /// After the first bytes hyper's own timeouts apply.
    #[tokio::test]
    async fn client_may_pause_after_first_bytes() {
        let (mut client, server) = duplex(1000);
        let timeouts = Timeouts { first_bytes: SHORT, write: LONG };
        let mut server = IoTimeout::new(server, timeouts);
        client.write_all(&[b'x'; PREFACE]).await.unwrap();
        let mut received = [0; PREFACE + 1];
        server.read_exact(&mut received[..PREFACE]).await.unwrap();
        let (last, _) = tokio::join!(server.read_exact(&mut received[PREFACE..]), async {
            tokio::time::sleep(5 * SHORT).await;
            client.write_all(b"y").await.unwrap();
        });
        last.unwrap();
    }

    #[tokio::test]
    async fn client_that_does_not_read_times_out() {
        let (mut client, server) = duplex(1000);
        let timeouts = Timeouts { first_bytes: LONG, write: SHORT };
        let mut server = IoTimeout::new(server, timeouts);
        server.write_all(&[0; 1000]).await.unwrap();
        let stuck = server.write_all(&[0; 1000]).await.unwrap_err();
        assert_eq!(stuck.kind(), io::ErrorKind::TimedOut);
        client.read_exact(&mut [0; 1000]).await.unwrap();
        server.write_all(&[0; 1000]).await.unwrap();
    }
}
