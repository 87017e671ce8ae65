//! The index of behaviours of the access protocols. Each has a case in which it happens, and one in which what must not happen does not.
//! `docs/reference/conformance.md` is written from it: `UPDATE=1` writes it anew.

use std::fmt::Write;
use std::path::{Path, PathBuf};

/// A behaviour that a standard demands.
struct Behaviour {
    /// Where the standard says so.
    section: &'static str,
    /// What happens.
    what: &'static str,
    /// Tests in which it happens.
    positive: &'static [&'static str],
    /// Tests in which somebody does it wrong, or it must not happen.
    negative: &'static [&'static str],
}

const fn of(
    section: &'static str,
    what: &'static str,
    positive: &'static [&'static str],
    negative: &'static [&'static str],
) -> Behaviour {
    Behaviour {
        section,
        what,
        positive,
        negative,
    }
}

/// Chapters of the index.
#[rustfmt::skip]
const INDEX: &[(&str, &[Behaviour])] = &[
    ("VLANs", &[
        of("IEEE 802.1Q §9.6, 802.1ad", "A line is untagged, priority-tagged, or has one or two tags; answers have the tags that it has, EtherTypes and all.",
            &["e2e pppd-vlans", "dataplane/graph/vlans::a_tagged_frame_is_treated_as_the_untagged_one_without_its_tag"],
            &["control/unknown_peers::what_is_not_discovery_of_a_known_place_is_not_answered"]),
    ]),
    ("PPPoE discovery", &[
        of("RFC 2516 §5.1, §5.2", "A PADI is answered by a PADO with AC-Name, the Service-Name that was asked for, and an AC-Cookie.",
            &["session/exchange::from_padi_to_padt", "e2e pppd-discovery"],
            &["session/discovery_tests::what_makes_no_sense_is_ignored"]),
        of("RFC 2516 §5.2", "A service that is not offered gets no PADO, and in a PADR a Service-Name-Error.",
            &["session/discovery_tests::services_are_matched"],
            &["session/discovery_tests::services_are_matched"]),
        of("RFC 2516 §5.2", "Host-Uniq and Relay-Session-Id come back unchanged.",
            &["session/discovery_tests::an_offer_gives_back_what_is_not_ours"],
            &["session/discovery_tests::what_makes_no_sense_is_ignored"]),
        of("RFC 2516 §5.3, appendix A", "A PADR needs the AC-Cookie of its own line, which is not older than its lifetime.",
            &["session/exchange::from_padi_to_padt"],
            &["session/discovery_tests::a_cookie_is_good_for_its_line_and_time_only"]),
        of("RFC 2516 §5.4", "A PADS has a session id that is not 0; a PADS with session id 0 says why there is no session.",
            &["control/plane::homes_come_and_go_and_leave_nothing"],
            &["control/plane::a_full_table_refuses_the_newcomer_alone", "control/plane::a_refusal_of_the_user_plane_reaches_the_home"]),
        of("RFC 2516 §5.5", "A PADT ends its session at once, if it comes from the session's own MAC address and line.",
            &["session/link::a_padt_ends_it_at_once_and_is_not_answered", "session/discovery_tests::termination_goes_both_ways"],
            &["control/plane::a_frame_of_another_home_in_a_session_s_tunnel_is_refused"]),
        of("RFC 2516 appendix A", "Unknown tags are ignored; tags that reach beyond the packet discard it.",
            &["wire/pppoe_tests::known_tags_of_the_wrong_length_are_kept_as_unknown", "wire/pppoe_tests::nothing_is_read_after_end_of_list"],
            &["wire/pppoe_tests::a_tag_beyond_the_packet_is_refused", "wire/pppoe_tests::a_length_beyond_the_frame_is_refused"]),
        of("RFC 4638 §4", "PPP-Max-Payload is agreed on above 1,492 octets and up to what the port can carry; only then an MRU above 1,492 is.",
            &["session/discovery_tests::max_payload_is_agreed_on_only_above_1492_and_up_to_ours", "session/link::mru_1500_after_ppp_max_payload"],
            &["session/lcp::mru_above_1492_only_after_max_payload"]),
        of("TR-101 §3.9", "Circuit id, remote id and line characteristics of the access node are read, and reach RADIUS.",
            &["session/discovery_tests::a_request_says_what_the_access_node_knows", "control/access_loop::rates_and_delays_are_told_in_the_units_of_radius"],
            &["wire/access_loop::options_of_the_wrong_length_drop_no_others", "wire/access_loop::nothing_usable_is_nothing"]),
        of("RFC 2516 §5.3, appendix A", "A PADR that comes again gets the same PADS, and ends nothing.",
            &["control/rivals::a_repeated_padr_gets_the_same_pads_and_ends_nothing"],
            &["control/rivals::a_client_that_begins_anew_replaces_its_session_at_once"]),
        of("RFC 2516 §4", "Several clients on one MAC address have sessions side by side, up to a limit; a router that was switched off and on takes its own place.",
            &["control/rivals::clients_behind_one_mac_address_live_side_by_side_up_to_the_limit", "control/rivals::a_router_that_was_switched_off_and_on_takes_its_own_place"],
            &["control/rivals::a_vlan_and_a_port_have_as_many_sessions_as_they_may", "control/rivals::a_claim_dies_with_its_line"]),
        of("RFC 2516 §5.2", "Who cannot serve a session does not answer a PADI.",
            &["control/plane::homes_come_and_go_and_leave_nothing"],
            &["control/rivals::a_padi_is_not_answered_if_no_session_can_be_had"]),
        of("TR-101 §3.9", "Of several line tags the access node's counts, which is the last one; where the line is not trusted, none.",
            &["session/discovery_tests::the_last_access_line_is_the_access_nodes"],
            &["session/discovery_tests::a_line_that_is_not_trusted_names_itself_by_nothing"]),
    ]),
    ("PPP and LCP", &[
        of("RFC 1661 §4", "The automaton is that of the standard's table.",
            &["session/automaton_tests::the_function_is_the_table"],
            &["session/automaton_tests::the_timer_runs_exactly_where_the_table_has_timeouts"]),
        of("RFC 1661 §4.6", "A Configure-Request is repeated, and given up after Max-Configure.",
            &["session/link::a_silent_peer_is_asked_ten_times_in_thirty_seconds"],
            &["session/link::a_session_that_never_gets_anywhere_is_ended"]),
        of("RFC 1661 §4.6, §5.3", "Nak loops end: after Max-Failure Naks become Rejects, and a peer that goes on is given up.",
            &["session/link::naks_turn_into_rejects_and_in_the_end_the_session_is_given_up"],
            &["session/link::a_peer_that_naks_for_ever_is_given_up"]),
        of("RFC 1661 §5.2", "An Ack counts only if identifier and options are those of the request.",
            &["session/link::the_mru_and_the_magic_number_are_negotiated"],
            &["session/link::an_ack_for_another_request_or_other_options_is_discarded"]),
        of("RFC 1661 §5.6", "Unknown codes are rejected; a Code-Reject of what LCP needs is fatal, of an echo it is not.",
            &["session/link::unknown_codes_and_protocols_are_rejected"],
            &["session/link::a_code_reject_of_what_lcp_needs_is_fatal_and_of_echoes_is_not"]),
        of("RFC 1661 §5.7", "Unknown protocols are rejected while LCP is open, and discarded before.",
            &["session/link::unknown_codes_and_protocols_are_rejected"],
            &["session/authentication::nothing_but_the_proof_counts_before_authentication"]),
        of("RFC 1661 §5.8", "An Echo-Reply carries our own magic number; missed echoes end the session.",
            &["session/link::echoes_carry_our_own_magic_number", "e2e echo-replies"],
            &["session/link::three_missed_echoes_end_the_session", "control/echoes::a_user_plane_of_before_is_not_asked_to_answer"]),
        of("RFC 1661 §5.8", "The user plane asks a silent peer; who answers no request has lost its carrier, and nobody else.",
            &["userplane/keepalive::a_subscriber_who_answers_nothing_is_asked_as_often_as_set_and_then_reported",
              "control/echoes::a_subscriber_who_is_gone_as_the_user_plane_says_has_lost_its_carrier"],
            &["userplane/keepalive::of_131_072_sessions_exactly_the_1000_that_fall_silent_are_found_in_time",
              "userplane/keepalive::a_worker_that_stands_still_makes_nobody_gone"]),
        of("RFC 1661 §6.1", "The peer's MRU is respected, unless it is too small to be meant.",
            &["session/lcp::a_small_mru_is_the_peers_right_but_not_a_tiny_one"],
            &["session/lcp::a_small_mru_is_the_peers_right_but_not_a_tiny_one"]),
        of("RFC 1661 §6.4", "Magic numbers differ; our own in a request is a loop in the end.",
            &["session/link::the_mru_and_the_magic_number_are_negotiated"],
            &["session/link::a_looped_line_is_recognised", "session/state::a_magic_number_of_zero_is_refused_with_a_better_one"]),
        of("RFC 2516 §7", "Field compressions and other options that PPPoE forbids are rejected.",
            &["session/lcp::what_pppoe_forbids_is_rejected_before_anything_is_naked"],
            &["wire/ppp::frames_of_length_0_to_3", "session/link::ppp_frames_of_length_0_to_3_and_their_like_change_nothing"]),
        of("RFC 1661 §4.1", "A Configure-Request on an open link begins PPP anew.",
            &["session/link::a_new_configure_request_restarts_ppp"],
            &["session/network::a_repeated_request_on_an_open_ncp_keeps_the_rules"]),
        of("RFC 1661 §5.5", "A Terminate-Request is acknowledged, and ends the session.",
            &["session/link::the_peer_hangs_up"],
            &["session/link::a_peer_that_hangs_up_while_negotiating_is_not_asked_any_more"]),
        of("RFC 1661 §3.7", "An NCP that closes does not end the link.",
            &["session/network::an_ncp_that_closes_does_not_end_the_link_and_may_come_back"],
            &["session/network::an_ncp_that_closes_does_not_end_the_link_and_may_come_back"]),
    ]),
    ("Authentication", &[
        of("RFC 1334 §2", "PAP, where the policy allows it.",
            &["session/authentication::pap_is_used_when_the_peer_wants_it_and_the_policy_allows", "e2e pppd-pap"],
            &["session/authentication::a_policy_without_pap_refuses_it"]),
        of("RFC 1994 §4.1, §4.2", "CHAP with MD5: responses are checked, verdicts repeated.",
            &["session/authentication::chap_responses_are_checked_and_repeated_verdicts_given", "e2e pppd-chap"],
            &["session/authentication::a_rejected_peer_is_told_and_hung_up_on", "e2e pppd-wrong-password"]),
        of("RFC 1994 §4.1", "A Challenge is repeated, and given up.",
            &["session/authentication::a_challenge_is_repeated_and_then_given_up"],
            &["session/authentication::a_challenge_is_repeated_and_then_given_up"]),
        of("RFC 2759 §3, §4", "MS-CHAPv2, also by a Nak: responses have 49 octets, and a repeated Challenge another identifier.",
            &["session/authentication::a_peer_chooses_mschapv2_by_a_nak", "session/authentication::a_repeated_challenge_of_mschapv2_has_another_identifier", "e2e pppd-mschapv2"],
            &["session/authentication::mschapv2_responses_are_checked_and_repeated_successes_have_the_same_proof", "session/lcp::a_nak_chooses_among_the_protocols_that_are_allowed"]),
        of("RFC 2759 §5, §6", "A Success proves that the password is known, also when it is repeated; a Failure allows no retry.",
            &["session/authentication::mschapv2_responses_are_checked_and_repeated_successes_have_the_same_proof", "e2e pppd-mschapv2"],
            &["session/authentication::a_failure_of_mschapv2_says_that_there_is_no_retry", "control/mschapv2::who_gets_no_proof_is_rejected", "control/mschapv2::a_local_user_comes_in_by_the_right_password_alone"]),
        of("RFC 2759 §8, §9.2", "The digests of MS-CHAPv2.",
            &["wire/mschapv2::the_digests_are_those_of_the_standard", "wire/mschapv2::the_domain_before_a_name_does_not_count"],
            &["wire/mschapv2::a_success_without_a_whole_proof_is_none"]),
        of("RFC 1994 §2", "An open session can be authenticated again.",
            &["session/authentication::an_open_session_is_authenticated_again_and_stays_open", "session/authentication::an_open_session_is_authenticated_again_by_mschapv2_with_another_challenge"],
            &["session/authentication::a_peer_that_is_not_authenticated_by_chap_cannot_be_asked_again"]),
        of("RFC 1661 §3.5", "Before authentication nothing else is negotiated.",
            &["session/authentication::nothing_but_the_proof_counts_before_authentication"],
            &["session/authentication::nothing_but_the_proof_counts_before_authentication"]),
    ]),
    ("IPCP and IPV6CP", &[
        of("RFC 1332 §3.3", "The subscriber gets its address by Nak; another address is not acknowledged.",
            &["session/ipcp::zeros_are_answered_with_the_grant"],
            &["session/ipcp::insisting_ends_in_a_reject", "session/ipcp::a_missing_address_is_asked_for_until_patience_ends"]),
        of("RFC 1877 §1", "Name servers are told by Nak; options that we do not have are rejected.",
            &["session/ipcp::zeros_are_answered_with_the_grant"],
            &["session/ipcp::what_we_do_not_have_is_rejected_first"]),
        of("RFC 5072 §4.1", "Interface identifiers are negotiated: zero, none and ours get a suggestion.",
            &["session/ipv6cp::we_take_the_peers_proposal", "session/state::interface_identifiers_are_those_that_were_agreed_on"],
            &["session/ipv6cp::zero_none_and_ours_get_a_suggestion"]),
        of("RFC 1661 §5.7", "A family that the subscriber does not have is rejected, and the other one works.",
            &["session/network::an_ipv4_subscriber_is_refused_ipv6_and_the_other_way_round"],
            &["session/network::a_peer_without_ipv6_says_so_and_stays"]),
    ]),
    ("Neighbour discovery", &[
        of("RFC 4861 §6.2.4, §6.2.6", "Router Advertisements come at the start, at intervals, and when they are solicited.",
            &["session/network::advertisements_are_repeated", "e2e pppd-ipv6"],
            &["session/network::who_is_not_on_the_link_gets_no_advertisement_and_without_ipv6_nobody_does"]),
        of("RFC 4861 §6.1, §7.1", "Packets with a hop limit below 255, a wrong checksum or bad options are discarded.",
            &["wire/nd_tests::emit_then_parse"],
            &["wire/nd_tests::a_packet_that_crossed_a_router_is_refused", "wire/nd_tests::option_lengths_of_zero_and_beyond_the_end_are_refused"]),
        of("RFC 4861 §7.2.4", "The gateway answers a Neighbor Solicitation for its own address, and for no other.",
            &["session/network::the_gateway_answers_for_its_own_address_only"],
            &["session/network::the_gateway_answers_for_its_own_address_only"]),
    ]),
    ("DHCPv6", &[
        of("RFC 8415 §18.3.1", "A Solicit is answered by an Advertise with the address and the prefix of the session; with Rapid Commit by a Reply.",
            &["session/dhcpv6_tests::a_solicit_is_advertised_both_kinds_rfc8415_18_3_1", "session/dhcpv6_tests::rapid_commit_gets_a_reply_at_once_rfc8415_18_3_1"],
            &["session/dhcpv6_tests::without_leases_each_association_is_told_so_rfc8415_18_3_9", "session/dhcpv6_tests::wishes_in_a_solicit_are_passed_over_rfc8415_18_3_1"]),
        of("RFC 8415 §18.3.2", "A Request gets what was offered; an address of another link is NotOnLink.",
            &["session/dhcpv6_tests::a_request_gets_what_was_offered_rfc8415_18_3_2"],
            &["session/dhcpv6_tests::a_request_for_a_foreign_address_is_not_on_link_rfc8415_18_3_2"]),
        of("RFC 8415 §18.3.3", "A Confirm is told whether its addresses fit the link.",
            &["session/dhcpv6_tests::a_confirm_says_whether_the_addresses_fit_rfc8415_18_3_3"],
            &["session/dhcpv6_tests::a_confirm_says_whether_the_addresses_fit_rfc8415_18_3_3"]),
        of("RFC 8415 §18.3.4, §18.3.5", "Renew and Rebind extend leases, and withdraw what is gone.",
            &["session/dhcpv6_tests::a_renew_extends_and_withdraws_what_is_gone_rfc8415_18_3_4", "session/dhcpv6_tests::a_rebind_extends_or_withdraws_rfc8415_18_3_5"],
            &["session/dhcpv6_tests::a_renew_of_nothing_that_we_have_has_no_binding_rfc8415_18_3_4", "session/dhcpv6_tests::a_renew_withdraws_what_is_gone_though_nothing_is_left_rfc8415_18_3_4"]),
        of("RFC 8415 §18.3.6", "An Information-request gets settings alone.",
            &["session/dhcpv6_tests::an_information_request_gets_settings_alone_rfc8415_18_3_6"],
            &["session/dhcpv6_tests::settings_come_only_if_they_are_asked_for_rfc8415_21_7"]),
        of("RFC 8415 §18.3.7, §18.3.8", "Release and Decline succeed; the session keeps what it has.",
            &["session/dhcpv6_tests::a_release_and_a_decline_succeed_and_change_nothing_rfc8415_18_3_7_18_3_8"],
            &["session/dhcpv6_tests::answers_give_what_the_session_has_and_nothing_else"]),
        of("RFC 8415 §18.3.11, §20.4", "A client that takes Reconfigure is told of a changed lease, with the key of its session.",
            &["session/dhcpv6::a_changed_prefix_is_told_by_reconfigure_until_the_client_renews_rfc8415_18_3_11"],
            &["session/dhcpv6::a_client_that_takes_no_reconfigure_gets_neither_key_nor_message", "session/dhcpv6::a_client_that_does_not_answer_gets_eight_of_them_rfc8415_7_6",
                "session/dhcpv6::an_information_request_does_not_end_a_reconfigure_that_asks_for_a_renew_rfc8415_18_3_11", "session/dhcpv6::a_reconfigure_ends_with_ipv6cp"]),
        of("RFC 8415 §16", "Messages of servers, for other servers, without client or by unicast are discarded or refused.",
            &["session/dhcpv6_tests::an_information_request_may_come_without_a_client_rfc8415_16_12"],
            &["session/dhcpv6_tests::messages_of_servers_are_discarded_rfc8415_16_3_16_10_16_11", "session/dhcpv6_tests::messages_to_one_server_must_name_us_rfc8415_16_4_16_6_16_8_16_9", "session/dhcpv6_tests::unicast_is_refused_or_discarded_rfc8415_18_4_16"]),
        of("RFC 8415 §6.3", "The route of a delegated prefix is there before the prefix is told, and as long as the session.",
            &["session/dhcpv6::a_prefix_is_told_by_dhcpv6_only_when_its_rules_are_installed", "control/delegated::a_delegated_prefix_of_a_pool_is_there_before_the_family_opens_and_as_long_as_the_session", "e2e pppd-dhcpv6"],
            &["control/delegated::without_a_pool_nothing_is_delegated_and_without_a_free_prefix_the_session_goes_on"]),
        of("RFC 4861 §4.2", "The M and O flags of Router Advertisements say what DHCPv6 has.",
            &["session/dhcpv6::flags_of_advertisements_say_what_dhcpv6_has"],
            &["session/dhcpv6::flags_of_advertisements_say_what_dhcpv6_has"]),
        of("RFC 8415 §18.2", "Routers that stand in homes get what they ask for, whatever else they ask, and find nothing in the answers that their rules refuse.",
            &["session/routers::openwrt_asks_renews_rebinds_and_gives_back", "session/routers::openwrt_renews_when_it_is_told_to", "session/routers::a_fritzbox_has_its_prefix_after_two_messages_or_four",
                "e2e pppd-dhcpv6"],
            &["session/routers::openwrt_settles_for_a_prefix_where_there_is_no_address"]),
        of("RFC 8200 §8.1", "DHCPv6 with a wrong checksum or address is discarded.",
            &["wire/dhcpv6_tests::emit_then_parse"],
            &["session/dhcpv6::dhcpv6_with_a_wrong_checksum_or_address_is_discarded", "wire/dhcpv6_tests::options_of_a_wrong_length_refuse_the_message"]),
    ]),
    ("Addresses and the packet path", &[
        of("ours", "What lets a subscriber use an address is sent when the user plane has its rules.",
            &["session/network::the_address_is_released_only_when_its_rules_are_installed", "session/network::the_prefix_is_released_only_when_its_rules_are_installed"],
            &["session/network::a_peer_that_changes_its_mind_while_rules_are_installed_is_corrected"]),
        of("BCP 38, RFC 3704 §2", "A source address that the subscriber does not have is dropped.",
            &["e2e pppd-ipv6"],
            &["e2e spoofing"]),
        of("RFC 3704 §2.2, §2.4", "Where a core port says so, a source from the core needs a route, or one back by that port. A subscriber's comes from no core.",
            &["dataplane/graph/sources::a_route_back_by_several_neighbours_or_by_an_unresolved_one_is_one", "dataplane/graph/sources::a_port_and_its_subinterfaces_have_checks_of_their_own", "e2e core-sources"],
            &["dataplane/graph/sources::every_source_in_every_mode_is_treated_as_the_model_says", "e2e core-sources"]),
        of("RFC 1812 §5.3.7, RFC 6890", "Packets whose source or destination no packet may have are not forwarded.",
            &["dataplane/graph/cases::every_kind_of_packet_from_the_core_is_treated_as_the_model_says"],
            &["dataplane/graph/sources::every_source_in_every_mode_is_treated_as_the_model_says", "e2e core-sources"]),
        of("RFC 7126 §4.3, §4.4", "Packets with a source route are dropped unless the operator wants otherwise; other options pass.",
            &["dataplane/nodes/ip::source_routes_are_found_among_options", "dataplane/graph/sources::the_setting_of_options_is_changed_while_packets_pass"],
            &["dataplane/nodes/ip::source_routes_are_found_among_options", "e2e core-sources"]),
        of("RFC 5095 §4.2", "Packets with a routing header of type 0 are dropped, and with no other.",
            &["dataplane/nodes/ip::a_routing_header_of_type_0_is_refused_and_no_other"],
            &["dataplane/nodes/ip::a_routing_header_of_type_0_is_refused_and_no_other"]),
        of("RFC 1661 §5.8", "A silent subscriber is given up, and what it had is released.",
            &["control/plane::a_silent_home_is_given_up"],
            &["session/state::silence_that_is_excused_does_not_end_the_session", "control/plane::silence_counts_for_nothing_while_the_user_plane_cannot_be_reached"]),
    ]),
];

fn root() -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).to_owned()
}

/// Files in which a test of this name may be: `session/link::name`, or the case `e2e name`.
fn files(test: &str) -> Vec<PathBuf> {
    if let Some(case) = test.strip_prefix("e2e ") {
        return vec![root().join(format!("e2e/src/cases/{}.rs", case.replace('-', "_")))];
    }
    let (file, _) = test.split_once("::").expect("a test has a file");
    let (room, file) = file.split_once('/').expect("a test has a room");
    let places = ["src", "src/engine/tests", "tests", "tests/behaviour"].into_iter();
    let files = places.map(|place| root().join(format!("crates/{room}/{place}/{file}.rs")));
    files.collect()
}

fn is_there(test: &str) -> bool {
    let name = test.split_once("::").map_or("", |(_, name)| name);
    let texts = files(test)
        .into_iter()
        .filter_map(|file| std::fs::read_to_string(file).ok());
    let mut texts = texts;
    match name.is_empty() {
        true => texts.next().is_some(),
        false => texts.any(|text| text.contains(&format!("fn {name}("))),
    }
}

#[test]
fn every_behaviour_has_its_cases_positive_and_negative() {
    for behaviour in INDEX.iter().flat_map(|(_, behaviours)| *behaviours) {
        for (kind, tests) in [
            ("positive", behaviour.positive),
            ("negative", behaviour.negative),
        ] {
            assert!(!tests.is_empty(), "no {kind} case: {}", behaviour.what);
            let missing = tests.iter().find(|test| !is_there(test));
            assert_eq!(missing, None, "{kind} case of: {}", behaviour.what);
        }
    }
}

fn page() -> String {
    let mut out = String::from(
        "# Conformance\n\nWhat the access protocols demand, and the tests that show it: a *positive* case in which it happens, and a *negative* \
         one in which\nsomebody does it wrong or it must not happen. `session/link::name` is a test in `crates/session`, `e2e name` an \
         end-to-end case with\nreal peers. RADIUS has a table of its own, attribute by attribute: [radius.md](radius.md). This page is \
         written by\n`crates/session/tests/conformance.rs`, which fails if a behaviour is without its cases.\n",
    );
    for (chapter, behaviours) in INDEX {
        write!(
            out,
            "\n## {chapter}\n\n| standard | behaviour | positive | negative |\n|---|---|---|---|\n"
        )
        .unwrap();
        for behaviour in *behaviours {
            let list = |tests: &[&str]| {
                let tests: Vec<String> = tests.iter().map(|test| format!("`{test}`")).collect();
                tests.join(", ")
            };
            let Behaviour {
                section,
                what,
                positive,
                negative,
            } = behaviour;
            writeln!(
                out,
                "| {section} | {what} | {} | {} |",
                list(positive),
                list(negative)
            )
            .unwrap();
        }
    }
    out
}

#[test]
fn the_page_of_the_manual_is_that_of_the_index() {
    let file = root().join("docs/reference/conformance.md");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&file, page()).unwrap();
    }
    let written = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        written == page(),
        "write it anew: UPDATE=1 cargo test -p session --test conformance"
    );
}
