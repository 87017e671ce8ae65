use super::*;
use crate::duid::Duid;
use ipnet::Ipv6Net;
use policy::{Binding, Bindings, Role};
use proptest::prelude::*;

const CLIENT: &[u8] = &[0, 3, 0, 1, 2, 0, 0, 0, 0, 9];
const OURS: &str = "2001:db8:5::7";
const PREFIX: &str = "2001:db8:7700::/56";

fn grant() -> Ipv6Grant {
    Ipv6Grant {
        bindings: bindings(true, [PREFIX.parse().unwrap()]),
        dns: ["2001:db8::53".parse().unwrap()].into(),
        interface_id: None,
    }
}

fn bindings(has_address: bool, delegated: impl IntoIterator<Item = Ipv6Net>) -> Bindings {
    let link = Binding::link("2001:db8:0:7::/64".parse().unwrap());
    let host = has_address.then(|| Binding::host(OURS.parse().unwrap()));
    let delegated = delegated.into_iter();
    let delegated = delegated.map(|net| Binding::new(Role::Delegated, net.into()));
    Bindings::new(delegated.chain([link]).chain(host)).unwrap()
}

fn nothing() -> Ipv6Grant {
    Ipv6Grant {
        bindings: bindings(false, []),
        dns: Box::default(),
        ..grant()
    }
}

fn config() -> DhcpConfig {
    DhcpConfig {
        duid: Duid::of_gateway("cp"),
        preferred_lifetime: 1000,
        valid_lifetime: 4000,
        ..DhcpConfig::default()
    }
}

fn message<'a>(kind: u8, options: Vec<Opt<'a>>) -> Message<'a> {
    let client = [Opt::ClientId(CLIENT)];
    Message {
        kind,
        transaction: 0x42,
        options: client.into_iter().chain(options).collect(),
    }
}

/// A message to this server alone, of which it says so.
fn to_us(kind: u8, mut options: Vec<Opt<'static>>) -> Message<'static> {
    options.push(Opt::ServerId(config().duid.as_bytes().to_vec().leak()));
    message(kind, options)
}

fn na(id: u32, addresses: &[&str]) -> Opt<'static> {
    let leases = addresses.iter().map(|address| {
        let address: Ipv6Addr = address.parse().unwrap();
        lease_of(Kind::Address, (address, 128), 0, 0)
    });
    Opt::IaNa(Ia {
        options: leases.collect(),
        ..Ia::new(id)
    })
}

fn pd(id: u32, prefixes: &[&str]) -> Opt<'static> {
    let leases = prefixes.iter().map(|net| {
        let net: Ipv6Net = net.parse().unwrap();
        lease_of(Kind::Prefix, (net.addr(), net.prefix_len()), 0, 0)
    });
    Opt::IaPd(Ia {
        options: leases.collect(),
        ..Ia::new(id)
    })
}

/// What a server with a grant says to a message.
struct Said {
    kind: u8,
    options: Vec<String>,
}

/// Options as text, without the identifiers, which must be there.
fn said(grant: &Ipv6Grant, asked: &Message<'_>) -> Said {
    let config = config();
    let server = Server {
        config: &config,
        grant,
    };
    let answer = server.answer(asked, true).unwrap();
    assert_eq!(answer.transaction, asked.transaction);
    assert_eq!(answer.client_id(), asked.client_id());
    assert_eq!(answer.server_id(), Some(config.duid.as_bytes()));
    let options = answer.options.iter();
    let options = options.filter(|o| !matches!(o, Opt::ClientId(_) | Opt::ServerId(_)));
    Said {
        kind: answer.kind,
        options: options.map(text).collect(),
    }
}

fn text(option: &Opt<'_>) -> String {
    let ia = |name: &str, ia: &Ia<'_>| {
        let parts: Vec<String> = ia.options.iter().map(text).collect();
        format!("{name}{} {}/{} {}", ia.id, ia.t1, ia.t2, parts.join(" "))
    };
    match option {
        Opt::IaNa(one) => ia("na", one),
        Opt::IaPd(one) => ia("pd", one),
        Opt::Address(a) => format!(
            "{}={}/{}",
            a.address, a.preferred_lifetime, a.valid_lifetime
        ),
        Opt::Prefix(p) => format!(
            "{}/{}={}/{}",
            p.prefix, p.length, p.preferred_lifetime, p.valid_lifetime
        ),
        Opt::Status(status) => status::name(status.code).unwrap().into(),
        other => format!("{other:?}"),
    }
}

fn refusal(asked: &Message<'_>, is_multicast: bool) -> &'static str {
    let (config, grant) = (config(), grant());
    let server = Server {
        config: &config,
        grant: &grant,
    };
    server.answer(asked, is_multicast).unwrap_err().0
}

const NA_LEASED: &str = "na1 500/800 2001:db8:5::7=1000/4000";
const PD_LEASED: &str = "pd2 500/800 2001:db8:7700::/56=1000/4000";

#[test]
fn a_solicit_is_advertised_both_kinds_rfc8415_18_3_1() {
    let said = said(
        &grant(),
        &message(dhcpv6::SOLICIT, vec![na(1, &[]), pd(2, &[])]),
    );
    assert_eq!(said.kind, dhcpv6::ADVERTISE);
    assert_eq!(said.options, [NA_LEASED, PD_LEASED, "Preference(255)"]);
}

#[test]
fn rapid_commit_gets_a_reply_at_once_rfc8415_18_3_1() {
    let asked = message(dhcpv6::SOLICIT, vec![Opt::RapidCommit, pd(2, &[])]);
    let said = said(&grant(), &asked);
    assert_eq!(said.kind, dhcpv6::REPLY);
    assert_eq!(said.options, [PD_LEASED, "RapidCommit"]);
}

#[test]
fn wishes_in_a_solicit_are_passed_over_rfc8415_18_3_1() {
    let wishes = vec![
        na(1, &["2001:db8:9::1"]),
        pd(2, &["2001:db8:9900::/48", "::/60"]),
    ];
    let said = said(&grant(), &message(dhcpv6::SOLICIT, wishes));
    assert_eq!(said.options[..2], [NA_LEASED, PD_LEASED]);
}

#[test]
fn the_first_association_of_a_kind_gets_it_and_others_nothing() {
    let all = vec![pd(2, &[]), pd(3, &[]), na(1, &[]), na(4, &[])];
    let solicited = said(&grant(), &message(dhcpv6::SOLICIT, all));
    let none = ["pd3 0/0 NoPrefixAvail", "na4 0/0 NoAddrsAvail"];
    assert_eq!(
        solicited.options[..4],
        [PD_LEASED, none[0], NA_LEASED, none[1]]
    );
    // whichever names what the session has keeps it
    let all = vec![pd(3, &[]), pd(2, &[PREFIX]), na(4, &[]), na(1, &[OURS])];
    let requested = said(&grant(), &to_us(dhcpv6::REQUEST, all));
    assert_eq!(requested.options, [none[0], PD_LEASED, none[1], NA_LEASED]);
}

#[test]
fn without_leases_each_association_is_told_so_rfc8415_18_3_9() {
    for kind in [dhcpv6::SOLICIT, dhcpv6::REQUEST] {
        let asked = vec![na(1, &[]), pd(2, &[PREFIX])];
        let asked = match kind {
            dhcpv6::SOLICIT => message(kind, asked),
            _ => to_us(kind, asked),
        };
        let said = said(&nothing(), &asked);
        let none = ["na1 0/0 NoAddrsAvail", "pd2 0/0 NoPrefixAvail"];
        assert_eq!(said.options[..2], none);
    }
}

#[test]
fn a_request_gets_what_was_offered_rfc8415_18_3_2() {
    let asked = to_us(dhcpv6::REQUEST, vec![na(1, &[OURS]), pd(2, &[PREFIX])]);
    let said = said(&grant(), &asked);
    assert_eq!(
        (said.kind, &said.options[..]),
        (dhcpv6::REPLY, &[NA_LEASED, PD_LEASED].map(String::from)[..])
    );
}

#[test]
fn a_request_for_a_foreign_address_is_not_on_link_rfc8415_18_3_2() {
    for (grant, addresses) in [
        (grant(), &["2001:db8:9::1"][..]),
        (grant(), &[OURS, "2001:db8:9::1"]),
        (nothing(), &[OURS]),
    ] {
        let said = said(
            &grant,
            &to_us(
                dhcpv6::REQUEST,
                vec![na(1, addresses), pd(2, &["2001:db8:9900::/48"])],
            ),
        );
        assert_eq!(said.options[0], "na1 0/0 NotOnLink");
        let prefix = match grant.bindings.delegated().next() {
            None => "pd2 0/0 NoPrefixAvail",
            Some(_) => PD_LEASED,
        };
        assert_eq!(said.options[1], prefix);
    }
}

#[test]
fn a_confirm_says_whether_the_addresses_fit_rfc8415_18_3_3() {
    let confirm = |associations| said(&grant(), &message(dhcpv6::CONFIRM, associations));
    assert_eq!(confirm(vec![na(1, &[OURS])]).options, ["Success"]);
    let foreign = confirm(vec![na(1, &[OURS]), na(3, &["2001:db8:9::1"])]);
    assert_eq!(foreign.options, ["NotOnLink"]);
    for without in [vec![], vec![na(1, &[])], vec![pd(2, &[PREFIX])]] {
        let asked = message(dhcpv6::CONFIRM, without);
        assert_eq!(refusal(&asked, true), "Confirm without an address");
    }
}

#[test]
fn a_renew_extends_and_withdraws_what_is_gone_rfc8415_18_3_4() {
    let renew = |associations| said(&grant(), &to_us(dhcpv6::RENEW, associations)).options;
    assert_eq!(
        renew(vec![na(1, &[OURS]), pd(2, &[PREFIX])]),
        [NA_LEASED, PD_LEASED]
    );
    let gone = renew(vec![
        na(1, &["2001:db8:9::1"]),
        pd(2, &["2001:db8:9900::/48"]),
    ]);
    assert_eq!(gone[0], format!("{NA_LEASED} 2001:db8:9::1=0/0"));
    assert_eq!(gone[1], format!("{PD_LEASED} 2001:db8:9900::/48=0/0"));
    let more = renew(vec![pd(2, &[PREFIX]), pd(3, &[])]);
    assert_eq!(more, [PD_LEASED, "pd3 0/0 NoBinding"]);
}

#[test]
fn a_renew_of_nothing_that_we_have_has_no_binding_rfc8415_18_3_4() {
    let asked = to_us(dhcpv6::RENEW, vec![na(1, &[]), pd(2, &[])]);
    let said = said(&nothing(), &asked);
    assert_eq!(said.options, ["na1 0/0 NoBinding", "pd2 0/0 NoBinding"]);
}

#[test]
fn a_renew_withdraws_what_is_gone_though_nothing_is_left_rfc8415_18_3_4() {
    let asked = to_us(dhcpv6::RENEW, vec![na(1, &[OURS]), pd(2, &[PREFIX])]);
    let said = said(&nothing(), &asked);
    let withdrawn = [
        "na1 0/0 2001:db8:5::7=0/0",
        "pd2 0/0 2001:db8:7700::/56=0/0",
    ];
    assert_eq!(said.options, withdrawn);
}

#[test]
fn a_rebind_extends_or_withdraws_rfc8415_18_3_5() {
    let rebind = |grant: &Ipv6Grant, associations| {
        said(grant, &message(dhcpv6::REBIND, associations)).options
    };
    assert_eq!(
        rebind(&grant(), vec![na(1, &[OURS]), pd(2, &[PREFIX])]),
        [NA_LEASED, PD_LEASED]
    );
    let gone = rebind(
        &nothing(),
        vec![na(1, &[OURS]), pd(2, &[PREFIX]), pd(3, &[])],
    );
    let withdrawn = [
        "na1 0/0 2001:db8:5::7=0/0",
        "pd2 0/0 2001:db8:7700::/56=0/0",
    ];
    assert_eq!(gone, [withdrawn[0], withdrawn[1], "pd3 0/0 NoBinding"]);
}

#[test]
fn an_information_request_gets_settings_alone_rfc8415_18_3_6() {
    let wanted = Opt::OptionRequest(vec![23, 32, 83, 24]);
    let said = said(
        &grant(),
        &message(dhcpv6::INFORMATION_REQUEST, vec![wanted]),
    );
    assert_eq!(said.kind, dhcpv6::REPLY);
    let expected = [
        "DnsServers([2001:db8::53])",
        "InfMaxRt(3600)",
        "InformationRefreshTime(600)",
    ];
    assert_eq!(said.options, expected);
}

#[test]
fn an_information_request_may_come_without_a_client_rfc8415_16_12() {
    let asked = Message {
        kind: dhcpv6::INFORMATION_REQUEST,
        transaction: 1,
        options: Vec::new(),
    };
    assert_eq!(said(&grant(), &asked).options, [""; 0]);
    let asked = message(dhcpv6::INFORMATION_REQUEST, vec![pd(2, &[])]);
    assert_eq!(
        refusal(&asked, true),
        "Information-request with an association"
    );
    let other = message(dhcpv6::INFORMATION_REQUEST, vec![Opt::ServerId(CLIENT)]);
    assert_eq!(refusal(&other, true), "DHCPv6 message to another server");
    let to_us = to_us(dhcpv6::INFORMATION_REQUEST, vec![]);
    assert_eq!(said(&grant(), &to_us).options, [""; 0]);
}

#[test]
fn a_release_and_a_decline_succeed_and_change_nothing_rfc8415_18_3_7_18_3_8() {
    for kind in [dhcpv6::RELEASE, dhcpv6::DECLINE] {
        let ours = said(
            &grant(),
            &to_us(kind, vec![na(1, &[OURS]), pd(2, &[PREFIX])]),
        );
        assert_eq!(ours.options, ["Success"]);
        let foreign = vec![na(1, &["2001:db8:9::1"]), pd(2, &[]), pd(3, &[PREFIX])];
        let foreign = said(&grant(), &to_us(kind, foreign));
        let none = ["na1 0/0 NoBinding", "pd2 0/0 NoBinding"];
        assert_eq!(foreign.options, ["Success", none[0], none[1]]);
        let again = said(&grant(), &message(dhcpv6::SOLICIT, vec![pd(2, &[])]));
        assert_eq!(again.options[0], PD_LEASED);
    }
}

#[test]
fn settings_come_only_if_they_are_asked_for_rfc8415_21_7() {
    let wanted = Opt::OptionRequest(vec![82, 23]);
    let asked = message(dhcpv6::SOLICIT, vec![wanted.clone(), pd(2, &[])]);
    let with = said(&grant(), &asked).options;
    let settings = [
        "DnsServers([2001:db8::53])",
        "SolMaxRt(3600)",
        "Preference(255)",
    ];
    assert_eq!(with[1..], settings);
    let asked = message(dhcpv6::SOLICIT, vec![wanted, pd(2, &[])]);
    assert_eq!(said(&nothing(), &asked).options[1..], settings[1..]);
}

#[test]
fn messages_to_all_servers_must_not_name_one_rfc8415_16_2_16_5_16_7() {
    for kind in [dhcpv6::SOLICIT, dhcpv6::CONFIRM, dhcpv6::REBIND] {
        let why = "DHCPv6 message to all servers that names one";
        assert_eq!(refusal(&to_us(kind, vec![]), true), why);
    }
}

#[test]
fn messages_to_one_server_must_name_us_rfc8415_16_4_16_6_16_8_16_9() {
    for kind in [
        dhcpv6::REQUEST,
        dhcpv6::RENEW,
        dhcpv6::RELEASE,
        dhcpv6::DECLINE,
    ] {
        for server in [None, Some(Opt::ServerId(CLIENT))] {
            let asked = message(kind, server.into_iter().collect());
            assert_eq!(refusal(&asked, true), "DHCPv6 message to another server");
        }
    }
}

#[test]
fn messages_must_have_a_client_with_a_duid_rfc8415_16() {
    for kind in [
        dhcpv6::SOLICIT,
        dhcpv6::CONFIRM,
        dhcpv6::REBIND,
        dhcpv6::REQUEST,
    ] {
        let mut asked = to_us(kind, vec![]);
        asked.options.remove(0);
        if kind != dhcpv6::REQUEST {
            asked.options.clear();
        }
        assert_eq!(refusal(&asked, true), "DHCPv6 message without a client");
        for length in [0, 2, 131] {
            let duid: &[u8] = vec![0; length].leak();
            asked.options.insert(0, Opt::ClientId(duid));
            assert_eq!(refusal(&asked, true), "DHCPv6 client with a malformed DUID");
            asked.options.remove(0);
        }
    }
}

#[test]
fn messages_of_servers_are_discarded_rfc8415_16_3_16_10_16_11() {
    for kind in [dhcpv6::ADVERTISE, dhcpv6::REPLY, dhcpv6::RECONFIGURE] {
        for is_multicast in [true, false] {
            assert_eq!(
                refusal(&to_us(kind, vec![]), is_multicast),
                "DHCPv6 message of a server"
            );
        }
    }
}

#[test]
fn unicast_is_refused_or_discarded_rfc8415_18_4_16() {
    let config = config();
    let grant = grant();
    let server = Server {
        config: &config,
        grant: &grant,
    };
    for kind in [
        dhcpv6::REQUEST,
        dhcpv6::RENEW,
        dhcpv6::RELEASE,
        dhcpv6::DECLINE,
    ] {
        let asked = to_us(kind, vec![pd(2, &[PREFIX])]);
        let answer = server.answer(&asked, false).unwrap();
        let options: Vec<String> = answer.options[2..].iter().map(text).collect();
        assert_eq!(
            (answer.kind, options),
            (dhcpv6::REPLY, vec!["UseMulticast".into()])
        );
    }
    for kind in [
        dhcpv6::SOLICIT,
        dhcpv6::CONFIRM,
        dhcpv6::REBIND,
        dhcpv6::INFORMATION_REQUEST,
    ] {
        let why = "DHCPv6 message to all servers that is unicast";
        assert_eq!(refusal(&message(kind, vec![]), false), why);
    }
}

#[test]
fn an_answer_to_a_home_fits_into_the_least_packet_of_ipv6() {
    let net = |n: u16| Ipv6Net::new(Ipv6Addr::new(0x2001, 0xdb8, n, 0, 0, 0, 0, 0), 48).unwrap();
    let grant = Ipv6Grant {
        dns: [Ipv6Addr::LOCALHOST; 20].into(),
        bindings: bindings(true, (0..62).map(net)),
        ..grant()
    };
    let config = config();
    let server = Server {
        config: &config,
        grant: &grant,
    };
    let duid = [7; 130];
    let mut asked = message(dhcpv6::SOLICIT, vec![na(1, &[]), pd(2, &[])]);
    asked.options[0] = Opt::ClientId(&duid);
    asked.options.push(Opt::OptionRequest(vec![23, 82, 83]));
    let mut bytes = Vec::new();
    server.answer(&asked, true).unwrap().emit(&mut bytes);
    assert!(bytes.len() <= LONGEST_ANSWER, "{} octets", bytes.len());
}

fn any_association() -> impl Strategy<Value = Opt<'static>> {
    let addresses = prop::sample::subsequence(vec![OURS, "2001:db8:9::1"], 0..=2);
    let prefixes = prop::sample::subsequence(vec![PREFIX, "2001:db8:9900::/48"], 0..=2);
    prop_oneof![
        (0u32..4, addresses).prop_map(|(id, addresses)| na(id, &addresses)),
        (0u32..4, prefixes).prop_map(|(id, prefixes)| pd(id, &prefixes)),
    ]
}

proptest! {
    /// Whatever is asked: what an answer gives with a lifetime is the session's, once, and T1, T2, preferred and valid rise.
    #[test]
    fn answers_give_what_the_session_has_and_nothing_else(
        kind in dhcpv6::SOLICIT..=dhcpv6::INFORMATION_REQUEST, associations in prop::collection::vec(any_association(), 0..5),
        names_us: bool, rapid: bool, has: [bool; 2], is_multicast: bool,
    ) {
        let grant = Ipv6Grant {
            bindings: bindings(has[0], has[1].then(|| PREFIX.parse().unwrap())),
            ..grant()
        };
        let config = config();
        let server = Server { config: &config, grant: &grant };
        let mut asked = if names_us { to_us(kind, associations) } else { message(kind, associations) };
        if rapid {
            asked.options.push(Opt::RapidCommit);
        }
        let Ok(answer) = server.answer(&asked, is_multicast) else { return Ok(()) };
        let mut given = Vec::new();
        for (kind, ia) in associations_of(&answer) {
            prop_assert!(associations_of(&asked).iter().any(|(k, i)| (*k, i.id) == (kind, ia.id)));
            prop_assert!(ia.t1 <= ia.t2);
            for option in &ia.options {
                let (lease, preferred, valid) = match option {
                    Opt::Address(a) => ((a.address, 128), a.preferred_lifetime, a.valid_lifetime),
                    Opt::Prefix(p) => ((p.prefix, p.length), p.preferred_lifetime, p.valid_lifetime),
                    _ => continue,
                };
                prop_assert!(preferred <= valid);
                if valid > 0 {
                    prop_assert!(ia.t2 <= preferred);
                    given.push(lease);
                }
            }
        }
        let ours = [server.leases(Kind::Address), server.leases(Kind::Prefix)].concat();
        prop_assert!(given.iter().all(|lease| ours.contains(lease)));
        let distinct: std::collections::BTreeSet<_> = given.iter().collect();
        prop_assert_eq!(distinct.len(), given.len());
    }
}

fn associations_of<'m, 'a>(message: &'m Message<'a>) -> Vec<(Kind, &'m Ia<'a>)> {
    associations(message).collect()
}
