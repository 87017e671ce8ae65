//! How settings of a policy are carried in rules: the one place where both planes look.
//!
//! A setting for which 3GPP or the BBF has an element travels in that. All others travel by number in an element of our own
//! ([`Settings`]), so that one more needs nothing here.
use policy::{PacketSettings, Setting};
use wire::pfcp::{
    Change, ForwardingParameters, IeId, Settings, UpdateForwardingParameters, bbf_ie, own,
};

/// The numbers of the settings that have elements: the MTU.
const WITH_ELEMENTS: [u8; 1] = [1];

/// The settings that travel by number, unless they are at their defaults, each with its value.
fn by_number(
    packets: &PacketSettings,
) -> impl Iterator<Item = (&'static Setting, Vec<u8>)> + use<> {
    let all = packets.encoded().into_iter();
    all.filter(|(setting, _)| !WITH_ELEMENTS.contains(&setting.id))
}

/// Their element.
pub(super) fn numbered(packets: &PacketSettings) -> Settings {
    Settings(
        by_number(packets)
            .map(|(setting, value)| (setting.id, value))
            .collect(),
    )
}

/// The settings that only a user plane with [`wire::pfcp::SluiceFeatures::SETTINGS`] can carry out.
pub fn numbered_settings(
    packets: &PacketSettings,
) -> impl Iterator<Item = &'static Setting> + use<> {
    by_number(packets).map(|(setting, _)| setting)
}

/// What any other user plane can carry out: all others are at their defaults.
pub fn without_numbered(packets: &PacketSettings) -> PacketSettings {
    PacketSettings {
        mtu: packets.mtu,
        ..PacketSettings::default()
    }
}

/// Adds the settings to the way towards the subscriber.
pub fn put(packets: &PacketSettings, to_subscriber: &mut ForwardingParameters) {
    to_subscriber.mtu = packets.mtu;
    to_subscriber.settings = Some(numbered(packets)).filter(|settings| !settings.0.is_empty());
}

/// What changes the settings on the way towards the subscriber; `None` if none differs.
pub fn change(before: &PacketSettings, now: &PacketSettings) -> Option<UpdateForwardingParameters> {
    let settings = numbered(now);
    let parameters = UpdateForwardingParameters {
        mtu: changed(before.mtu, now.mtu),
        settings: (settings != numbered(before)).then_some(settings),
        ..Default::default()
    };
    (parameters != UpdateForwardingParameters::default()).then_some(parameters)
}

/// The settings of the way towards the subscriber, or the element that is missing or cannot be done.
pub fn read(to_subscriber: &ForwardingParameters) -> Result<PacketSettings, IeId> {
    let mut packets = PacketSettings::default();
    for (id, value) in to_subscriber.settings.iter().flat_map(|s| &s.0) {
        match packets.decode(*id, value) {
            Some(Ok(())) if !WITH_ELEMENTS.contains(id) => {}
            _ => return Err(own::SETTINGS),
        }
    }
    packets.mtu = Some(to_subscriber.mtu.ok_or(bbf_ie::MTU)?);
    packets.check().map_err(|_| own::SETTINGS)?;
    Ok(packets)
}

/// The element by which two ways towards the same subscriber differ; `None` if they agree.
pub fn difference(a: &PacketSettings, b: &PacketSettings) -> Option<IeId> {
    let by_number = (numbered(a) != numbered(b)).then_some(own::SETTINGS);
    by_number.or((a.mtu != b.mtu).then_some(bbf_ie::MTU))
}

fn changed<T: PartialEq>(before: Option<T>, now: Option<T>) -> Option<Change<T>> {
    match now {
        now if now == before => None,
        Some(now) => Some(Change::Set(now)),
        None => Some(Change::Clear),
    }
}
