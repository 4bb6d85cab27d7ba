//! Arguments arrive at the receiver as the bytes that were given.

use crate::fixture::{Place, Tool};
use crate::on_both_databases;
use testkit::receiver::{Receiver, Step};

on_both_databases! {
    a_body_arrives_byte_for_byte_whoever_enqueued_it,
}

/// Large integers, exponents, doubled keys, blanks, escapes: PE1, PE5.
const BODY: &str = r#"{ "id":9223372036854775807,"big":123456789012345678901234567890, "e":0.1e1 ,"f":1.0,"a":1,"a":2,"n":"x\u0000y\u00e9é","t":"\/" }"#;

async fn a_body_arrives_byte_for_byte_whoever_enqueued_it(place: &Place) {
    let server = place.serve(&["--allow-private"]).await;
    let receiver = Receiver::start([Step::status(200)]).await;
    let args = format!(r#"{{"url":"{}","body":{BODY}}}"#, receiver.url("/x"));
    let by_api = server.enqueue(&format!(r#"{{"kind":"http.call","args":{args}}}"#)).await;
    let enqueue = |words: &'static [&'static str]| [&["enqueue", "http.call", "--json"], words].concat();
    let from_stdin = Tool::run(place, &enqueue(&["--args", "-"]), Some(&format!("{args}\n"))).await.json();
    let file = place.file("args.json", &args);
    let from_file = place.tidings(&["enqueue", "http.call", "--json", "--args-file", &file]).await.json();
    let url = receiver.url("/x");
    let by_flags =
        place.tidings(&["enqueue", "http.call", "--json", "--url", &url, "--body", BODY]).await.json();
    let ids =
        [&from_stdin["id"], &from_file["id"], &by_flags["id"]].map(|id| id.as_str().unwrap().to_owned());
    for id in [&by_api].into_iter().chain(&ids) {
        assert_eq!(server.settled(id).await["state"], "completed");
        let document = server.get(&format!("/v1/jobs/{id}")).await.text;
        assert!(document.contains(BODY), "the document shows the bytes that were given");
    }
    let received = receiver.requests();
    assert_eq!(received.len(), 4);
    for request in received {
        assert_eq!(String::from_utf8(request.body).unwrap(), BODY);
    }
}
