//! A control plane made of `pfcp::Node`, and what it tells.

use super::*;

/// A control plane without a mind of its own.
pub struct ControlPlane {
    node: Node,
    pfcp: UdpSocket,
    gtpu: UdpSocket,
    origin: Instant,
    events: Vec<Event>,
}

impl ControlPlane {
    pub async fn new() -> Self {
        let config = pfcp::Config::new(Role::Control, NodeId::Fqdn("cp1".into()), 3_900_000_000);
        let mut node = Node::new(config);
        node.add_peer(Duration::ZERO, up());
        Self {
            node,
            pfcp: UdpSocket::bind((CP, wire::pfcp::PORT)).await.unwrap(),
            gtpu: UdpSocket::bind((CP, gtpu::PORT)).await.unwrap(),
            origin: Instant::now(),
            events: Vec::new(),
        }
    }

    /// Runs PFCP until an event comes that is wanted.
    pub async fn until<T>(&mut self, wanted: impl Fn(&Event) -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let now = self.origin.elapsed();
            self.node.on_timeout(now);
            while let Some(output) = self.node.poll_output() {
                match output {
                    Output::Transmit { to, bytes } => {
                        self.pfcp.send_to(&bytes, to).await.unwrap();
                    }
                    Output::Event(event) => self.events.push(event),
                }
            }
            for event in std::mem::take(&mut self.events) {
                if let Some(found) = wanted(&event) {
                    return found;
                }
            }
            assert!(
                Instant::now() < deadline,
                "nothing came from the user plane"
            );
            let mut buffer = [0; 4096];
            let received = self.pfcp.recv_from(&mut buffer);
            let received = tokio::time::timeout(Duration::from_millis(100), received).await;
            if let Ok(Ok((length, from))) = received {
                let now = self.origin.elapsed();
                self.node.handle_datagram(now, from, &buffer[..length]);
            }
        }
    }

    pub async fn ask(&mut self, seid: u64, message: impl Into<Message>) -> Message {
        let now = self.origin.elapsed();
        self.node.request(now, up(), seid, message, 1).unwrap();
        self.until(|event| match event {
            Event::Response { message, .. } => Some(message.clone()),
            Event::Failed { reason, .. } => panic!("{reason:?}"),
            _ => None,
        })
        .await
    }

    pub async fn establish(&mut self, message: impl Into<Message>) -> u64 {
        match self.ask(0, message).await {
            Message::SessionEstablishmentResponse(response) => {
                assert_eq!(response.cause, Cause::REQUEST_ACCEPTED, "{response:?}");
                response.up_f_seid.unwrap().seid
            }
            other => panic!("{other:?}"),
        }
    }

    pub async fn receive_gtpu(&self) -> (u32, Vec<u8>) {
        let mut buffer = [0; 4096];
        let received = tokio::time::timeout(PATIENCE, self.gtpu.recv_from(&mut buffer));
        let (length, from) = received.await.expect("a packet in a tunnel").unwrap();
        assert_eq!(from, SocketAddr::new(UP, gtpu::PORT));
        match gtpu::Packet::parse(&buffer[..length]).unwrap() {
            gtpu::Packet::Gpdu { teid, payload } => (teid, payload.to_vec()),
            gtpu::Packet::ErrorIndication { teid, .. } => (teid, b"error indication".to_vec()),
            other => panic!("{other:?}"),
        }
    }

    pub async fn send_gtpu(&self, teid: u32, payload: &[u8]) {
        let mut bytes = Vec::new();
        gtpu::emit_gpdu(teid, payload, &mut bytes).unwrap();
        self.gtpu.send_to(&bytes, (UP, gtpu::PORT)).await.unwrap();
    }
}

fn up() -> SocketAddr {
    SocketAddr::new(UP, wire::pfcp::PORT)
}

pub fn default_spec() -> DefaultSpec {
    let net = |slot, text: &str| PoolNet {
        slot,
        network_instance: "default".into(),
        net: text.parse().unwrap(),
    };
    DefaultSpec {
        node_id: NodeId::Fqdn("cp1".into()),
        cp_f_seid: FSeid::new(1, CP),
        logical_port: Some(b"access0".to_vec()),
        uplink: Tunnel {
            teid: 0x11,
            address: CP,
        },
        downlink: Some(Tunnel {
            teid: 0x12,
            address: UP,
        }),
        nets: vec![net(0, "100.64.0.0/24"), net(1, "2001:db8:64::/56")],
    }
}

pub fn session_spec() -> SessionSpec {
    SessionSpec {
        node_id: NodeId::Fqdn("cp1".into()),
        cp_f_seid: FSeid::new(2, CP),
        circuit: Circuit {
            logical_port: b"access0".to_vec(),
            tags: Tags::NONE,
            mac: HOME,
            gateway_mac: GATEWAY,
        },
        access: Access::Pppoe(SESSION),
        subscriber: Some(1),
        uplink: Tunnel {
            teid: 0x21,
            address: CP,
        },
        downlink: Tunnel {
            teid: 0x22,
            address: UP,
        },
        forwarding: Forwarding::new(
            Bindings::of(Some(HOME_ADDRESS), None),
            Treatment {
                network_instance: "default".into(),
                packets: PacketSettings::with_mtu(1492),
                ..Default::default()
            },
        ),
        urr_id: 1,
        usage_period: None,
        echo_magic: None,
    }
}
