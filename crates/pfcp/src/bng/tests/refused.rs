//! Rules that a user plane refuses, and why.
use super::*;

#[test]
fn settings_that_nobody_can_carry_out_are_refused() {
    let refused_settings = |settings: Vec<(u8, Vec<u8>)>| {
        let mut request = spec().establish();
        let far = request.create_fars.iter_mut().find(|far| far.far_id == 4);
        let parameters = far.and_then(|far| far.forwarding_parameters.as_mut());
        parameters.expect("a way to the subscriber").settings = Some(Settings(settings));
        refused(request)
    };
    for settings in [
        vec![(5, vec![8])],       // a priority that no tag has
        vec![(5, vec![])],        // no value
        vec![(5, vec![1, 2])],    // octets are left over
        vec![(200, vec![1])],     // of a later version
        vec![(1, vec![1, 0, 5])], // the MTU has an element
    ] {
        let rejection = refused_settings(settings);
        let far = Some(FailedRule::Far(4));
        assert_eq!(
            (rejection.offending_ie, rejection.failed_rule),
            (Some(own::SETTINGS), far)
        );
    }
}

/// Changes one thing of a good request and states what is answered.
fn case(offending: IeId, cause: Cause, change: impl FnOnce(&mut SessionEstablishmentRequest)) {
    let mut request = spec().establish();
    assert!(
        RuleSet::establish(request.clone())
            .unwrap()
            .decode()
            .is_ok()
    );
    change(&mut request);
    let rejection = refused(request);
    assert_eq!(
        (rejection.cause, rejection.offending_ie),
        (cause, Some(offending)),
        "{rejection}"
    );
}

fn far(request: &mut SessionEstablishmentRequest, id: u32) -> &mut CreateFar {
    request
        .create_fars
        .iter_mut()
        .find(|far| far.far_id == id)
        .unwrap()
}

const FAILED: Cause = Cause::RULE_CREATION_FAILURE;

#[test]
fn references_to_nothing_are_refused() {
    case(ie::FAR_ID, Cause::CONDITIONAL_IE_MISSING, |r| {
        pdr(r, 3).far_id = None
    });
    case(ie::FAR_ID, FAILED, |r| pdr(r, 3).far_id = Some(99));
    case(ie::TRAFFIC_ENDPOINT_ID, FAILED, |r| {
        pdr(r, 3).pdi.traffic_endpoints = vec![99]
    });
    case(ie::URR_ID, FAILED, |r| pdr(r, 3).urr_ids = vec![99]);
    case(ie::QER_ID, FAILED, |r| pdr(r, 3).qer_ids = vec![99]);
    case(ie::TRAFFIC_ENDPOINT_ID, FAILED, |r| {
        far(r, 4)
            .forwarding_parameters
            .as_mut()
            .unwrap()
            .linked_traffic_endpoint = Some(99);
    });
    case(ie::PDR_ID, FAILED, |r| pdr(r, 4).pdr_id = 3);
}

#[test]
fn contradictions_are_refused() {
    case(ie::TRAFFIC_ENDPOINT_ID, FAILED, |r| {
        endpoint(r, 2).c_tag = Some(VlanTag::vid(8))
    });
    case(bbf_ie::PPPOE_SESSION_ID, FAILED, |r| {
        endpoint(r, 5).pppoe_session_id = Some(9)
    });
    case(ie::UE_IP_ADDRESS, FAILED, |r| {
        endpoint(r, 3).ue_ip_addresses = vec![UeIpAddress::v4([100, 64, 0, 3].into())];
    });
    // An address that may be sent from, but is not sent to.
    case(ie::UE_IP_ADDRESS, FAILED, |r| {
        r.create_pdrs.retain(|pdr| pdr.pdr_id != 4)
    });
    case(ie::UE_IP_ADDRESS, FAILED, |r| {
        pdr(r, 3).pdi.ppp_protocols = vec![PppProtocol::Specific(0x0057)]
    });
    case(ie::PRECEDENCE, FAILED, |r| pdr(r, 5).precedence = 200);
    case(bbf_ie::MTU, FAILED, |r| {
        far(r, 7).forwarding_parameters.as_mut().unwrap().mtu = Some(1480)
    });
    case(ie::NETWORK_INSTANCE, FAILED, |r| {
        endpoint(r, 6).network_instance = Some("other".to_owned())
    });
}

#[test]
fn what_is_missing_is_named() {
    let missing = Cause::CONDITIONAL_IE_MISSING;
    case(bbf_ie::LOGICAL_PORT, missing, |r| {
        endpoint(r, 1).logical_port = None
    });
    case(ie::MAC_ADDRESS, missing, |r| {
        endpoint(r, 1).mac_address = None
    });
    case(bbf_ie::PPPOE_SESSION_ID, missing, |r| {
        endpoint(r, 1).pppoe_session_id = None
    });
    case(ie::F_TEID, missing, |r| endpoint(r, 4).f_teid = None);
    case(ie::MEASUREMENT_PERIOD, missing, |r| {
        r.create_urrs[0].measurement_period = None
    });
    case(ie::CREATE_PDR, missing, |r| {
        r.create_pdrs.retain(|pdr| pdr.pdr_id != 1)
    });
}

#[test]
fn what_nothing_enforces_is_refused() {
    let rate = BitRate {
        uplink_kbps: 0,
        downlink_kbps: 1,
    };
    case(ie::MBR, FAILED, |r| {
        r.create_qers[0].maximum_bit_rate = Some(rate)
    });
    case(ie::GBR, FAILED, |r| {
        r.create_qers[0].guaranteed_bit_rate = Some(BitRate {
            uplink_kbps: (1 << 40) - 1,
            downlink_kbps: 0,
        })
    });
    case(ie::GATE_STATUS, FAILED, |r| {
        r.create_qers[0].gate_status.uplink_open = false
    });
    case(ie::REPORTING_TRIGGERS, FAILED, |r| {
        r.create_urrs[0].reporting_triggers = ReportingTriggers::VOLUME_QUOTA;
    });
    case(ie::APPLY_ACTION, FAILED, |r| {
        far(r, 4).apply_action = ApplyAction::BUFF
    });
    case(ie::ACTIVATE_PREDEFINED_RULES, FAILED, |r| {
        pdr(r, 3).predefined_rules = vec!["gold".to_owned()]
    });
    case(ie::F_TEID, Cause::INVALID_F_TEID_ALLOCATION_OPTION, |r| {
        endpoint(r, 4).f_teid = Some(FTeid::default())
    });
    case(ie::SDF_FILTER, FAILED, |r| {
        pdr(r, 5).pdi.sdf_filters[0].flow_description =
            Some("permit out ip from any to any".to_owned());
    });
    case(ie::PDN_TYPE, Cause::SERVICE_NOT_SUPPORTED, |r| {
        r.pdn_type = Some(PdnType::Ipv4v6)
    });
    case(ie::S_TAG, FAILED, |r| {
        endpoint(r, 1).s_tag = Some(VlanTag {
            pcp: Some(3),
            ..VlanTag::vid(100)
        })
    });
    case(ie::FRAMED_ROUTE, FAILED, |r| {
        endpoint(r, 1).framed_routes = vec!["10.0.0.0/8".to_owned()]
    });
    case(ie::UE_IP_ADDRESS, FAILED, |r| {
        endpoint(r, 6).ue_ip_addresses = vec![UeIpAddress::v6("2001:db8::".parse().unwrap(), 56)];
    });
    case(ie::CREATE_URR, FAILED, |r| {
        let second = CreateUrr {
            urr_id: 2,
            ..r.create_urrs[0].clone()
        };
        r.create_urrs.push(second);
    });
}

#[test]
fn a_refused_modification_changes_nothing() {
    let rules = established(spec().establish_control());
    let request = SessionModificationRequest {
        remove_pdrs: vec![RemovePdr { pdr_id: 1 }, RemovePdr { pdr_id: 99 }],
        ..Default::default()
    };
    let rejection = rules.modify(&request).unwrap_err();
    assert_eq!(rejection.failed_rule, Some(FailedRule::Pdr(99)));
    assert_eq!(rules, established(spec().establish_control()));
}

#[test]
fn a_user_plane_that_should_send_echo_requests_itself_refuses() {
    let mut request = spec().establish();
    let connectivity = request.lcp_connectivity.as_mut().expect("a magic number");
    connectivity.timers = Some(VerificationTimers {
        interval: 30,
        count: 3,
    });
    let refusal = RuleSet::establish(request).unwrap_err();
    assert_eq!(refusal.cause, Cause::SERVICE_NOT_SUPPORTED);
    assert_eq!(refusal.offending_ie, Some(bbf_ie::PPP_LCP_CONNECTIVITY));
}
