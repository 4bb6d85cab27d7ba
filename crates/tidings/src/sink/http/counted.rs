//! A stream that notes in the trail what goes through it.
//!
//! It sits above TLS: the bytes it counts are the request's and the answer's own.

use super::Trail;
use super::connect::Stream;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A counted connection.
pub(super) struct Counted {
    stream: Box<dyn Stream>,
    trail: Trail,
    write_broke: bool,
}

impl Counted {
    pub(super) fn new(stream: Box<dyn Stream>, trail: Trail) -> Counted {
        Counted { stream, trail, write_broke: false }
    }

    /// A receiver may answer early and reset while we still write. Its answer can
    /// be read after our write has failed, so a failed write only stops writing;
    /// the reading side then sees the answer, or the end of the connection.
    fn write_failed(&mut self, error: &io::Error) {
        self.write_broke = true;
        self.trail.write_broke(error);
    }
}

impl Drop for Counted {
    /// An exchange that is given up ends at once: without the reset, the kernel
    /// would go on to deliver what it still holds of the request, after the
    /// attempt was recorded and perhaps while the next one is made.
    fn drop(&mut self) {
        if !self.trail.is_over() {
            // A connection that is gone already needs no reset.
            let _ = self.stream.tcp().set_zero_linger();
        }
    }
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.trail.has_too_many_interim_answers() {
            return Poll::Ready(Err(io::Error::other("too many interim answers")));
        }
        let before = buffer.filled().len();
        let outcome = Pin::new(&mut self.stream).poll_read(context, buffer);
        let count = buffer.filled().len() - before;
        if count > 0 {
            self.trail.read(count);
        }
        outcome
    }
}

impl AsyncWrite for Counted {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.write_broke {
            return Poll::Pending;
        }
        match Pin::new(&mut self.stream).poll_write_vectored(context, slices) {
            Poll::Ready(Ok(count)) => {
                self.trail.wrote(slices, count);
                Poll::Ready(Ok(count))
            }
            Poll::Ready(Err(error)) => {
                self.write_failed(&error);
                Poll::Pending
            }
            Poll::Pending => Poll::Pending,
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.write_broke {
            return Poll::Pending;
        }
        match Pin::new(&mut self.stream).poll_flush(context) {
            Poll::Ready(Ok(())) => {
                self.trail.flushed();
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(error)) => {
                self.write_failed(&error);
                Poll::Pending
            }
            Poll::Pending => Poll::Pending,
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
