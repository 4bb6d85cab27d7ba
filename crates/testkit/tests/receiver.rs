//! The receiver keeps its own promises, seen through a plain socket.

use std::io::ErrorKind;
use std::time::Duration;
use testkit::receiver::{Receiver, Step, silent_tls_port, unused_port};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const POST: &[u8] = b"POST /in?x=1 HTTP/1.1\r\nHost: h\r\nX-Odd: \xe4\r\nContent-Length: 5\r\n\r\nhello";

/// Sends `request` on a fresh connection and reads until the end of it.
async fn exchange(receiver: &Receiver, request: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(receiver.addr()).await?;
    stream.write_all(request).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    Ok(answer)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[tokio::test]
async fn a_request_is_recorded_as_it_arrived() {
    let receiver = Receiver::start([Step::status(202).header("X-A", "b").body("taken")]).await;
    let answer = text(&exchange(&receiver, POST).await.unwrap());
    assert!(answer.starts_with("HTTP/1.1 202 Scripted\r\nX-A: b\r\nContent-Length: 5\r\n"), "{answer}");
    assert!(answer.ends_with("\r\n\r\ntaken"), "{answer}");

    let requests = receiver.wait_for_bodies(1).await;
    assert_eq!(requests.len(), 1);
    assert_eq!((requests[0].method.as_str(), requests[0].path.as_str()), ("POST", "/in?x=1"));
    assert_eq!(requests[0].body, b"hello");
    assert_eq!(requests[0].header("host"), Some("h"));
    assert_eq!(requests[0].headers[1], ("X-Odd".to_owned(), b"\xe4".to_vec()));
    assert_eq!((requests[0].order, requests[0].connection), (0, 0));
}

#[tokio::test]
async fn a_chunked_body_is_read_to_its_end() {
    let receiver = Receiver::start([Step::status(200)]).await;
    let request =
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n";
    exchange(&receiver, request).await.unwrap();
    assert_eq!(receiver.wait_for_bodies(1).await[0].body, b"abcde");
}

#[tokio::test]
async fn steps_are_taken_in_order_and_the_last_one_repeats() {
    let receiver = Receiver::start([Step::status(503), Step::status(429), Step::status(200)]).await;
    let mut statuses = Vec::new();
    for _ in 0..4 {
        statuses.push(text(&exchange(&receiver, POST).await.unwrap())[9..12].to_owned());
    }
    assert_eq!(statuses, ["503", "429", "200", "200"]);
    let orders: Vec<usize> = receiver.requests().iter().map(|request| request.order).collect();
    assert_eq!(orders, [0, 1, 2, 3]);
    assert_eq!(receiver.connections(), 4);
}

#[tokio::test]
async fn the_test_may_choose_the_answer_from_the_request() {
    let receiver = Receiver::start([Step::answer_with(|received| match received.body.as_slice() {
        b"hello" => Step::status(201),
        _ => Step::status(400),
    })])
    .await;
    assert!(text(&exchange(&receiver, POST).await.unwrap()).starts_with("HTTP/1.1 201 "));
}

#[tokio::test]
async fn a_reset_is_a_reset_and_its_request_is_counted() {
    for step in [Step::reset_before_reading(), Step::reset_after_reading()] {
        let receiver = Receiver::start([step.clone()]).await;
        let error = exchange(&receiver, POST).await.expect_err("the connection is reset");
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{step:?}");
        assert_eq!(receiver.requests().len(), 1, "{step:?}");
    }
}

#[tokio::test]
async fn a_broken_off_answer_has_exactly_the_scripted_bytes() {
    let table: [(Step, &[u8]); 4] = [
        (Step::close_without_answer(), b""),
        (Step::half_status_line(), b"HTTP/1.1 20"),
        (Step::half_headers(), b"HTTP/1.1 200 OK\r\nContent-Type: text/pl"),
        (Step::raw(b"\xff\x00"), b"\xff\x00"),
    ];
    for (step, expected) in table {
        let receiver = Receiver::start([step.clone()]).await;
        assert_eq!(exchange(&receiver, POST).await.unwrap(), expected, "{step:?}");
    }
}

#[tokio::test]
async fn a_truncated_body_is_shorter_than_announced() {
    let receiver = Receiver::start([Step::status(200).truncated_body("abc", 100)]).await;
    let answer = text(&exchange(&receiver, POST).await.unwrap());
    assert!(answer.contains("Content-Length: 100\r\n") && answer.ends_with("\r\n\r\nabc"), "{answer}");
}

#[tokio::test]
async fn informational_answers_come_before_the_final_one() {
    let receiver = Receiver::start([Step::informational(103, 2).finally(204)]).await;
    let answer = text(&exchange(&receiver, POST).await.unwrap());
    assert_eq!(answer.matches("HTTP/1.1 103 ").count(), 2, "{answer}");
    assert!(answer.contains("HTTP/1.1 204 Scripted\r\nConnection: close\r\n\r\n"), "{answer}");
}

#[tokio::test]
async fn an_early_answer_comes_before_the_body_was_sent() {
    let head = b"POST / HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n";
    for step in [Step::early_answer(413), Step::early_answer_then_reset(413)] {
        let receiver = Receiver::start([step.clone()]).await;
        let mut stream = TcpStream::connect(receiver.addr()).await.unwrap();
        stream.write_all(head).await.unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 413", "{step:?}");
        assert!(!receiver.requests()[0].body_complete, "{step:?}");
    }
}

#[tokio::test]
async fn many_headers_are_as_many_as_asked_for() {
    let receiver = Receiver::start([Step::many_headers(250)]).await;
    assert_eq!(text(&exchange(&receiver, POST).await.unwrap()).matches("X-Filler-").count(), 250);
}

#[tokio::test]
async fn something_endless_goes_on_until_the_client_leaves() {
    for step in [Step::endless_headers(), Step::status(200).endless_body()] {
        let receiver = Receiver::start([step]).await;
        let mut stream = TcpStream::connect(receiver.addr()).await.unwrap();
        stream.write_all(POST).await.unwrap();
        let mut first_megabyte = vec![0; 1024 * 1024];
        stream.read_exact(&mut first_megabyte).await.unwrap();
        drop(stream);
        receiver.wait_for_closed_by_client(1).await;
    }
}

#[tokio::test]
async fn a_hanging_step_notices_that_the_client_left() {
    let receiver = Receiver::start([Step::hang()]).await;
    let mut stream = TcpStream::connect(receiver.addr()).await.unwrap();
    stream.write_all(POST).await.unwrap();
    receiver.wait_for(1).await;
    assert_eq!(receiver.closed_by_client(), 0);
    drop(stream);
    receiver.wait_for_closed_by_client(1).await;
}

#[tokio::test]
async fn a_receiver_that_never_reads_still_counts_the_request() {
    let receiver = Receiver::start([Step::accept_but_never_read()]).await;
    let mut stream = TcpStream::connect(receiver.addr()).await.unwrap();
    stream.write_all(POST).await.unwrap();
    assert_eq!(receiver.wait_for(1).await.len(), 1);
    drop(stream);
    receiver.wait_for_closed_by_client(1).await;
}

#[tokio::test]
async fn a_receiver_that_speaks_first_does_not_wait_for_a_request() {
    let receiver = Receiver::start([Step::speak_first("SSH-2.0-other\r\n")]).await;
    let mut stream = TcpStream::connect(receiver.addr()).await.unwrap();
    let mut greeting = [0; 15];
    stream.read_exact(&mut greeting).await.unwrap();
    assert_eq!(&greeting, b"SSH-2.0-other\r\n");
    assert_eq!(receiver.requests(), []);
}

#[tokio::test]
async fn dropping_the_receiver_ends_its_connections() {
    let receiver = Receiver::start([Step::hang()]).await;
    let mut stream = TcpStream::connect(receiver.addr()).await.unwrap();
    stream.write_all(POST).await.unwrap();
    receiver.wait_for(1).await;
    let addr = receiver.addr();
    drop(receiver);
    let end = tokio::time::timeout(Duration::from_secs(5), stream.read(&mut [0; 1])).await;
    assert!(!matches!(end.expect("the connection ends"), Ok(1..)));
    assert_eq!(TcpStream::connect(addr).await.unwrap_err().kind(), ErrorKind::ConnectionRefused);
}

#[tokio::test]
async fn an_unused_port_refuses_and_a_silent_one_accepts() {
    let refused = TcpStream::connect(("127.0.0.1", unused_port())).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    let silent = silent_tls_port().await;
    let _open = TcpStream::connect(silent.addr()).await.unwrap();
    silent.wait_for_connections(1).await;
}

#[tokio::test]
#[should_panic(expected = "needs at least one step")]
async fn an_empty_script_is_refused() {
    let _ = Receiver::start([]).await;
}
