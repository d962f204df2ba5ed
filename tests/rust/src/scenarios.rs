//! What users of Pravega's Rust client do. A scenario ends normally if all that it expects holds, and panics otherwise.

use crate::session::{configuration, eventually, read, text, Session};
use futures::TryStreamExt;
use pravega_client::event::{EventWriter, Transaction};
use pravega_client::sync::synchronizer::deserialize_from;
use pravega_client::sync::table::TableError;
use pravega_client_shared::{CToken, ScopedStream, StreamCut, Timestamp, TransactionStatus, WriterId};
use std::collections::{BTreeMap, HashMap};

/// Of an entry of a table: that it is not there yet.
const NOT_THERE: i64 = -1;
/// Of a table's segment: wherever it ends.
const ANYWHERE: i64 = -1;

pub async fn run(name: &str, session: &Session) {
    match name {
        "administration" => administration(session).await,
        "bytes" => bytes(session).await,
        "reading-while-scaling" => reading_while_scaling(session).await,
        "synchronizers" => synchronizers(session).await,
        "tables" => tables(session).await,
        "transactions" => transactions(session).await,
        other => panic!("there is no scenario {other}"),
    }
}

/// A stream is created, found by its name and its tag, truncated, sealed and deleted, then its scope.
async fn administration(session: &Session) {
    let controller = session.factory.controller_client();
    let stream = session.stream("orders");
    let tagged = configuration(&stream, 1, Some(vec!["shop".to_owned()]));
    assert!(session.create(&tagged).await, "the stream is new");
    assert!(!session.create(&tagged).await, "a stream is created once only");
    assert!(controller.check_stream_exists(&stream).await.expect("an answer"));
    let named = controller
        .list_streams(&session.scope, &CToken::empty())
        .await
        .expect("a list");
    // Beside the streams of Pravega's own, which hold the times of writers.
    assert!(named.expect("a page").0.contains(&stream));
    let found = controller
        .list_streams_for_tag(&session.scope, "shop", &CToken::empty())
        .await
        .expect("a list");
    assert_eq!(found.map(|page| page.0), Some(vec![stream.clone()]));

    let mut writer = session.factory.create_event_writer(stream.clone());
    write(&mut writer, "key", 0..5).await;
    let ends = session.reader_group("ends", &stream).await;
    read(&ends, "reader", 5).await;
    let read_to = ends.get_streamcut().await;
    write(&mut writer, "key", 5..10).await;
    assert!(controller
        .truncate_stream(&read_to)
        .await
        .expect("the stream is truncated"));
    let heads = controller.get_head_segments(&stream).await.expect("head segments");
    let heads = heads
        .into_iter()
        .map(|(segment, offset)| (segment.number, offset))
        .collect();
    assert_eq!(
        StreamCut::new(stream.clone(), heads).segment_offset_map,
        read_to.segment_offset_map
    );
    let rest = session.reader_group("rest", &stream).await;
    assert_eq!(read(&rest, "reader", 5).await, numbered("key", 5..10));

    assert!(controller.seal_stream(&stream).await.expect("the stream is sealed"));
    assert!(controller.delete_stream(&stream).await.expect("the stream is deleted"));
    assert!(!controller.check_stream_exists(&stream).await.expect("an answer"));
    assert!(controller
        .delete_scope(&session.scope)
        .await
        .expect("the scope is deleted"));
    assert!(!controller.check_scope_exists(&session.scope).await.expect("an answer"));
}

/// What is written to a stream of bytes is read, until it is truncated there, and nothing is written once it is sealed.
async fn bytes(session: &Session) {
    let stream = session.create_stream("bytes", 1).await;
    let mut writer = session.factory.create_byte_writer(stream.clone()).await;
    writer.write(b"hello, ").await.expect("bytes are written");
    writer.write(b"world").await.expect("bytes are written");
    writer.flush().await.expect("bytes are kept");
    let mut reader = session.factory.create_byte_reader(stream.clone()).await;
    let (mut found, mut buffer) = (Vec::new(), [0; 4]);
    while found.len() < 12 {
        let count = reader.read(&mut buffer).await.expect("bytes are read");
        found.extend_from_slice(&buffer[..count]);
    }
    assert_eq!(text(&found), "hello, world");
    writer.truncate_data_before(7).await.expect("bytes are forgotten");
    assert_eq!(reader.current_head().await.expect("the head"), 7);
    writer.seal().await.expect("the stream is sealed");
    assert_eq!(reader.current_tail().await.expect("the tail"), 12);
    writer.write(b"!").await.expect("bytes are sent");
    writer
        .flush()
        .await
        .expect_err("nothing is written to a segment that is sealed");
}

/// Two write while the stream is split and merged; a reader and who comes after it read each event once, in its order.
async fn reading_while_scaling(session: &Session) {
    const EACH: usize = 300;
    let stream = session.create_stream("scaled", 1).await;
    let group = session.reader_group("group", &stream).await;
    let writing = |name| {
        let mut writer = session.factory.create_event_writer(stream.clone());
        let stream = &stream;
        async move {
            write(&mut writer, name, 0..EACH / 3).await;
            eventually("the stream is split", || has_segments(session, stream, 2)).await;
            write(&mut writer, name, EACH / 3..2 * EACH / 3).await;
            eventually("the stream is merged", || has_segments(session, stream, 1)).await;
            write(&mut writer, name, 2 * EACH / 3..EACH).await;
        }
    };
    let scaling = async {
        session.scale(&stream, &[(0.0, 0.5), (0.5, 1.0)]).await;
        let mut probe = session.reader_group("probe", &stream).await;
        read(&mut probe, "reader", EACH).await;
        session.scale(&stream, &[(0.0, 1.0)]).await;
    };
    let reading = async {
        let mut events = read(&group, "first", EACH / 2).await;
        events.extend(read(&group, "second", 2 * EACH - EACH / 2).await);
        events
    };
    let (events, ..) = tokio::join!(reading, writing("a"), writing("b"), scaling);
    let mut of_writers: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for event in &events {
        of_writers.entry(&event[..1]).or_default().push(event);
    }
    for name in ["a", "b"] {
        assert_eq!(of_writers[name], numbered(name, 0..EACH), "what {name} wrote");
    }
    let segments = session.segments(&stream).await;
    assert_eq!(
        segments,
        [(2 << 32) + 3],
        "the third epoch has the fourth segment alone"
    );
}

/// Two share a map: each sees what the other wrote and removed.
async fn synchronizers(session: &Session) {
    let name = || "shared".to_owned();
    let mut one = session.factory.create_synchronizer(session.scope.clone(), name()).await;
    let mut other = session.factory.create_synchronizer(session.scope.clone(), name()).await;
    for (key, value) in [("apples", 3), ("pears", 5)] {
        one.insert(|update| {
            update.insert("stock".to_owned(), key.to_owned(), "i32".to_owned(), Box::new(value));
            Ok(())
        })
        .await
        .expect("a value is put");
    }
    // It does not know the map yet, so its own write is refused first.
    other
        .insert(|update| {
            update.insert("stock".to_owned(), "apples".to_owned(), "i32".to_owned(), Box::new(4));
            Ok(())
        })
        .await
        .expect("a value is put");
    one.insert(|update| {
        update.insert_tombstone("stock".to_owned(), "pears".to_owned())?;
        Ok(())
    })
    .await
    .expect("a value is removed");
    for synchronizer in [&mut one, &mut other] {
        synchronizer.fetch_updates().await.expect("updates");
        let values = synchronizer.get_inner_map("stock").into_iter();
        let stock: HashMap<String, i32> = values
            .map(|(key, value)| (key, deserialize_from(&value.data).expect("a number")))
            .collect();
        assert_eq!(stock, HashMap::from([("apples".to_owned(), 4)]));
    }
}

/// Entries of a table are put, changed on conditions, iterated and removed.
async fn tables(session: &Session) {
    const ENTRIES: usize = 20;
    let table = session
        .factory
        .create_table(session.scope.clone(), "table".to_owned())
        .await;
    let (key, put) = ("key".to_owned(), |value: &str| value.to_owned());
    let inserted = table
        .insert_conditionally(&key, &put("one"), NOT_THERE, ANYWHERE)
        .await
        .expect("it is not there");
    conflict(table.insert_conditionally(&key, &put("two"), NOT_THERE, ANYWHERE).await);
    let changed = table
        .insert_conditionally(&key, &put("three"), inserted, ANYWHERE)
        .await
        .expect("its version");
    conflict(table.insert_conditionally(&key, &put("four"), inserted, ANYWHERE).await);
    conflict(table.remove_conditionally(&key, inserted, ANYWHERE).await);
    assert_eq!(table.get(&key).await.expect("an answer"), Some((put("three"), changed)));
    table
        .remove_conditionally(&key, changed, ANYWHERE)
        .await
        .expect("its version");
    assert_eq!(table.get::<String, String>(&key).await.expect("an answer"), None);

    let expected: BTreeMap<String, String> = (0..ENTRIES)
        .map(|number| (format!("key {number}"), format!("value {number}")))
        .collect();
    table
        .insert_all(expected.iter().collect(), ANYWHERE)
        .await
        .expect("entries are put");
    let entries: Vec<(String, String, i64)> = table.read_entries_stream(7).try_collect().await.expect("entries");
    assert_eq!(entries.len(), ENTRIES, "each entry once");
    let found: BTreeMap<String, String> = entries.into_iter().map(|(key, value, _)| (key, value)).collect();
    assert_eq!(found, expected);
    let keys: Vec<(String, i64)> = table.read_keys_stream(7).try_collect().await.expect("keys");
    assert_eq!(keys.len(), ENTRIES, "each key once");
    let asked = table
        .get_all::<String, String>(vec![&"key 3".to_owned(), &key])
        .await
        .expect("an answer");
    let values: Vec<Option<&str>> = asked
        .iter()
        .map(|each| each.as_ref().map(|(value, _)| value.as_str()))
        .collect();
    assert_eq!(values, [Some("value 3"), None]);
}

/// What was committed is read and nothing else, also across a scaling.
async fn transactions(session: &Session) {
    let stream = session.create_stream("once", 1).await;
    let mut writer = session
        .factory
        .create_transactional_event_writer(stream.clone(), WriterId(7))
        .await;
    let mut committed = writer.begin().await.expect("a transaction");
    let mut aborted = writer.begin().await.expect("a transaction");
    for number in 0..5 {
        append(&mut committed, format!("c:{number}")).await;
        append(&mut aborted, format!("a:{number}")).await;
    }
    assert_eq!(
        committed.check_status().await.expect("a state"),
        TransactionStatus::Open
    );
    session.scale(&stream, &[(0.0, 0.5), (0.5, 1.0)]).await;
    let mut later = writer.begin().await.expect("a transaction");
    append(&mut later, "l:0".to_owned()).await;
    aborted.abort().await.expect("it is aborted");
    committed.commit(Timestamp(0)).await.expect("it is committed");
    until(&aborted, TransactionStatus::Aborted).await;
    until(&committed, TransactionStatus::Committed).await;
    later.commit(Timestamp(0)).await.expect("it is committed");
    until(&later, TransactionStatus::Committed).await;
    let mut found = writer.get_txn(committed.txn_id()).await.expect("it is known");
    assert_eq!(
        found.check_status().await.expect("a state"),
        TransactionStatus::Committed
    );
    found
        .write_event(None, b"late".to_vec())
        .await
        .expect_err("nothing is written to one that has ended");

    let group = session.reader_group("group", &stream).await;
    let events = read(&group, "reader", 6).await;
    let expected: Vec<String> = numbered("c", 0..5).into_iter().chain(["l:0".to_owned()]).collect();
    assert_eq!(events, expected);
}

async fn append(transaction: &mut Transaction, event: String) {
    transaction
        .write_event(Some("key".to_owned()), event.into_bytes())
        .await
        .expect("an event is written");
}

async fn until(transaction: &Transaction, status: TransactionStatus) {
    let has_it = || async { transaction.check_status().await.expect("a state") == status };
    eventually(&format!("the transaction is {status:?}"), has_it).await;
}

async fn write(writer: &mut EventWriter, key: &str, numbers: std::ops::Range<usize>) {
    for event in numbered(key, numbers) {
        writer
            .write_event_by_routing_key(key.to_owned(), event.into_bytes())
            .await;
    }
    writer.flush().await.expect("events are kept");
}

fn numbered(name: &str, numbers: std::ops::Range<usize>) -> Vec<String> {
    numbers.map(|number| format!("{name}:{number}")).collect()
}

async fn has_segments(session: &Session, stream: &ScopedStream, count: usize) -> bool {
    session.segments(stream).await.len() == count
}

fn conflict<T: std::fmt::Debug>(outcome: Result<T, TableError>) {
    assert!(
        matches!(outcome, Err(TableError::IncorrectKeyVersion { .. })),
        "not {outcome:?}"
    );
}
