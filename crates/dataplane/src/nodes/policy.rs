//! Node `policy`: does the policy of the session permit the packet?
//!
//! Only sessions whose policy has something to do for each packet come here. The rules come first, so that what they deny takes no
//! tokens. Out: back to where the packet came from. Drops: `denied-up`, `denied-down`, `undetermined-transport`, `policy-missing`,
//! `class-exceeded-up`, `class-exceeded-down`, `rate-exceeded-up`, `rate-exceeded-down`, `subscriber-exceeded-up`, `subscriber-exceeded-down`.
use crate::api::SessionIndex;
use crate::compiled::{Classes, CompiledPolicy, Matched, PolicerSettings, Verdict};
use crate::drops::DropReason;
use crate::nodes::fields;
use crate::nodes::ip::{self, Family};
use crate::police::Colour;
use crate::tables::meters::MeterLine;
use crate::tables::policies::{CompiledPolicies, PolicyLine};
use crate::tables::sessions::Sessions;
use dpdk::Window;
use policy::Direction;

/// What the policies look at.
pub(crate) struct Examined<'a> {
    pub w: &'a mut Window,
    pub family: Family,
    /// Where the IP header is.
    pub ip: usize,
    /// Octets of the IP packet.
    pub total: usize,
    /// What the rules say, if they were asked with those of the whole burst.
    pub matched: Matched,
    /// Time (TSC).
    pub now: u64,
}

/// A packet from the subscriber of an upstream entry, which the session has counted already.
#[inline(always)]
pub(crate) fn up(
    sessions: &mut Sessions,
    policies: &CompiledPolicies,
    slot: u32,
    packet: Examined<'_>,
) -> Result<(), DropReason> {
    let index = sessions.index(slot);
    let (family, total) = (packet.family, packet.total);
    let direction = Direction::Up;
    permit(sessions, policies, Of { index, direction }, packet).map_err(|refused| {
        sessions.up(slot).counts.uncount(family, total);
        match refused {
            Refused::Denied => DropReason::DeniedUp,
            Refused::Exceeded => DropReason::RateExceededUp,
            Refused::ClassExceeded => DropReason::ClassExceededUp,
            Refused::SubscriberExceeded => DropReason::SubscriberExceededUp,
            Refused::Other(reason) => reason,
        }
    })
}

/// A packet to a subscriber, which the session counts later.
#[inline(always)]
pub(crate) fn down(
    sessions: &mut Sessions,
    policies: &CompiledPolicies,
    index: SessionIndex,
    packet: Examined<'_>,
) -> Result<(), DropReason> {
    let direction = Direction::Down;
    let permitted = permit(sessions, policies, Of { index, direction }, packet);
    permitted.map_err(|refused| match refused {
        Refused::Denied => DropReason::DeniedDown,
        Refused::Exceeded => DropReason::RateExceededDown,
        Refused::ClassExceeded => DropReason::ClassExceededDown,
        Refused::SubscriberExceeded => DropReason::SubscriberExceededDown,
        Refused::Other(reason) => reason,
    })
}

/// Why a packet does not pass.
enum Refused {
    /// By a rule.
    Denied,
    /// It is above the rate of the session.
    Exceeded,
    /// It is above the rate of its class.
    ClassExceeded,
    /// It is above the rate of all sessions of the subscriber.
    SubscriberExceeded,
    Other(DropReason),
}

/// Whose packet is examined.
#[derive(Clone, Copy)]
struct Of {
    index: SessionIndex,
    direction: Direction,
}

/// Rules, then the policer of the class, that of the policy or without one the session's rate, and the rate of all sessions of the
/// subscriber. A packet that one of them drops takes no tokens of those before.
#[inline(always)]
fn permit(
    sessions: &mut Sessions,
    policies: &CompiledPolicies,
    of: Of,
    mut packet: Examined<'_>,
) -> Result<(), Refused> {
    let worker = sessions.shard.own;
    let Some(line) = sessions.policy(of.index, of.direction) else {
        return Ok(());
    };
    let Some(policy) = line.policy else {
        return within_rates(sessions, of, &packet);
    };
    // nothing passes unfiltered while the policy is being made
    let compiled = policies.get(policy);
    let compiled = compiled.ok_or(Refused::Other(DropReason::PolicyMissing))?;
    let verdict = follow_rules(line, compiled, worker, &packet)?;
    if let Some(classes) = compiled.classes() {
        return classified(sessions, of, (compiled, classes), verdict, packet);
    }
    if let Some(dscp) = verdict.mark() {
        fields::mark(packet.w, packet.family, packet.ip, dscp);
    }
    within_limits(sessions, of, compiled, Colour::Green, &mut packet)
}

/// The same for a packet that a rule permits, of a policy with classes.
#[inline(never)]
fn classified(
    sessions: &mut Sessions,
    of: Of,
    (compiled, classes): (&CompiledPolicy, &Classes),
    verdict: Verdict,
    mut packet: Examined<'_>,
) -> Result<(), Refused> {
    let dscp = fields::dscp(packet.w, packet.family, packet.ip);
    let class = classes.class(verdict, dscp);
    if let Some(mark) = verdict.mark().or(classes.mark(class)) {
        fields::mark(packet.w, packet.family, packet.ip, mark);
    }
    let Some(position) = class.position() else {
        return within_limits(sessions, of, compiled, Colour::Green, &mut packet);
    };
    let (total, now) = (packet.total, packet.now);
    let Some(line) = sessions.class_line(of.index, of.direction, (compiled, classes), now) else {
        return Ok(());
    };
    let before = line.tokens[position];
    let tokens = &mut line.tokens[position];
    let (colour, mark) = classes.colour(position, tokens, total, dscp, now);
    if colour == Colour::Red {
        line.counts[position].exceeded += 1;
        return Err(Refused::ClassExceeded);
    }
    if let Some(mark) = mark {
        fields::mark(packet.w, packet.family, packet.ip, mark);
    }
    let permitted = within_limits(sessions, of, compiled, colour, &mut packet);
    if let Some(line) = sessions.class_line(of.index, of.direction, (compiled, classes), now) {
        match permitted {
            Ok(()) => {
                line.counts[position].passed += 1;
                line.counts[position].yellow += u64::from(colour == Colour::Yellow);
            }
            Err(_) => line.tokens[position] = before,
        }
    }
    permitted
}

/// The policer of the policy, or without one the session's rate, and the rate of all sessions of the subscriber.
#[inline(always)]
fn within_limits(
    sessions: &mut Sessions,
    of: Of,
    compiled: &CompiledPolicy,
    class_colour: Colour,
    packet: &mut Examined<'_>,
) -> Result<(), Refused> {
    let Some(policer) = compiled.policer() else {
        return within_rates(sessions, of, packet);
    };
    let now = packet.now;
    let Some((line, meter)) = sessions.policy_and_meter(of.index, of.direction, compiled, now)
    else {
        return Ok(());
    };
    let (home, before) = (line.home, *meter.tokens());
    metered(line, meter, policer, class_colour, packet)?;
    match home {
        Some(home) if !sessions.home_permits(home, of.direction, packet.total, now) => {
            let lines = sessions.policy_and_meter(of.index, of.direction, compiled, now);
            if let Some((_, meter)) = lines {
                *meter.tokens() = before;
            }
            Err(Refused::SubscriberExceeded)
        }
        _ => Ok(()),
    }
}

/// The session's rate, and that of all sessions of the subscriber.
#[inline(always)]
fn within_rates(sessions: &mut Sessions, of: Of, packet: &Examined<'_>) -> Result<(), Refused> {
    let Some(line) = sessions.policy(of.index, of.direction) else {
        return Ok(());
    };
    let before = line.policer;
    if line.policer.has_limit() && !line.policer.permits(packet.total, packet.now) {
        line.exceeded += 1;
        return Err(Refused::Exceeded);
    }
    let home = line.home;
    match home {
        Some(home) if !sessions.home_permits(home, of.direction, packet.total, packet.now) => {
            if let Some(line) = sessions.policy(of.index, of.direction) {
                line.policer = before;
            }
            Err(Refused::SubscriberExceeded)
        }
        _ => Ok(()),
    }
}

/// Green and yellow packets pass, red ones do not. A policer that knows colours takes the worse one of the code point's and the class'.
#[inline(always)]
fn metered(
    line: &mut PolicyLine,
    meter: &mut MeterLine,
    policer: &PolicerSettings,
    class_colour: Colour,
    packet: &mut Examined<'_>,
) -> Result<(), Refused> {
    let Examined { w, family, ip, .. } = packet;
    let incoming = match policer.is_colour_aware {
        true => policer
            .incoming(fields::dscp(w, *family, *ip))
            .max(class_colour),
        false => Colour::Green,
    };
    match meter.colour(policer, packet.total, incoming, packet.now) {
        Colour::Green => {}
        Colour::Yellow => {
            if let Some(dscp) = policer.yellow_mark {
                fields::mark(w, *family, *ip, dscp);
            }
        }
        Colour::Red => {
            line.exceeded += 1;
            return Err(Refused::Exceeded);
        }
    }
    Ok(())
}

/// What the rules say of the packet at `ip`. Nothing of it needs to have been checked: what the rules say of a header that is not sound
/// is as worthless as the packet.
#[inline(always)]
pub(crate) fn matched(compiled: &CompiledPolicy, w: &Window, family: Family, ip: usize) -> Matched {
    let total = ip::total(family, w, ip);
    match family {
        Family::V4 => {
            let read = fields::read_v4(w, ip, total);
            if read.is_undetermined && compiled.denies_undetermined() {
                return Matched::UNDETERMINED;
            }
            compiled.of_v4(&read.packet)
        }
        Family::V6 => {
            let read = fields::read_v6(w, ip, total);
            if read.is_undetermined && compiled.denies_undetermined() {
                return Matched::UNDETERMINED;
            }
            compiled.of_v6(&read.packet)
        }
    }
}

#[inline(never)]
fn matched_late(compiled: &CompiledPolicy, packet: &Examined<'_>) -> Matched {
    matched(compiled, packet.w, packet.family, packet.ip)
}

/// The first rule that matches decides.
#[inline(always)]
fn follow_rules(
    line: &mut PolicyLine,
    compiled: &CompiledPolicy,
    worker: u16,
    packet: &Examined<'_>,
) -> Result<Verdict, Refused> {
    let mut matched = packet.matched;
    if matched.verdict.is_open() {
        matched = matched_late(compiled, packet);
    }
    if matched.verdict.is_undetermined() {
        return Err(Refused::Other(DropReason::UndeterminedTransport));
    }
    compiled.count(matched, packet.total, worker);
    if !matched.verdict.permits() {
        line.denied += 1;
        line.denied_octets += packet.total as u64;
        line.denied_by = matched.rule;
        line.denied_in = compiled.compilation();
        return Err(Refused::Denied);
    }
    Ok(matched.verdict)
}

#[cfg(test)]
mod tests;
