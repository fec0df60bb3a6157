//! Connections: accepted up to a limit, timed out when the client is slow, and
//! shut down gracefully.

mod io_timeout;
mod response_progress;
mod tls;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{ConnectInfo, Request};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tower::ServiceExt as _;

use super::limits::RequestPermit;
use super::limits::body::WINDOW;
use super::{App, Error, HttpOptions, router};
use crate::service::Service;
use io_timeout::{IoTimeout, Timeouts};
use response_progress::ResponseProgress;

pub use tls::Tls;

/// Serves until `shutdown`; then accepts no more connections and waits for the
/// requests in progress.
pub async fn serve(
    listener: TcpListener,
    service: Arc<Service>,
    options: HttpOptions,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Error> {
    let app = App::new(service, options.clone());
    app.capacity.watch_runtime(tokio::runtime::Handle::current())?;
    let router = router(app);
    let connections = Arc::new(Semaphore::new(options.connections));
    let graceful = GracefulShutdown::new();
    let mut shutdown = std::pin::pin!(shutdown);
    let tls = options.tls.as_ref().map(|tls| tokio_rustls::TlsAcceptor::from(tls.config()));
    loop {
        // At the limit new connections wait in the kernel's backlog.
        let permit = tokio::select! {
            permit = connections.clone().acquire_owned() => permit,
            () = &mut shutdown => break,
        };
        let (stream, peer) = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(connection) => connection,
                Err(error) => {
                    tracing::warn!(%error, "accepting a connection failed");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
            () = &mut shutdown => break,
        };
        let _delay = stream.set_nodelay(true);
        let (router, watcher) = (router.clone(), graceful.watcher());
        let (tls, limits) = (tls.clone(), options.clone());
        tokio::spawn(async move {
            let _permit = permit;
            match tls {
                None => serve_connection(stream, peer, router, &limits, watcher).await,
                Some(acceptor) => {
                    let handshake =
                        tokio::time::timeout(limits.header_time, acceptor.accept(stream));
                    if let Ok(Ok(stream)) = handshake.await {
                        serve_connection(stream, peer, router, &limits, watcher).await;
                    }
                }
            }
        });
    }
    if tokio::time::timeout(options.grace, graceful.shutdown()).await.is_err() {
        tracing::warn!("some connections did not finish in time");
    }
    Ok(())
}

async fn serve_connection<S>(
    stream: S,
    peer: SocketAddr,
    router: Router,
    limits: &HttpOptions,
    watcher: hyper_util::server::graceful::Watcher,
) where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let progress = ResponseProgress::default();
    let responses = progress.clone();
    let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
        let mut request: Request = request.map(axum::body::Body::new);
        request.extensions_mut().insert(ConnectInfo(peer));
        let (response, responses) = (router.clone().oneshot(request), responses.clone());
        async move {
            let mut response = response.await?;
            let permit = response.extensions_mut().remove::<Arc<RequestPermit>>();
            Ok::<_, Infallible>(response.map(|body| responses.watch(body, permit)))
        }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_time)
        .max_buf_size(limits.header_bytes);
    let header_list = u32::try_from(limits.header_bytes).unwrap_or(u32::MAX);
    // Pings find connections whose client vanished.
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(limits.header_time)
        .keep_alive_timeout(limits.header_time)
        .max_header_list_size(header_list)
        .max_concurrent_streams(limits.streams_per_connection)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW);
    let timeouts = Timeouts { first_bytes: limits.header_time, write: limits.answer_time };
    let stream = IoTimeout::new(stream, timeouts);
    let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
    tokio::select! {
        ended = watcher.watch(connection.into_owned()) => if let Err(error) = ended {
            tracing::debug!(%peer, %error, "a connection ended early");
        },
        () = progress.stalled(limits.answer_time) => {
            tracing::debug!(%peer, "a client does not read its response");
        }
    }
}
