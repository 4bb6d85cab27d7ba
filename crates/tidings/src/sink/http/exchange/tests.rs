//! What a real network shows only now and then: an answer that arrives between
//! the read that found nothing and the write that failed.

use super::super::{HttpLimits, HttpRequest, on_the_wire};
use super::*;
use http::Method;
use std::io;
use std::pin::Pin;
use std::task::{Context, Waker};
use tidings_core::guard::GuardRules;
use tidings_core::time::Time;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};

/// Takes a few bytes, then fails every write; only after that can its answer be read.
struct AnswersBehindAReset {
    tcp: TcpStream,
    answer: &'static [u8],
    taken: bool,
    reset: bool,
    reader: Option<Waker>,
}

impl AsyncRead for AnswersBehindAReset {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.reset {
            self.reader = Some(context.waker().clone());
            return Poll::Pending;
        }
        buffer.put_slice(std::mem::take(&mut self.answer));
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for AnswersBehindAReset {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if !self.taken {
            self.taken = true;
            return Poll::Ready(Ok(bytes.len().min(10)));
        }
        self.reset = true;
        self.reader.take().into_iter().for_each(Waker::wake);
        Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl Stream for AnswersBehindAReset {
    fn tcp(&self) -> &TcpStream {
        &self.tcp
    }
}

async fn ending_of(answer: &'static [u8]) -> (Ending, Trail) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let tcp = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let stream = AnswersBehindAReset { tcp, answer, taken: false, reset: false, reader: None };
    let target = Target::parse("https://hooks.example.com/", &GuardRules::default()).unwrap();
    let body = Bytes::from(vec![b'x'; 100_000]);
    let request =
        HttpRequest { method: Method::POST, url: target.url().to_string(), headers: Vec::new(), body };
    let (clock, trail) = (Clock::start(HttpLimits::default(), Time(0)), Trail::default());
    trail.begin(&request, &clock);
    trail.enter(Phase::Write);
    let request = on_the_wire(&target, request).unwrap();
    (run(Box::new(stream), request, &target, &clock, &trail).await, trail)
}

#[tokio::test]
async fn an_answer_that_comes_with_the_reset_is_read_after_the_write_failed() {
    let answer = b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig";
    let (ending, trail) = ending_of(answer).await;
    assert_eq!(ending, Ending::Answer { status: 413 });
    let evidence = trail.evidence().unwrap();
    assert_eq!((evidence.excerpt.as_str(), evidence.bytes_written), ("big", 10));
    assert!(!trail.request_complete());
}

#[tokio::test]
async fn a_failed_write_without_an_answer_is_named_as_what_broke() {
    let (ending, trail) = ending_of(b"").await;
    let Ending::Broken(reason) = &ending else { panic!("{ending:?}") };
    assert!(reason.contains("reset") && reason.contains("while the request was being sent"), "{reason}");
    assert_eq!(trail.phase(), Phase::Write);
}
