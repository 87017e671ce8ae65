//! How settings of a policy are carried in rules: the one place where both planes look.
//!
//! A setting for which 3GPP or the BBF has an element travels in that. All others travel by number in an element of our own
//! ([`Settings`]), so that one more needs nothing here. The policies of a direction are predefined rules (TS 29.244 §5.19) of its PDRs.
//! Rules of the subscriber are an element of our own in the session's QER: they are once in a message, for all PDRs.
use policy::{Direction, FilterRules, Name, PacketSettings, Rate, TrafficPolicies};
use wire::pfcp::{
    BitRate, Change, CreatePdr, CreateQer, ForwardingParameters, IeId, Settings,
    UpdateForwardingParameters, UpdatePdr, bbf_ie, ie, own,
};

/// Number of the MTU, which the BBF's element carries.
pub(super) const MTU: u8 = 1;
/// Numbers of the rates, which the session's QER carries: the largest ones as MBR, the committed ones as GBR.
const RATES: [u8; 4] = [8, 9, 18, 19];

/// Rate that stands for no limit in an MBR, which always has both directions.
const NO_LIMIT: u64 = Rate::MOST.get() + 1;

fn has_element(id: u8) -> bool {
    id == MTU || RATES.contains(&id)
}

/// Element with the settings that travel by number, without those at their defaults.
fn numbered(packets: &PacketSettings) -> Settings {
    let all = packets.encoded().into_iter();
    let by_number = all.filter(|(setting, _)| !has_element(setting.id));
    Settings(
        by_number
            .map(|(setting, value)| (setting.id, value))
            .collect(),
    )
}

/// Maximum bit rate of the session's QER; `None` without any limit.
pub fn maximum_bit_rate(packets: &PacketSettings) -> Option<BitRate> {
    let kbps = |rate: Option<Rate>| rate.map_or(NO_LIMIT, Rate::get);
    let limits = packets.rate_up.or(packets.rate_down);
    limits.map(|_| BitRate {
        uplink_kbps: kbps(packets.rate_up),
        downlink_kbps: kbps(packets.rate_down),
    })
}

/// What changes the maximum bit rate of the session's QER; `None` without a difference.
pub fn change_of_rate(before: &PacketSettings, now: &PacketSettings) -> Option<BitRate> {
    let no_limit = BitRate {
        uplink_kbps: NO_LIMIT,
        downlink_kbps: NO_LIMIT,
    };
    let rate = maximum_bit_rate(now);
    (rate != maximum_bit_rate(before)).then(|| rate.unwrap_or(no_limit))
}

/// Guaranteed bit rate of the session's QER; `None` without any committed rate. 0 stands for none in a direction.
pub fn guaranteed_bit_rate(packets: &PacketSettings) -> Option<BitRate> {
    let committed = packets.committed_rate_up.or(packets.committed_rate_down);
    committed.map(|_| BitRate {
        uplink_kbps: packets.committed_rate_up.map_or(0, Rate::get),
        downlink_kbps: packets.committed_rate_down.map_or(0, Rate::get),
    })
}

/// What changes the guaranteed bit rate of the session's QER; `None` without a difference.
pub fn change_of_guaranteed(before: &PacketSettings, now: &PacketSettings) -> Option<BitRate> {
    let none = BitRate {
        uplink_kbps: 0,
        downlink_kbps: 0,
    };
    let rate = guaranteed_bit_rate(now);
    (rate != guaranteed_bit_rate(before)).then(|| rate.unwrap_or(none))
}

/// The settings with the bit rates of a QER, or the element that cannot be carried out.
pub fn with_rates(packets: PacketSettings, qer: &CreateQer) -> Result<PacketSettings, IeId> {
    let rate = qer.maximum_bit_rate;
    let limit = |kbps| match kbps {
        NO_LIMIT => Ok(None),
        kbps => Rate::new(kbps).map(Some).ok_or(ie::MBR),
    };
    let of = |kbps: fn(BitRate) -> u64| rate.map_or(Ok(None), |rate| limit(kbps(rate)));
    let committed = |kbps: fn(BitRate) -> u64| match qer.guaranteed_bit_rate.map_or(0, kbps) {
        0 => Ok(None),
        kbps => Rate::new(kbps).map(Some).ok_or(ie::GBR),
    };
    Ok(PacketSettings {
        rate_up: of(|rate| rate.uplink_kbps)?,
        rate_down: of(|rate| rate.downlink_kbps)?,
        committed_rate_up: committed(|rate| rate.uplink_kbps)?,
        committed_rate_down: committed(|rate| rate.downlink_kbps)?,
        ..packets
    })
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
            Some(Ok(())) if !has_element(*id) => {}
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

/// Predefined rules that stand for the policy of a direction.
pub fn predefined(policies: &TrafficPolicies, direction: Direction) -> Vec<String> {
    let policy = policies.of(direction).into_iter();
    policy.map(Name::to_string).collect()
}

/// Rules of the subscriber, for the session's QER.
pub fn filter_rules(policies: &TrafficPolicies) -> Option<String> {
    let rules = policies.filter_rules.as_ref();
    rules.map(|rules| rules.as_str().to_owned())
}

/// Text of no rules, in an update. It is not empty, because tshark takes an empty element of a vendor for a malformed packet.
const NO_RULES: &str = "\0";

/// What changes the rules of the subscriber; `None` without a difference.
pub fn change_of_filter_rules(before: &TrafficPolicies, now: &TrafficPolicies) -> Option<String> {
    let differs = before.filter_rules != now.filter_rules;
    differs.then(|| filter_rules(now).unwrap_or_else(|| NO_RULES.to_owned()))
}

/// The rules of the subscriber that a QER has, or the element that cannot be carried out.
pub fn read_filter_rules(qer: &CreateQer) -> Result<Option<FilterRules>, IeId> {
    match qer.filter_rules.as_deref() {
        None | Some(NO_RULES) => Ok(None),
        Some(text) => match FilterRules::new(text) {
            Some(rules) => Ok(Some(rules)),
            None => Err(own::FILTER_RULES),
        },
    }
}

/// What changes a PDR of a direction; `None` without a difference.
pub fn change_of_policy(
    before: &TrafficPolicies,
    now: &TrafficPolicies,
    direction: Direction,
    pdr_id: u16,
) -> Option<UpdatePdr> {
    let differs = before.of(direction) != now.of(direction);
    differs.then(|| UpdatePdr {
        pdr_id,
        predefined_rules: predefined(now, direction),
        former_predefined_rules: predefined(before, direction),
        ..Default::default()
    })
}

/// The policy that a PDR names, or the element that cannot be carried out.
pub fn policy(pdr: &CreatePdr) -> Result<Option<Name>, IeId> {
    match &pdr.predefined_rules[..] {
        [] => Ok(None),
        [name] => match Name::new(name) {
            Some(name) => Ok(Some(name)),
            None => Err(ie::ACTIVATE_PREDEFINED_RULES),
        },
        _ => Err(ie::ACTIVATE_PREDEFINED_RULES),
    }
}

fn changed<T: PartialEq>(before: Option<T>, now: Option<T>) -> Option<Change<T>> {
    match now {
        now if now == before => None,
        Some(now) => Some(Change::Set(now)),
        None => Some(Change::Clear),
    }
}
