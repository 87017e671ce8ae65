//! Frames made by hand, octet by octet: nothing of the data plane helps.

pub type Mac = [u8; 6];

pub const GATEWAY: Mac = [2, 0, 0, 0, 0, 0xfe];

/// A subscriber as the tests know it.
#[derive(Clone, Debug)]
pub struct Home {
    pub index: u32,
    pub port: u16,
    /// TPID and VLAN id of each tag, outer first.
    pub tags: Vec<(u16, u16)>,
    pub mac: Mac,
    pub id: u16,
    pub v4: [u8; 4],
    /// The upper half of its addresses.
    pub v6: [u8; 8],
    pub mtu: usize,
}

impl Home {
    /// Number `n`: its MAC address, session id and addresses follow.
    pub fn new(n: u8, port: u16, tags: &[(u16, u16)]) -> Home {
        Home {
            index: n as u32,
            port,
            tags: tags.to_vec(),
            mac: [2, 0, 0, 0, 1, n],
            id: 0x0100 + n as u16,
            v4: [100, 64, 0, n],
            v6: [0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, n],
            mtu: 1492,
        }
    }

    pub fn v6_address(&self) -> [u8; 16] {
        let mut a = [0; 16];
        a[..8].copy_from_slice(&self.v6);
        a[15] = 1;
        a
    }

    /// Everything in front of PPPoE's payload.
    fn header(
        &self,
        from: Mac,
        to: Mac,
        ethertype: u16,
        code: u8,
        id: u16,
        length: usize,
    ) -> Vec<u8> {
        let mut f = ethernet(to, from);
        for (tpid, vid) in &self.tags {
            f.extend(tpid.to_be_bytes());
            f.extend(vid.to_be_bytes());
        }
        f.extend(ethertype.to_be_bytes());
        f.extend([0x11, code]);
        f.extend(id.to_be_bytes());
        f.extend((length as u16).to_be_bytes());
        f
    }

    /// A frame of the session from the subscriber: PPP's protocol and what follows it.
    pub fn sends(&self, protocol: u16, payload: &[u8]) -> Vec<u8> {
        let mut f = self.header(self.mac, GATEWAY, 0x8864, 0, self.id, payload.len() + 2);
        f.extend(protocol.to_be_bytes());
        f.extend(payload);
        f
    }

    /// An IP packet from the subscriber.
    pub fn sends_ip(&self, ip: &[u8]) -> Vec<u8> {
        self.sends(protocol_of(ip), ip)
    }

    /// What the subscriber gets when an IP packet is for it.
    pub fn gets(&self, ip: &[u8]) -> Vec<u8> {
        let mut f = self.header(GATEWAY, self.mac, 0x8864, 0, self.id, ip.len() + 2);
        f.extend(protocol_of(ip).to_be_bytes());
        f.extend(ip);
        f
    }

    /// A discovery packet with this code and session id.
    pub fn discovers(&self, to: Mac, code: u8, id: u16) -> Vec<u8> {
        let mut f = self.header(self.mac, to, 0x8863, code, id, 4);
        f.extend([0x01, 0x01, 0, 0]);
        f
    }
}

fn protocol_of(ip: &[u8]) -> u16 {
    if ip[0] >> 4 == 4 { 0x0021 } else { 0x0057 }
}

fn ethernet(to: Mac, from: Mac) -> Vec<u8> {
    [to, from].concat()
}

/// An untagged frame with an IP packet.
pub fn frame(to: Mac, from: Mac, ip: &[u8]) -> Vec<u8> {
    let ethertype: u16 = if ip[0] >> 4 == 4 { 0x0800 } else { 0x86dd };
    let mut f = ethernet(to, from);
    f.extend(ethertype.to_be_bytes());
    f.extend(ip);
    f
}

/// The Internet checksum (RFC 1071), the slow way.
pub fn checksum(bytes: &[u8]) -> u16 {
    let mut sum: u32 = 0;
    for pair in bytes.chunks(2) {
        sum += (pair[0] as u32) << 8 | *pair.get(1).unwrap_or(&0) as u32;
    }
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// A UDP packet over IPv4 with `options` words of options.
pub fn v4(
    source: [u8; 4],
    destination: [u8; 4],
    ttl: u8,
    options: usize,
    payload: &[u8],
) -> Vec<u8> {
    let header = 20 + options * 4;
    let total = header + payload.len();
    let mut p = vec![0x40 | (header / 4) as u8, 0];
    p.extend((total as u16).to_be_bytes());
    p.extend([0x12, 0x34, 0x40, 0, ttl, 17, 0, 0]);
    p.extend(source);
    p.extend(destination);
    p.resize(header, 1);
    let sum = checksum(&p);
    p[10..12].copy_from_slice(&sum.to_be_bytes());
    p.extend(payload);
    p
}

/// Makes the header checksum of an IPv4 packet without options right.
pub fn seal(packet: &mut [u8]) {
    packet[10..12].fill(0);
    let sum = checksum(&packet[..20]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
}

/// An IPv6 packet.
pub fn v6(source: [u8; 16], destination: [u8; 16], hops: u8, next: u8, payload: &[u8]) -> Vec<u8> {
    let mut p = vec![0x60, 0, 0, 0];
    p.extend((payload.len() as u16).to_be_bytes());
    p.extend([next, hops]);
    p.extend(source);
    p.extend(destination);
    p.extend(payload);
    p
}

/// The packet after one hop, with a checksum from scratch.
pub fn hop(ip: &[u8]) -> Vec<u8> {
    let mut p = ip.to_vec();
    if p[0] >> 4 == 6 {
        p[7] -= 1;
        return p;
    }
    p[8] -= 1;
    (p[10], p[11]) = (0, 0);
    let header = (p[0] & 15) as usize * 4;
    let sum = checksum(&p[..header]);
    p[10..12].copy_from_slice(&sum.to_be_bytes());
    p
}
