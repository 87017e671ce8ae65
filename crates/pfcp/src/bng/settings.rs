//! How settings of a policy are carried in rules: the one place where both planes look.
use policy::PacketSettings;
use wire::pfcp::{Change, ForwardingParameters, IeId, UpdateForwardingParameters, bbf_ie};

/// Adds the settings to the way towards the subscriber.
pub fn put(packets: &PacketSettings, to_subscriber: &mut ForwardingParameters) {
    to_subscriber.mtu = packets.mtu;
}

/// What changes the settings on the way towards the subscriber; `None` if none differs.
pub fn change(before: &PacketSettings, now: &PacketSettings) -> Option<UpdateForwardingParameters> {
    let parameters = UpdateForwardingParameters {
        mtu: changed(before.mtu, now.mtu),
        ..Default::default()
    };
    (parameters != UpdateForwardingParameters::default()).then_some(parameters)
}

/// The settings of the way towards the subscriber, or the element that is missing.
pub fn read(to_subscriber: &ForwardingParameters) -> Result<PacketSettings, IeId> {
    Ok(PacketSettings {
        mtu: Some(to_subscriber.mtu.ok_or(bbf_ie::MTU)?),
    })
}

/// The element by which two ways towards the same subscriber differ; `None` if they agree.
pub fn difference(a: &PacketSettings, b: &PacketSettings) -> Option<IeId> {
    (a.mtu != b.mtu).then_some(bbf_ie::MTU)
}

fn changed<T: PartialEq>(before: Option<T>, now: Option<T>) -> Option<Change<T>> {
    match now {
        now if now == before => None,
        Some(now) => Some(Change::Set(now)),
        None => Some(Change::Clear),
    }
}
