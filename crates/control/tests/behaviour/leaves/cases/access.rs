//! Cases of the settings of access profiles.

use super::super::Case;
use super::super::probes::*;
use super::{beside, case};

pub(super) fn cases() -> Vec<Case> {
    vec![
        case(
            "access-profiles pppoe ac-name",
            ["alpha", "beta"],
            ["alpha", "beta"],
            offer,
        ),
        case(
            "access-profiles pppoe service-names",
            ["gamma", "delta"],
            ["gamma", "delta"],
            offer,
        ),
        case(
            "access-profiles pppoe service-profiles",
            ["slow", "slower"],
            ["slow: 1300 slower: 1492", "slow: 1492 slower: 1200"],
            chooses,
        ),
        case(
            "access-profiles pppoe pado-delay",
            ["200", "1000"],
            ["[200, 200, 200]", "[1000, 1000, 1000]"],
            offered_after,
        ),
        beside(
            &["set limits sessions 4"],
            case(
                "access-profiles pppoe pado-delay-full",
                ["1000", "4000"],
                ["[0, 250, 500]", "[0, 1000, 2000]"],
                offered_after,
            ),
        ),
        case(
            "access-profiles pppoe max-mru",
            ["1400", "1300"],
            ["[1, 4, 5, 120", "[1, 4, 5, 20"],
            wants,
        ),
        case(
            "access-profiles pppoe authentication",
            ["pap", "chap"],
            ["192, 35", "194, 35"],
            authentication,
        ),
        case(
            "access-profiles pppoe echo-interval",
            ["5", "1"],
            ["often", "always"],
            echoes,
        ),
        case(
            "access-profiles pppoe echo-failures",
            ["1", "9"],
            ["soon", "late"],
            gives_up,
        ),
        case(
            "access-profiles pppoe restart-interval",
            ["1", "9"],
            ["every 1 s", "every 9 s"],
            connects_in_silence,
        ),
        case(
            "access-profiles pppoe max-configure",
            ["2", "4"],
            ["2 requests", "4 requests"],
            connects_in_silence,
        ),
        beside(
            &["set access-profiles pppoe setup-timeout 5"],
            case(
                "access-profiles pppoe max-terminate",
                ["1", "4"],
                ["1 goodbyes", "4 goodbyes"],
                connects_in_silence,
            ),
        ),
        case(
            "access-profiles pppoe max-failure",
            ["1", "3"],
            ["1 naks", "3 naks"],
            insists,
        ),
        case(
            "access-profiles pppoe setup-timeout",
            ["5", "10"],
            ["goodbye after 5 s", "goodbye after 10 s"],
            connects_in_silence,
        ),
        case(
            "access-profiles pppoe setup-back-off after",
            ["2", "4"],
            ["2 answers", "4 answers"],
            fails_again_and_again,
        ),
        case(
            "access-profiles pppoe setup-back-off first",
            ["10", "20"],
            ["then after 10 s", "then after 20 s"],
            fails_again_and_again,
        ),
        case(
            "access-profiles pppoe setup-back-off longest",
            ["15", "30"],
            ["after 15 s at most", "after 30 s at most"],
            fails_again_and_again,
        ),
        case(
            "access-profiles pppoe lock-out after",
            ["1", "3"],
            ["1 answers", "3 answers"],
            fails_again_and_again,
        ),
        beside(
            &["set access-profiles pppoe lock-out after 2"],
            case(
                "access-profiles pppoe lock-out time",
                ["70", "100"],
                ["then after 70 s", "then after 100 s"],
                fails_again_and_again,
            ),
        ),
        case(
            "access-profiles pppoe router-advertisements interval",
            ["60", "4"],
            ["seldom", "often"],
            advertised_often,
        ),
        case(
            "access-profiles pppoe router-advertisements router-lifetime",
            ["900", "0"],
            ["router 900", "router 0"],
            advertised,
        ),
        case(
            "access-profiles pppoe router-advertisements valid-lifetime",
            ["20000", "30000"],
            ["valid 20000", "valid 30000"],
            advertised,
        ),
        case(
            "access-profiles pppoe router-advertisements preferred-lifetime",
            ["2000", "3000"],
            ["preferred 2000", "preferred 3000"],
            advertised,
        ),
        case(
            "access-profiles pppoe server-group",
            ["second", "third"],
            ["192.0.2.10:1812", "192.0.2.11:1812"],
            asks,
        ),
        beside(
            &["set access-profiles pppoe server-group radius"],
            case(
                "access-profiles pppoe fallback",
                ["local-users", "last-policy"],
                [
                    "[\"local-users\", \"local-users\"]",
                    "[\"last-policy\", \"no\"]",
                ],
                falls_back,
            ),
        ),
        beside(
            &[
                "set access-profiles pppoe server-group radius",
                "set access-profiles pppoe fallback last-policy",
            ],
            case(
                "access-profiles pppoe fallback-time",
                ["2", "1"],
                ["110 minutes", "50 minutes"],
                falls_back_after,
            ),
        ),
        case(
            "access-profiles pppoe subscriber-profile",
            ["slow", "slower"],
            ["mtu=1300", "mtu=1200"],
            has,
        ),
        case(
            "access-profiles pppoe subscriber-identity",
            ["user-name", "line"],
            ["4", "1"],
            subscribers,
        ),
        case(
            "access-profiles pppoe sessions-per-mac",
            ["2", "3"],
            ["2", "3"],
            behind_one_mac,
        ),
        case(
            "access-profiles pppoe trust-line-tags",
            ["false", "true"],
            ["access0.100.1", "olt1"],
            names_itself,
        ),
        case(
            "access-profiles pppoe sessions-per-vlan",
            ["1", "3"],
            ["1", "3"],
            from_one_line,
        ),
        case(
            "access-profiles pppoe sessions-per-port",
            ["1", "2"],
            ["1", "2"],
            come_in,
        ),
        case(
            "access-profiles pppoe sessions-per-subscriber",
            ["1", "3"],
            ["1", "3"],
            from_one_line,
        ),
        case(
            "access-profiles pppoe sessions-per-user",
            ["1", "3"],
            ["1", "3"],
            as_one_user,
        ),
        beside(
            &["set subscriber-profiles home delegated-pools lans"],
            case(
                "access-profiles pppoe dhcpv6-preferred-lifetime",
                ["600", "1200"],
                ["preferred 600", "preferred 1200"],
                leases,
            ),
        ),
        beside(
            &["set subscriber-profiles home delegated-pools lans"],
            case(
                "access-profiles pppoe dhcpv6-valid-lifetime",
                ["20000", "30000"],
                ["valid 20000", "valid 30000"],
                leases,
            ),
        ),
    ]
}
