//! Batches through the kernel.

use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::UdpSocket;
use udp::{Batch, Receiver, receive_batches};

async fn socket(address: &str) -> (UdpSocket, SocketAddr) {
    let socket = UdpSocket::bind(address).await.unwrap();
    let at = socket.local_addr().unwrap();
    (socket, at)
}

/// Datagrams that are like PFCP's: runs of one size, and others between them.
fn datagrams() -> Vec<Vec<u8>> {
    let size = |number: usize| match number % 50 {
        0 => 40,
        1 => 1400,
        2..40 => 1211,
        _ => 60,
    };
    (0..500).map(|n| vec![n as u8; size(n)]).collect()
}

async fn send(socket: &UdpSocket, to: SocketAddr, datagrams: &[Vec<u8>]) -> usize {
    let (mut batch, mut lost) = (Batch::default(), 0);
    for datagram in datagrams {
        if !batch.push(to, datagram) {
            lost += batch.send(socket).await;
            assert!(batch.push(to, datagram));
        }
    }
    lost + batch.send(socket).await
}

/// What has come, and in how many system calls.
fn receive(socket: &UdpSocket, from: SocketAddr) -> (Vec<Vec<u8>>, usize) {
    let (mut receiver, mut came, mut calls) = (Receiver::default(), Vec::new(), 0);
    while let Ok(datagrams) = receiver.try_recv(socket) {
        assert_eq!(datagrams.from, from);
        came.extend(datagrams.map(<[u8]>::to_vec));
        calls += 1;
    }
    (came, calls)
}

#[tokio::test]
async fn a_run_of_datagrams_passes_at_once_in_either_family() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let ((here, from), (there, to)) = (socket(address).await, socket(address).await);
        receive_batches(&there);
        let sent: Vec<Vec<u8>> = (0..130).map(|n| vec![n as u8; 60]).collect();
        assert_eq!(send(&here, to, &sent).await, 0);
        there.readable().await.unwrap();
        let (came, calls) = receive(&there, from);
        assert!(came == sent, "{} of {}", came.len(), sent.len());
        assert_eq!(calls, 3, "64, 64 and 2 of them");
    }
}

#[tokio::test]
async fn whoever_knows_nothing_of_batches_gets_datagrams() {
    let (here, _) = socket("127.0.0.1:0").await;
    let there = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    there
        .set_read_timeout(Some(Duration::from_secs(5)))
        .unwrap();
    let to = there.local_addr().unwrap();
    let sent = datagrams();
    let mut buffer = [0; 2048];
    // In portions that fit into a receive buffer of any size.
    for sent in sent.chunks(50) {
        assert_eq!(send(&here, to, sent).await, 0);
        for datagram in sent {
            let length = there.recv(&mut buffer).unwrap();
            assert_eq!(&buffer[..length], datagram);
        }
    }
}

#[tokio::test]
async fn datagrams_of_any_size_come_in_order() {
    let ((here, from), (there, to)) = (socket("127.0.0.1:0").await, socket("127.0.0.1:0").await);
    receive_batches(&there);
    for sent in datagrams().chunks(50) {
        assert_eq!(send(&here, to, sent).await, 0);
        there.readable().await.unwrap();
        assert!(receive(&there, from).0 == sent);
    }
}

#[tokio::test]
async fn a_batch_is_no_larger_than_a_datagram_may_be() {
    let ((here, from), (there, to)) = (socket("127.0.0.1:0").await, socket("127.0.0.1:0").await);
    receive_batches(&there);
    let sent = vec![vec![1; 30_000], vec![2; 30_000], vec![3; 60_000]];
    assert_eq!(send(&here, to, &sent).await, 0);
    there.readable().await.unwrap();
    assert!(receive(&there, from).0 == sent);
}

#[tokio::test]
async fn what_cannot_be_sent_is_counted_and_the_rest_goes() {
    let ((here, _), (there, to)) = (socket("127.0.0.1:0").await, socket("127.0.0.1:0").await);
    here.writable().await.unwrap();
    let mut batch = Batch::default();
    let elsewhere: SocketAddr = "[::1]:9".parse().unwrap();
    for _ in 0..3 {
        assert!(batch.push(elsewhere, b"datagram"));
    }
    assert!(!batch.push(to, b"datagram"), "another peer");
    assert_eq!((batch.len(), batch.try_send(&here)), (3, 3));
    assert!(batch.is_empty() && batch.push(to, b"datagram"));
    assert_eq!(batch.try_send(&here), 0);
    there.readable().await.unwrap();
}
