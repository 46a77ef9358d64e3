//! A layer for `tracing-subscriber` that writes spans and events as markers.

use std::collections::HashSet;
use std::fmt::{self, Debug, Write};
use std::sync::RwLock;
use std::sync::atomic::{AtomicI32, Ordering};

use tracing_core::callsite::Identifier;
use tracing_core::field::{Field, Visit};
use tracing_core::span::{Attributes, Id, Record};
use tracing_core::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

use super::marker::Marker;
use super::tracer::{APP, Tracer};

/// The name of the field that has the text of an event.
const MESSAGE: &str = "message";

/// Writes the spans and events of `tracing` as markers.
///
/// - A span becomes a slice of the thread, from where it is entered to where it is left. Its fields are
///   arguments in the name: `load(id=7)`.
/// - A span that is entered more than once, as one of a future is at each poll, has an async slice of the
///   process as well, until it is closed.
/// - An event becomes an instant of the thread, with the event's text and its fields.
/// - A field of an event that is a whole number becomes a counter of the process, under the field's name; so
///   does one that is recorded into a span later.
///
/// Nothing says of a span when it is made that it will be held across an `await`. The first such span of a
/// place in the program shows when it is entered the second time, and its async slice begins there; all later
/// ones of this place begin when they are made.
///
/// ```
/// use tracebridge_markers::tracing_layer::MarkerLayer;
/// use tracing_subscriber::layer::SubscriberExt;
///
/// let subscriber = tracing_subscriber::registry().with(MarkerLayer::new());
/// tracing::subscriber::with_default(subscriber, || {
///     let _load = tracing::info_span!("load", id = 7).entered();
///     tracing::info!(queue = 3, "the cache is full");
/// });
/// ```
#[derive(Debug)]
pub struct MarkerLayer<T = &'static Tracer> {
    tracer: T,
    /// The places in the program whose spans are entered more than once.
    entered_again: RwLock<HashSet<Identifier>>,
    next_cookie: AtomicI32,
}

impl MarkerLayer {
    /// Makes a layer that writes markers with the tracer [`APP`].
    pub fn new() -> MarkerLayer {
        MarkerLayer::with_tracer(&APP)
    }
}

impl Default for MarkerLayer {
    fn default() -> MarkerLayer {
        MarkerLayer::new()
    }
}

impl<T: AsRef<Tracer>> MarkerLayer<T> {
    /// Makes a layer that writes markers with this tracer: a reference to a `static`, or an `Arc`.
    pub fn with_tracer(tracer: T) -> MarkerLayer<T> {
        MarkerLayer { tracer, entered_again: RwLock::default(), next_cookie: AtomicI32::new(0) }
    }

    fn tracer(&self) -> &Tracer {
        self.tracer.as_ref()
    }

    fn is_entered_again(&self, place: &Identifier) -> bool {
        self.entered_again.read().is_ok_and(|places| places.contains(place))
    }

    fn begin_async(&self, span: &mut SpanMarkers) {
        let cookie = self.next_cookie.fetch_add(1, Ordering::Relaxed);
        span.async_cookie = self.tracer().async_begin(&span.name, cookie).then_some(cookie);
    }
}

/// The layer's state of a span. Only spans that were made or entered while markers were written have
/// it.
struct SpanMarkers {
    /// The span's name and its first fields.
    name: String,
    was_entered: bool,
    /// How many slices of threads have begun and not ended.
    open_slices: usize,
    /// The cookie of the async slice, while one is open.
    async_cookie: Option<i32>,
}

impl<S, T> Layer<S> for MarkerLayer<T>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    T: AsRef<Tracer> + 'static,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, ctx: Context<'_, S>) {
        let Some(span) = ctx.span(id).filter(|_| self.tracer().is_on()) else { return };
        let mut name = attributes.metadata().name().to_owned();
        let mut arguments = Arguments { text: String::new(), message: None, counters: None };
        attributes.record(&mut arguments);
        if !arguments.text.is_empty() {
            let _ = write!(name, "({})", arguments.text);
        }
        let mut markers = SpanMarkers { name, was_entered: false, open_slices: 0, async_cookie: None };
        if self.is_entered_again(&attributes.metadata().callsite()) {
            self.begin_async(&mut markers);
        }
        span.extensions_mut().insert(markers);
    }

    fn on_enter(&self, id: &Id, ctx: Context<'_, S>) {
        let Some(span) = ctx.span(id).filter(|_| self.tracer().is_on()) else { return };
        let mut extensions = span.extensions_mut();
        if extensions.get_mut::<SpanMarkers>().is_none() {
            let name = span.name().to_owned();
            extensions.insert(SpanMarkers { name, was_entered: false, open_slices: 0, async_cookie: None });
        }
        let Some(markers) = extensions.get_mut::<SpanMarkers>() else { return };
        if markers.was_entered && markers.async_cookie.is_none() {
            self.begin_async(markers);
            if let Ok(mut places) = self.entered_again.write() {
                places.insert(span.metadata().callsite());
            }
        }
        markers.was_entered = true;
        markers.open_slices += usize::from(self.tracer().begin(&markers.name));
    }

    fn on_exit(&self, id: &Id, ctx: Context<'_, S>) {
        let Some(span) = ctx.span(id) else { return };
        let mut extensions = span.extensions_mut();
        let Some(markers) = extensions.get_mut::<SpanMarkers>() else { return };
        if markers.open_slices > 0 {
            markers.open_slices -= 1;
            self.tracer().write_end();
        }
    }

    fn on_close(&self, id: Id, ctx: Context<'_, S>) {
        let Some(span) = ctx.span(&id) else { return };
        let mut extensions = span.extensions_mut();
        let Some(markers) = extensions.get_mut::<SpanMarkers>() else { return };
        if let Some(cookie) = markers.async_cookie.take() {
            let name = markers.name.as_bytes();
            let cookie = i64::from(cookie);
            self.tracer().mark_now(|pid| Marker::AsyncEnd { pid, name, cookie });
        }
    }

    fn on_record(&self, _: &Id, values: &Record<'_>, _: Context<'_, S>) {
        if self.tracer().is_on() {
            values.record(&mut Arguments {
                text: String::new(),
                message: None,
                counters: Some(self.tracer()),
            });
        }
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if !self.tracer().is_on() {
            return;
        }
        let mut arguments = Arguments { text: String::new(), message: None, counters: Some(self.tracer()) };
        event.record(&mut arguments);
        let text = match (arguments.message, arguments.text) {
            (Some(message), text) if text.is_empty() => message,
            (Some(message), text) => format!("{message}({text})"),
            (None, text) if text.is_empty() => return,
            (None, text) => format!("{}({text})", event.metadata().target()),
        };
        self.tracer().instant(&text);
    }
}

/// Collects the fields of a span or of an event.
struct Arguments<'t> {
    /// `name=value`, separated by spaces.
    text: String,
    /// The text of an event.
    message: Option<String>,
    /// Where whole numbers become counters; `None` where they are arguments as all other fields.
    counters: Option<&'t Tracer>,
}

impl Arguments<'_> {
    fn push(&mut self, field: &Field, value: impl fmt::Display) {
        if field.name() == MESSAGE {
            self.message = Some(value.to_string());
            return;
        }
        let space = if self.text.is_empty() { "" } else { " " };
        let _ = write!(self.text, "{space}{}={value}", field.name());
    }
}

impl Visit for Arguments<'_> {
    fn record_i64(&mut self, field: &Field, value: i64) {
        match self.counters {
            Some(tracer) => drop(tracer.counter(field.name(), value)),
            None => self.push(field, value),
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        match i64::try_from(value) {
            Ok(value) => self.record_i64(field, value),
            Err(_) => self.push(field, value),
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.push(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.push(field, format_args!("{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::Pin;
    use std::sync::Arc;
    use std::task::{Poll, Waker};

    use tracing::{Instrument, info, info_span};
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    /// Runs `program` under the layer, and returns its markers without process ids.
    fn written(program: impl FnOnce()) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("trace_marker");
        std::fs::File::create(&path).unwrap();
        let tracer = Arc::new(Tracer::open_at(&path).unwrap().as_pid(7));
        let subscriber = tracing_subscriber::registry().with(MarkerLayer::with_tracer(tracer));
        tracing::subscriber::with_default(subscriber, program);
        let text = std::fs::read_to_string(&path).unwrap();
        let starts: Vec<usize> = text.match_indices("|7").map(|(at, _)| at - 1).collect();
        let ends = starts.iter().skip(1).copied().chain([text.len()]);
        let marker =
            |(start, end): (&usize, usize)| format!("{}{}", &text[*start..][..1], &text[start + 3..end]);
        starts.iter().zip(ends).map(marker).collect()
    }

    /// A future that is ready at the third poll.
    struct Third(u32);

    impl Future for Third {
        type Output = ();
        fn poll(mut self: Pin<&mut Self>, _: &mut std::task::Context<'_>) -> Poll<()> {
            self.0 += 1;
            if self.0 == 3 { Poll::Ready(()) } else { Poll::Pending }
        }
    }

    fn run(future: impl Future) {
        let mut future = std::pin::pin!(future);
        let mut context = std::task::Context::from_waker(Waker::noop());
        while future.as_mut().poll(&mut context).is_pending() {}
    }

    #[test]
    fn spans_are_slices_and_events_are_instants_and_counters() {
        let markers = written(|| {
            let _load = info_span!("load", id = 3, path = "x").entered();
            info!(queue = 5, ok = true, "full");
            info!(depth = 9u64);
        });
        assert_eq!(markers, ["B|load(id=3 path=x)", "C|queue|5", "I|full(ok=true)", "C|depth|9", "E"]);
    }

    #[test]
    fn a_span_across_awaits_is_an_async_slice() {
        let place = || info_span!("fetch");
        let markers = written(|| {
            run(Third(0).instrument(place()));
            run(Third(1).instrument(place()));
        });
        let first =
            ["B|fetch", "E", "S|fetch|0", "B|fetch", "E", "B|fetch", "E", "B|fetch", "E", "F|fetch|0"];
        let later = ["S|fetch|1", "B|fetch", "E", "B|fetch", "E", "B|fetch", "E", "F|fetch|1"];
        assert_eq!(markers, [&first[..], &later[..]].concat());
    }

    #[test]
    fn a_panic_and_a_span_that_is_dropped_leave_nothing_open() {
        let markers = written(|| {
            drop(info_span!("never entered"));
            let panicked = std::panic::catch_unwind(|| {
                let _outer = info_span!("outer").entered();
                let _inner = info_span!("inner").entered();
                std::panic::resume_unwind(Box::new(()));
            });
            assert!(panicked.is_err());
            // A future that is dropped before it is done.
            let mut future = Box::pin(Third(0).instrument(info_span!("cut")));
            let mut context = std::task::Context::from_waker(Waker::noop());
            assert!(future.as_mut().poll(&mut context).is_pending());
        });
        let begun = |letter| markers.iter().filter(|m| m.starts_with(letter)).count();
        assert_eq!(begun('B'), begun('E'), "{markers:?}");
        assert_eq!(begun('S'), begun('F'), "{markers:?}");
        assert_eq!(markers[..4], ["B|outer", "B|inner", "E", "E"]);
    }
}
