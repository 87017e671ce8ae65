//! Node `policy`: does the policy of the session permit the packet?
//!
//! Only sessions whose policy has something to do for each packet come here. The rules come first, so that what they deny takes no
//! tokens. Out: back to where the packet came from, or for what a rule redirects, the punt node. Drops: `denied-up`, `denied-down`, `undetermined-transport`, `policy-missing`,
//! `class-exceeded-up`, `class-exceeded-down`, `rate-exceeded-up`, `rate-exceeded-down`, `subscriber-exceeded-up`, `subscriber-exceeded-down`.
use crate::api::SessionIndex;
use crate::compiled::{Class, Classes, CompiledPolicy, Matched, PolicerSettings, Verdict};
use crate::drops::DropReason;
use crate::nodes::ip::{self, Family};
use crate::nodes::lookup::Origin;
use crate::nodes::{Exit, Part, fields, priority};
use crate::police::Colour;
use crate::punt::PuntKind;
use crate::tables::policies::{CompiledPolicies, PolicyLine};
use crate::tables::sessions::{PolicedLines, Sessions};
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
    /// Where it came from.
    pub origin: Origin,
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
) -> Result<(), Exit> {
    let index = sessions.index(slot);
    let (family, total) = (packet.family, packet.total);
    let of = (index, Direction::Up);
    let permitted = permit(sessions, policies, of, packet);
    permitted.map(|_| ()).map_err(|refused| {
        sessions.up(slot).counts.uncount(family, total);
        let reason = match refused {
            Refused::Redirected => return Exit::Punt(PuntKind::Redirect(index), Part::WHOLE),
            Refused::Denied => DropReason::DeniedUp,
            Refused::Exceeded => DropReason::RateExceededUp,
            Refused::ClassExceeded => DropReason::ClassExceededUp,
            Refused::SubscriberExceeded => DropReason::SubscriberExceededUp,
            Refused::Other(reason) => reason,
        };
        reason.into()
    })
}

/// A packet to a subscriber, which the session counts later. In which queue it has to wait, if it has.
#[inline(always)]
pub(crate) fn down(
    sessions: &mut Sessions,
    policies: &CompiledPolicies,
    index: SessionIndex,
    packet: Examined<'_>,
) -> Result<Option<Queued>, DropReason> {
    let permitted = permit(sessions, policies, (index, Direction::Down), packet);
    permitted.map_err(|refused| match refused {
        Refused::Denied | Refused::Redirected => DropReason::DeniedDown,
        Refused::Exceeded => DropReason::RateExceededDown,
        Refused::ClassExceeded => DropReason::ClassExceededDown,
        Refused::SubscriberExceeded => DropReason::SubscriberExceededDown,
        Refused::Other(reason) => reason,
    })
}

/// The queue of a packet that passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Queued {
    /// The class of the policy, from 1; 0: none.
    pub class: u8,
    /// The compilation whose queues are meant.
    pub compilation: u32,
}

/// Why a packet does not pass.
enum Refused {
    /// By a rule.
    Denied,
    /// The control thread answers it.
    Redirected,
    /// It is above the rate of the session.
    Exceeded,
    /// It is above the rate of its class.
    ClassExceeded,
    /// It is above the rate of all sessions of the subscriber.
    SubscriberExceeded,
    Other(DropReason),
}

/// Rules, then the policer of the class, that of the policy or without one the session's rate, and the rate of all sessions of the
/// subscriber. A packet that one of them drops takes no tokens of those before.
#[inline(always)]
fn permit(
    sessions: &mut Sessions,
    policies: &CompiledPolicies,
    (index, direction): (SessionIndex, Direction),
    mut packet: Examined<'_>,
) -> Result<Option<Queued>, Refused> {
    let worker = sessions.shard.own;
    let Some(mut lines) = sessions.policing(index, direction) else {
        return Ok(None);
    };
    let verdict = packet.matched.verdict;
    if verdict.is_alone() && !lines.policy.is_watched {
        if let Some(dscp) = verdict.mark() {
            fields::mark(packet.w, packet.family, packet.ip, dscp);
        }
        return within_rates(&mut lines, &packet).map(|()| None);
    }
    let Some(policy) = lines.policy.policy else {
        return within_rates(&mut lines, &packet).map(|()| None);
    };
    // nothing passes unfiltered while the policy is being made
    let compiled = policies.get(policy);
    let compiled = compiled.ok_or(Refused::Other(DropReason::PolicyMissing))?;
    let matched = matched_now(compiled, &packet);
    if lines.policy.is_watched {
        let way = (index, direction);
        policies.watches.count(way, compiled, matched, packet.total);
    }
    let way = (worker, direction);
    let verdict = follow_rules(lines.policy, (compiled, matched), way, &packet)?;
    if let Some(policer) = compiled.policer()
        && !lines.meter().is_of(compiled.compilation())
    {
        sessions.renew_meter(index, direction, (compiled, policer), packet.now);
        lines = match sessions.policing(index, direction) {
            Some(lines) => lines,
            None => return Ok(None),
        };
    }
    let class = match compiled.classes() {
        None => {
            if let Some(dscp) = verdict.mark() {
                fields::mark(packet.w, packet.family, packet.ip, dscp);
            }
            within_limits(&mut lines, compiled, Colour::Green, &mut packet)?;
            Class::NONE
        }
        Some(classes) => classified(lines, (compiled, classes), verdict, packet)?,
    };
    Ok(compiled.queues().map(|_| Queued {
        class: class.number(),
        compilation: compiled.compilation(),
    }))
}

/// The same for a packet that a rule permits, of a policy with classes. By value, so that for other policies all stays in registers.
#[inline(never)]
fn classified(
    mut lines: PolicedLines<'_>,
    (compiled, classes): (&CompiledPolicy, &Classes),
    verdict: Verdict,
    mut packet: Examined<'_>,
) -> Result<Class, Refused> {
    let dscp = fields::dscp(packet.w, packet.family, packet.ip);
    let class = classes.class(verdict, dscp, || priority_of(&packet, lines.is_down()));
    if let Some(mark) = verdict.mark().or(classes.mark(class)) {
        fields::mark(packet.w, packet.family, packet.ip, mark);
    }
    let Some(position) = class.position() else {
        within_limits(&mut lines, compiled, Colour::Green, &mut packet)?;
        return Ok(class);
    };
    lines.follow_classes(compiled, classes, packet.now);
    let of = (lines.direction(), position);
    let (tokens, counts) = lines.class(position);
    let before = *tokens;
    let (colour, mark) = classes.colour(of, tokens, packet.total, dscp, packet.now);
    if colour == Colour::Red {
        counts.exceeded += 1;
        return Err(Refused::ClassExceeded);
    }
    if let Some(mark) = mark {
        fields::mark(packet.w, packet.family, packet.ip, mark);
    }
    let permitted = within_limits(&mut lines, compiled, colour, &mut packet);
    let (tokens, counts) = lines.class(position);
    match permitted {
        Ok(()) => {
            counts.passed += 1;
            counts.yellow += u64::from(colour == Colour::Yellow);
        }
        Err(_) => *tokens = before,
    }
    permitted.map(|()| class)
}

/// Priority (IEEE 802.1p) of the packet: that of the tag with which it came to the gateway, 0 without one. A packet from another subscriber has
/// none: what that one wrote into its tags is for the policy of the packets from there.
#[inline(always)]
fn priority_of(packet: &Examined<'_>, is_down: bool) -> u8 {
    match (packet.origin, is_down) {
        (Origin::Subscriber, false) => priority::of_access(packet.w),
        (Origin::Core(_), true) => priority::of_core(packet.w, packet.ip),
        _ => 0,
    }
}

/// The policer of the policy, or without one the session's rate unless queues keep it, and the rate of all sessions of the subscriber.
#[inline(always)]
fn within_limits(
    lines: &mut PolicedLines<'_>,
    compiled: &CompiledPolicy,
    class_colour: Colour,
    packet: &mut Examined<'_>,
) -> Result<(), Refused> {
    let Some(policer) = compiled.policer() else {
        return match compiled.queues() {
            Some(_) if lines.is_down() => within_home(lines, packet),
            _ => within_rates(lines, packet),
        };
    };
    let before = *lines.meter().tokens();
    let colour = metered(lines, policer, class_colour, packet)?;
    within_home(lines, packet).inspect_err(|_| *lines.meter().tokens() = before)?;
    lines.meter().yellow += u64::from(colour == Colour::Yellow);
    Ok(())
}

/// The session's rate, and that of all sessions of the subscriber.
#[inline(always)]
fn within_rates(lines: &mut PolicedLines<'_>, packet: &Examined<'_>) -> Result<(), Refused> {
    if !lines.policy.policer.has_limit() && lines.policy.home.is_none() {
        return Ok(());
    }
    let before = lines.policy.policer;
    let policer = &mut lines.policy.policer;
    if policer.has_limit() && !policer.permits(packet.total, packet.now) {
        lines.policy.exceeded += 1;
        return Err(Refused::Exceeded);
    }
    within_home(lines, packet).inspect_err(|_| lines.policy.policer = before)
}

/// The rate of all sessions of the subscriber.
#[inline(always)]
fn within_home(lines: &mut PolicedLines<'_>, packet: &Examined<'_>) -> Result<(), Refused> {
    let is_within = match lines.policy.home {
        None => true,
        Some(home) => lines.home_permits(home, packet.total, packet.now),
    };
    is_within.then_some(()).ok_or(Refused::SubscriberExceeded)
}

/// The colour of a packet that passes: green or yellow. A policer that knows colours takes the worse one of the code point's and that of the
/// class.
#[inline(always)]
fn metered(
    lines: &mut PolicedLines<'_>,
    policer: &PolicerSettings,
    class_colour: Colour,
    packet: &mut Examined<'_>,
) -> Result<Colour, Refused> {
    let Examined { w, family, ip, .. } = packet;
    let incoming = match policer.is_colour_aware {
        true => policer
            .incoming(fields::dscp(w, *family, *ip))
            .max(class_colour),
        false => Colour::Green,
    };
    let colour = lines
        .meter()
        .colour(policer, packet.total, incoming, packet.now);
    match colour {
        Colour::Green => {}
        Colour::Yellow => {
            if let Some(dscp) = policer.yellow_mark {
                fields::mark(w, *family, *ip, dscp);
            }
        }
        Colour::Red => {
            lines.policy.exceeded += 1;
            return Err(Refused::Exceeded);
        }
    }
    Ok(colour)
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
fn matched_late(compiled: &CompiledPolicy, w: &Window, family: Family, ip: usize) -> Matched {
    matched(compiled, w, family, ip)
}

/// What the rules say of a packet, also if they were not asked with those of the whole burst.
#[inline(always)]
fn matched_now(compiled: &CompiledPolicy, packet: &Examined<'_>) -> Matched {
    let late = || matched_late(compiled, packet.w, packet.family, packet.ip);
    match packet.matched.verdict.is_open() {
        true => compiled.of_all().unwrap_or_else(late),
        false => packet.matched,
    }
}

/// The first rule that matches decides. Only what a subscriber sends is redirected: to a subscriber, such a rule denies.
#[inline(always)]
fn follow_rules(
    line: &mut PolicyLine,
    (compiled, matched): (&CompiledPolicy, Matched),
    (worker, direction): (u16, Direction),
    packet: &Examined<'_>,
) -> Result<Verdict, Refused> {
    if matched.verdict.is_undetermined() {
        return Err(Refused::Other(DropReason::UndeterminedTransport));
    }
    compiled.count(matched, packet.total, worker);
    if !matched.verdict.permits() {
        if matched.verdict.redirects() && direction == Direction::Up {
            return Err(Refused::Redirected);
        }
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
