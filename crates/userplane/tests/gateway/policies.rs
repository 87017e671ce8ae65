//! Sessions whose packets pass policies, and what is shown of these.

use super::*;

/// A session whose packets pass a policy in one direction, and should pass one that nobody defines in the other.
pub async fn filtered(
    cp: &mut ControlPlane,
    access: &Device,
    management: &Management,
    told: &UserPlaneDocument,
    api: &Path,
) {
    let mut spec = session_spec();
    spec.forwarding.policies = policy::TrafficPolicies {
        policy_up: Name::new("home-up"),
        policy_down: Name::new("nowhere"),
        filter_rules: None,
    };
    spec.forwarding.packets.rate_up = Rate::new(50_000);
    spec.forwarding.packets.rate_down = Rate::new(50_000);
    let seid = cp.establish(spec.establish_control()).await;
    let modified = cp.ask(seid, spec.add_family(Family::Ipv4).unwrap()).await;
    assert_eq!(modified.cause(), Some(Cause::REQUEST_ACCEPTED));
    let mut mi = mi::Client::new(&mi::Endpoint::Unix(api.to_owned()), None).unwrap();
    in_force(&mut mi).await;
    mi.watch_rules(place(), 60).await.unwrap();
    access.try_write(&udp(53)).unwrap();
    access.try_write(&udp(25)).unwrap();
    let up = denied(&mut mi, 1).await;
    assert_eq!(hits(&up), [("base", 10, 1, 28), ("base", 20, 1, 28)]);
    assert_eq!((&*up.name, up.state()), ("home-up", InForce));
    assert_eq!((up.denied_octets, up.exceeded_packets), (28, 0));
    let compiled = up.compiled.unwrap();
    assert_eq!((compiled.rules, compiled.ipv4.unwrap().rules), (2, 2));
    assert!(compiled.octets > compiled.ipv6.unwrap().octets);
    let denial = up.last_denial.unwrap();
    assert_eq!(denial.reason(), DenialReason::Rule);
    let text = "deny udp from any to any 25";
    assert_eq!(
        (&*denial.acl, denial.rule, &*denial.text),
        ("base", 20, text)
    );
    let rate = up.policers.first().unwrap();
    assert_eq!(
        (rate.owner(), rate.kind()),
        (PolicerOwner::Session, PolicerKind::SingleBucket)
    );
    assert!(rate.committed_rate.abs_diff(50_000_000) < 1000, "{rate:?}");
    let policy = session_policy(&mut mi).await;
    assert_eq!(policy.worker, Some(1), "the segment was moved there");
    let down = policy.down.unwrap();
    assert!(down.drops_all && down.state() == Missing, "{down:?}");
    assert!(
        down.compiled.is_none() && down.policers.is_empty(),
        "{down:?}"
    );
    policies_are_shown(&mut mi).await;

    // another document: what was counted stays, and the rule that denied is not mistaken for another one
    let mut changed = told.clone();
    let acl = Arc::make_mut(changed.acls.get_mut("base").unwrap());
    let deny = acl.rules.remove(&20).unwrap();
    acl.rules.insert(5, deny);
    acl.rules.remove(&10);
    acl.rules.extend(told.acls["base"].rules.clone());
    management.reconfigure(changed).await.unwrap();
    let begun = Instant::now();
    while mi.policies().await.unwrap()[0].state() != InForce {
        assert!(begun.elapsed() < PATIENCE, "the policy is not compiled");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(counted(&mut mi).await, [(5, 0), (10, 1), (20, 1)]);
    let denial = denied(&mut mi, 1).await.last_denial.unwrap();
    assert_eq!(
        (denial.reason(), &*denial.acl),
        (DenialReason::Replaced, "")
    );
    let now = in_force(&mut mi).await.compiled.unwrap();
    assert_eq!((now.number, now.rules), (compiled.number, 3));
    assert_ne!(now.compilation, compiled.compilation);
    access.try_write(&udp(80)).unwrap();
    let up = denied(&mut mi, 2).await;
    assert_eq!(hits(&up), [("", 0, 1, 28)], "of the changed policy");
    assert_eq!(up.last_denial.unwrap().reason(), DenialReason::Unmatched);
    mi.watch_rules(place(), 0).await.unwrap();
    assert_eq!(session_policy(&mut mi).await.up.unwrap().rule_watch, None);
    mi.watch_rules(place(), 60).await.unwrap();

    assert_eq!(
        cp.ask(seid, delete()).await.cause(),
        Some(Cause::REQUEST_ACCEPTED)
    );
    let gone = mi.session_policy(place()).await.unwrap_err();
    assert!(mi::is_absent(&gone), "{gone}");
    let gone = mi.watch_rules(place(), 60).await.unwrap_err();
    assert!(mi::is_absent(&gone), "{gone}");
}

/// Hits of a session that is watched: ACL, number of the rule, packets and octets.
fn hits(of: &DirectionPolicy) -> Vec<(&str, u32, u64, u64)> {
    let hits = of.rule_watch.iter().flat_map(|watch| &watch.hits);
    hits.map(|hits| (&*hits.acl, hits.rule, hits.packets, hits.octets))
        .collect()
}

/// A datagram of the home to a port of the server.
fn udp(port: u16) -> Vec<u8> {
    let ports = [[0, 9], port.to_be_bytes(), [0, 8], [0, 0]].concat();
    from_home(&packet(64, ipv4::UDP, HOME_ADDRESS, SERVER, &ports))
}

/// A session with rules of its own. Without ACLs behind them, the last one says what becomes of other packets.
pub async fn filtered_by_own_rules(cp: &mut ControlPlane, access: &Device, api: &Path) {
    let rules = |texts: &[&str]| FilterRules::new(&texts.join("\0"));
    let mut spec = session_spec();
    let first = [
        "deny in udp from any to any 25",
        "permit in udp from any to any 53",
    ];
    spec.forwarding.policies.filter_rules = rules(&first);
    let seid = cp.establish(spec.establish_control()).await;
    let modified = cp.ask(seid, spec.add_family(Family::Ipv4).unwrap()).await;
    assert_eq!(modified.cause(), Some(Cause::REQUEST_ACCEPTED));
    let mut mi = mi::Client::new(&mi::Endpoint::Unix(api.to_owned()), None).unwrap();
    in_force(&mut mi).await;
    access.try_write(&udp(53)).unwrap();
    access.try_write(&udp(25)).unwrap();
    let up = denied(&mut mi, 1).await;
    assert_eq!(up.rule_watch, None, "it ended with the session before");
    mi.watch_rules(place(), 60).await.unwrap();
    assert_eq!(up.name, "NAS-Filter-Rule");
    let denial = up.last_denial.unwrap();
    assert_eq!(
        (&*denial.acl, denial.rule, &*denial.text),
        ("", 1, first[0])
    );
    access.try_write(&udp(80)).unwrap();
    let denial = denied(&mut mi, 2).await.last_denial.unwrap();
    assert_eq!(denial.reason(), DenialReason::Unmatched);
    assert!(session_policy(&mut mi).await.down.is_none());

    let told = spec.told();
    let second = "deny in udp from any to any 53";
    spec.forwarding.policies.filter_rules = rules(&[second]);
    let changed = cp.ask(seid, spec.change_from(&told).unwrap()).await;
    assert_eq!(changed.cause(), Some(Cause::REQUEST_ACCEPTED));
    let before = in_force(&mut mi).await.denied_packets;
    access.try_write(&udp(80)).unwrap();
    access.try_write(&udp(53)).unwrap();
    let up = denied(&mut mi, before + 1).await;
    let shown = hits(&up);
    assert_eq!(shown, [("", 1, 1, 28), ("", 0, 1, 28)], "of the new rules");
    assert_eq!(up.last_denial.unwrap().text, second, "only that is denied");

    let told = spec.told();
    spec.forwarding.policies.filter_rules = rules(&["deny in udp from any to any 80 fast"]);
    let refused = cp.ask(seid, spec.change_from(&told).unwrap()).await;
    assert_eq!(refused.cause(), Some(Cause::RULE_CREATION_FAILURE));
    let gone = cp.ask(seid, delete()).await.cause();
    assert_eq!(gone, Some(Cause::REQUEST_ACCEPTED));
}

/// The policy of packets from the home, once it is in force.
async fn in_force(mi: &mut mi::Client) -> DirectionPolicy {
    let begun = Instant::now();
    loop {
        let up = session_policy(mi).await.up.unwrap();
        if up.state() == InForce {
            return up;
        }
        assert!(begun.elapsed() < PATIENCE, "{up:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Where the session is.
fn place() -> mi::GetSessionPolicyRequest {
    mi::GetSessionPolicyRequest {
        port: "access0".into(),
        s_tag: None,
        c_tag: None,
        mac: HOME.to_string(),
        pppoe_session_id: SESSION.into(),
    }
}

async fn session_policy(mi: &mut mi::Client) -> SessionPolicy {
    mi.session_policy(place()).await.unwrap()
}

/// What happened to packets of the home, once so many were denied.
async fn denied(mi: &mut mi::Client, packets: u64) -> DirectionPolicy {
    let begun = Instant::now();
    loop {
        let up = session_policy(mi).await.up.unwrap();
        if up.denied_packets == packets {
            return up;
        }
        assert!(begun.elapsed() < PATIENCE, "{up:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Numbers of the rules of an ACL with the packets that they matched.
async fn counted(mi: &mut mi::Client) -> Vec<(u32, u64)> {
    let listed = mi.acl_rules("base".into(), None).await.unwrap();
    assert!(!listed.more);
    let rows = listed.rules.iter();
    rows.map(|row| (row.number, row.packets.unwrap())).collect()
}

async fn policies_are_shown(mi: &mut mi::Client) {
    assert_eq!(counted(mi).await, [(10, 1), (20, 1)]);
    let silent = mi.acl_rules("silent".into(), None).await.unwrap().rules;
    assert_eq!((silent[0].number, silent[0].packets), (5, None));
    let behind = mi.acl_rules("silent".into(), silent.first().cloned()).await;
    assert!(behind.unwrap().rules.is_empty());
    let unknown = mi.acl_rules("bse".into(), None).await.unwrap_err();
    let why = "ACL `bse` does not exist. There is: base, silent";
    assert_eq!((unknown.message(), mi::is_absent(&unknown)), (why, true));

    let policies = mi.policies().await.unwrap();
    let rows: Vec<_> = policies
        .iter()
        .map(|row| (&*row.name, row.state(), row.rules, row.sessions))
        .collect();
    assert_eq!(
        rows,
        [("home-up", InForce, 2, 1), ("nowhere", Missing, 0, 1)]
    );
    assert!(policies[0].octets.is_some_and(|octets| octets > 0));
    assert_eq!(policies[1].octets, None);
}
