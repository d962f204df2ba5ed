//! What a scenario works with: a client, and a new scope of its own. Whatever fails panics.

use pravega_client::client_factory::ClientFactoryAsync;
use pravega_client::event::ReaderGroup;
use pravega_client_shared::{Retention, Scaling, Scope, ScopedStream, Segment, Stream, StreamConfiguration};
use std::future::Future;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::{sleep, timeout};

const SOON: Duration = Duration::from_secs(60);
const ASK_AGAIN: Duration = Duration::from_millis(50);

pub struct Session {
    pub factory: ClientFactoryAsync,
    pub scope: Scope,
}

impl Session {
    pub async fn new(factory: ClientFactoryAsync) -> Session {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
        let scope = Scope::from(format!("rust-{:x}", now.as_nanos()));
        let is_new = factory.controller_client().create_scope(&scope).await.expect("a scope");
        assert!(is_new, "the scope is new");
        Session { factory, scope }
    }

    pub fn stream(&self, name: &str) -> ScopedStream {
        ScopedStream::new(self.scope.clone(), Stream::from(name.to_owned()))
    }

    pub async fn create_stream(&self, name: &str, segments: i32) -> ScopedStream {
        let stream = self.stream(name);
        let is_new = self.create(&configuration(&stream, segments, None)).await;
        assert!(is_new, "the stream is new");
        stream
    }

    /// Whether it is new.
    pub async fn create(&self, configuration: &StreamConfiguration) -> bool {
        let controller = self.factory.controller_client();
        controller.create_stream(configuration).await.expect("a stream")
    }

    /// Numbers of the segments that are written to, in the order of their keys.
    pub async fn segments(&self, stream: &ScopedStream) -> Vec<i64> {
        let controller = self.factory.controller_client();
        let segments = controller.get_current_segments(stream).await.expect("current segments");
        segments
            .key_segment_map
            .values()
            .map(|each| each.get_segment().number)
            .collect()
    }

    /// Put segments of these key ranges in the place of all that are written to.
    pub async fn scale(&self, stream: &ScopedStream, ranges: &[(f64, f64)]) {
        let sealed: Vec<Segment> = self.segments(stream).await.into_iter().map(Segment::from).collect();
        let controller = self.factory.controller_client();
        controller
            .scale_stream(stream, &sealed, ranges)
            .await
            .expect("the stream scales");
    }

    pub async fn reader_group(&self, name: &str, stream: &ScopedStream) -> ReaderGroup {
        self.factory.create_reader_group(name.to_owned(), stream.clone()).await
    }
}

pub fn configuration(stream: &ScopedStream, segments: i32, tags: Option<Vec<String>>) -> StreamConfiguration {
    let scaling = Scaling {
        min_num_segments: segments,
        ..Scaling::default()
    };
    StreamConfiguration::new(stream.clone(), scaling, Retention::default(), tags)
}

/// The next `count` events that a new reader of a group gets, which is offline then.
pub async fn read(group: &ReaderGroup, reader: &str, count: usize) -> Vec<String> {
    let mut reader = group.create_reader(reader.to_owned()).await;
    let mut events = Vec::new();
    let reading = async {
        while events.len() < count {
            let Some(mut slice) = reader.acquire_segment().await.expect("the reader is online") else {
                continue;
            };
            let missing = count - events.len();
            events.extend(slice.by_ref().take(missing).map(|event| text(&event.value)));
            reader.release_segment(slice).await.expect("the reader is online");
        }
    };
    if timeout(SOON, reading).await.is_err() {
        panic!("{count} events are read; there were {}: {events:?}", events.len());
    }
    reader.reader_offline().await.expect("the reader goes");
    events
}

/// Return once it holds.
pub async fn eventually<Holds: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> Holds) {
    let asking = async {
        while !holds().await {
            sleep(ASK_AGAIN).await;
        }
    };
    assert!(timeout(SOON, asking).await.is_ok(), "{what}");
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}
