//! Spans and events of the crate `tracing` as markers: nested spans, spans of futures on several threads, a
//! span that a panic ends, and futures that are dropped before they are done.
//!
//! `TRACEBRIDGE_TAGS=app cargo run -p tracebridge-markers --features tracing --example tracing_spans`, while
//! something records.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use tracebridge_markers::tracing_layer::MarkerLayer;
use tracing::{Instrument, info, info_span, instrument};
use tracing_subscriber::layer::SubscriberExt;

/// A future that is ready after some polls.
struct Polls(u32);

impl Future for Polls {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        self.0 = self.0.saturating_sub(1);
        if self.0 == 0 { Poll::Ready(()) } else { Poll::Pending }
    }
}

#[instrument]
async fn fetch(id: u32) {
    Polls(3).instrument(info_span!("connect")).await;
    info!(bytes = 100 * id, "received");
    Polls(2).await;
}

fn nested(depth: u32) {
    let _span = info_span!("nested", depth).entered();
    if depth > 0 {
        nested(depth - 1);
    }
}

fn main() {
    let subscriber = tracing_subscriber::registry().with(MarkerLayer::new());
    tracing::subscriber::set_global_default(subscriber).expect("no other subscriber");
    nested(3);

    // Two futures in turns, each poll on another thread.
    let mut futures: Vec<_> = (0..2).map(|id| Box::pin(fetch(id))).collect();
    while !futures.is_empty() {
        futures.retain_mut(|future| {
            let poll = || future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            std::thread::scope(|scope| scope.spawn(poll).join().expect("no panic")).is_pending()
        });
    }

    let mut dropped = Box::pin(fetch(9));
    for _ in 0..2 {
        assert!(dropped.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    drop(dropped);

    let panicked = std::thread::spawn(|| {
        let _span = info_span!("panics").entered();
        std::panic::resume_unwind(Box::new("on purpose"));
    });
    assert!(panicked.join().is_err());
    info!("done");
}
