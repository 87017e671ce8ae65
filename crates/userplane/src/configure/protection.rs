//! Rates at which the worker passes on what is for the gateway itself.

use config::model::Protection;
use dataplane::{HoldDown, Levels, PuntKind, PuntLimits, PuntRate};
use std::time::Duration;

/// The limits of a document.
pub(super) fn limits(protection: &Protection) -> PuntLimits {
    let Protection {
        discovery,
        hold_down,
        session,
        echo,
        redirect,
        local,
        resolution,
        routing,
        multicast,
        for_us,
    } = protection;
    let mut limits = PuntLimits::default();
    limits.hold_down = HoldDown {
        after: hold_down.after,
        first: Duration::from_secs(hold_down.first.into()),
        longest: Duration::from_secs(hold_down.longest.into()),
    };
    limits.per_session = scaled(limits.per_session, session.session);
    let rate = |rate: u32| Some(rate).filter(|rate| *rate > 0);
    let of_port = |mac, port| Levels {
        mac: rate(mac),
        port: rate(port),
        ..Levels::NONE
    };
    let of_line = Levels {
        line: rate(discovery.line),
        vlan: rate(discovery.vlan),
        ..of_port(discovery.mac, discovery.port)
    };
    for (name, levels, total) in [
        ("discovery", of_line, discovery.total),
        ("session", Levels::NONE, session.total),
        ("echo", Levels::NONE, echo.total),
        (
            "redirect",
            Levels {
                line: rate(redirect.line),
                ..of_port(redirect.mac, redirect.port)
            },
            redirect.total,
        ),
        ("local", of_port(local.mac, local.port), local.total),
        (
            "resolution",
            of_port(resolution.mac, resolution.port),
            resolution.total,
        ),
        ("routing", of_port(routing.mac, routing.port), routing.total),
        (
            "multicast",
            of_port(multicast.mac, multicast.port),
            multicast.total,
        ),
        ("for-us", of_port(for_us.mac, for_us.port), for_us.total),
    ] {
        limits = with(limits, name, levels, total);
    }
    limits
}

/// With these rates of a kind.
fn with(limits: PuntLimits, name: &'static str, levels: Levels, total: u32) -> PuntLimits {
    let mut classes = PuntKind::ALL.iter();
    let limits = classes.find(|class| class.name == name).and_then(|class| {
        let limits = limits.with(name, scaled(class.rate, total))?;
        limits.with_levels(name, levels)
    });
    limits.expect("each setting is a kind")
}

/// Another rate, with the burst in proportion.
fn scaled(usual: PuntRate, per_second: u32) -> PuntRate {
    let burst = u64::from(usual.burst) * u64::from(per_second) / u64::from(usual.per_second.max(1));
    PuntRate {
        per_second,
        burst: u32::try_from(burst).unwrap_or(u32::MAX).max(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_what_the_data_plane_does_by_itself() {
        assert_eq!(limits(&Protection::default()), PuntLimits::default());
    }

    #[test]
    fn what_is_said_counts_and_zero_is_no_rate() {
        let mut protection = Protection::default();
        protection.discovery.line = 7;
        protection.discovery.vlan = 0;
        protection.discovery.total = 10_000;
        protection.hold_down.after = 0;
        let levels = Levels {
            line: Some(7),
            vlan: None,
            ..PuntKind::Discovery.class().levels
        };
        let total = PuntRate {
            per_second: 10_000,
            burst: 2_000,
        };
        let wanted = PuntLimits::default().with_levels("discovery", levels);
        let mut wanted = wanted.unwrap().with("discovery", total).unwrap();
        wanted.hold_down.after = 0;
        assert_eq!(limits(&protection), wanted);
    }
}
