//! gNMI, with Google's gRPC for Python as the client.

use super::{Web, program};
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Debian's own, for which its packages are.
const PYTHON: &str = "/usr/bin/python3";

impl Web {
    /// What comes of these calls, one after the other on one connection.
    pub fn gnmi(&self, calls: &Value) -> Vec<Value> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut peer = Command::new(PYTHON)
            .arg(root.join("e2e/gnmi-peer/peer.py"))
            .arg(root.join("proto").canonicalize().unwrap())
            .arg(&self.gnmi)
            .arg(self.folder().join("web/certificate.pem"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("Debian's Python");
        let mut stdin = peer.stdin.take().unwrap();
        stdin.write_all(calls.to_string().as_bytes()).unwrap();
        drop(stdin);
        let done = peer.wait_with_output().unwrap();
        assert!(done.status.success(), "{done:?}");
        serde_json::from_slice(&done.stdout).unwrap()
    }
}

pub fn bearer(token: &str) -> Value {
    json!({"authorization": format!("Bearer {token}")})
}

pub fn get(who: &Value, path: &str) -> Value {
    json!({"call": "get", "as": who, "request": {"path": [path], "encoding": "JSON_IETF"}})
}

/// The error of a call: its code and its sentence.
pub fn error(told: &Value) -> (&str, &str) {
    let text = |name: &str| told[name].as_str().unwrap_or_default();
    (text("error"), text("detail"))
}

#[test]
fn who_may_what() {
    let web = Web::start();
    let add = ["user", "add", "alice", "--role", "view"];
    let mut adds = program(&web.folder(), &add);
    let mut adds = adds.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = adds.stdin.take().unwrap();
    stdin.write_all(b"correct horse battery\n").unwrap();
    drop(stdin);
    assert!(adds.wait().unwrap().success());
    let right = json!({"username": "alice", "password": "correct horse battery"});
    let wrong = json!({"username": "alice", "password": "correct horse batteri"});
    let support = bearer(&web.token("noc", "support", &[]));
    let gone = bearer(&web.token("gone", "configure", &[]));
    let revoked = program(&web.folder(), &["token", "revoke", "gone"]).status();
    assert!(revoked.unwrap().success());
    let set = json!({"call": "set", "as": support, "request": {"delete": ["/configuration/users[name=a]"]}});
    let told = web.gnmi(&json!([
        {"call": "capabilities", "as": right},
        {"call": "capabilities", "as": wrong},
        {"call": "capabilities"},
        {"call": "capabilities", "as": gone},
        get(&right, "/state/ports"),
        get(&right, "/state/sessions[id=0000000000000007]"),
        get(&right, "/configuration"),
        get(&support, "/state/sessions[id=0000000000000007]/user"),
        set,
        {"call": "silent", "as": support},
    ]));
    assert_eq!(told[0]["gNMIVersion"], "0.10.0");
    assert_eq!(told[0]["supportedModels"].as_array().unwrap().len(), 5);
    for (number, code, says) in [
        (1, "UNAUTHENTICATED", "The user or the password is wrong"),
        (2, "UNAUTHENTICATED", "A token or a password is missing"),
        (3, "UNAUTHENTICATED", "The token is not in force"),
        (5, "PERMISSION_DENIED", "needs the role support"),
        (6, "PERMISSION_DENIED", "needs the role support"),
        (8, "PERMISSION_DENIED", "needs the role configure"),
        (9, "PERMISSION_DENIED", "needs the role configure"),
    ] {
        let (found, detail) = error(&told[number]);
        assert_eq!(found, code, "{number}: {told:?}");
        assert!(detail.contains(says), "{detail}");
    }
    let ports = &told[4][0]["update"]["/state/ports[name=core0][user_plane=up1]"];
    assert_eq!(ports["sluice-state:rx_octets"], "1500");
    assert_eq!(ports["sluice-state:link_up"], true);
    let user = &told[7][0]["update"]["/state/sessions[id=0000000000000007]/user"];
    assert_eq!(user, "home0007");
    let log = web.log().join("\n");
    assert!(log.contains("subscribers are looked at"), "{log}");
    assert!(!log.contains("horse"), "{log}");
}

#[test]
fn data_is_read_by_paths() {
    let web = Web::start();
    let support = bearer(&web.token("noc", "support", &[]));
    let plain = json!({"call": "get", "as": support, "request": {"path": ["/interfaces"], "prefix": {"target": "gw1"}}});
    let told = web.gnmi(&json!([
        get(&support, "/interfaces/interface[name=up1/core0]/state"),
        plain,
        get(&support, "/configuration/user-planes"),
        get(&support, "/state/pools[prefix=100.64.0.0/16]/used"),
        get(&support, "/state/sessions"),
        get(&support, "/state/nothing"),
        get(&support, "/state/acl"),
        get(&support, "/state/ports[name=core9][user_plane=up1]"),
        get(&support, "/state/session-counts/online"),
        {"call": "get", "as": support, "request": {"path": ["/"], "type": "STATE"}},
        {"call": "get", "as": support, "request": {"path": ["/"], "encoding": "PROTO"}},
    ]));
    let state = &told[0][0]["update"]["/interfaces/interface[name=up1/core0]/state"];
    assert_eq!(state["openconfig-interfaces:oper-status"], "UP");
    assert_eq!(state["openconfig-interfaces:counters"]["in-octets"], "1500");
    let update = &told[1][0]["update"]["/interfaces"];
    let octets = &update["interface"][0]["state"]["counters"]["in-octets"];
    assert_eq!(
        (octets, &told[1][0]["target"]),
        (&json!(1500), &json!("gw1"))
    );
    let plane = "/configuration/user-planes[name=up1]";
    let name = &told[2][0]["update"][plane]["sluice-configuration:name"];
    assert_eq!(name, "up1");
    let pool = "/state/pools[name=homes][prefix=100.64.0.0/16]/used";
    assert_eq!(told[3][0]["update"][pool], "20");
    for (number, code, says) in [
        (4, "RESOURCE_EXHAUSTED", "sessions has more than 1000 rows"),
        (
            5,
            "INVALID_ARGUMENT",
            "`nothing` is not known: expected one of sessions, ",
        ),
        (6, "INVALID_ARGUMENT", "`acl` is missing"),
        (7, "NOT_FOUND", "there is no value"),
        (10, "UNIMPLEMENTED", "expected JSON or JSON_IETF"),
    ] {
        let (found, detail) = error(&told[number]);
        assert_eq!(found, code, "{number}: {told:?}");
        assert!(detail.contains(says), "{detail}");
    }
    assert_eq!(told[8][0]["update"]["/state/session-counts/online"], "2");
    let all = told[9][0]["update"].as_object().unwrap();
    let has = |path: &str| all.keys().any(|own| own.starts_with(path));
    assert!(has("/state/alarms") && has("/interfaces"), "{all:?}");
    assert!(has("/components") && has("/network-instances"), "{all:?}");
    assert!(
        !has("/state/sessions[") && !has("/configuration"),
        "{all:?}"
    );
}

/// A subscription, of which so many messages are read.
fn subscribe(who: &Value, mode: &str, until: usize, path: &str, how: &str) -> Value {
    json!({"call": "subscribe", "as": who, "until": until, "request": {
        "mode": mode, "encoding": "JSON_IETF", "subscription": [{"path": path, "mode": how}]}})
}

#[test]
fn components_are_daemons_and_ports() {
    let web = Web::start();
    let viewer = bearer(&web.token("noc", "view", &[]));
    let component = |name: &str| format!("/components/component[name={name}]");
    let told = web.gnmi(&json!([
        get(&viewer, &format!("{}/state", component("up1/core0"))),
        get(&viewer, "/components/component/state/oper-status"),
        // it does not answer
        get(&viewer, &component("up2/core0")),
        subscribe(&viewer, "ONCE", 100, &component("up1"), "SAMPLE"),
        subscribe(&viewer, "STREAM", 8, "/components/component", "SAMPLE"),
    ]));
    let state = &told[0][0]["update"][format!("{}/state", component("up1/core0"))];
    let of_type = &state["openconfig-platform:type"];
    assert_eq!(*of_type, "openconfig-platform-types:PORT");
    assert_eq!(state["openconfig-platform:parent"], "up1");
    let status = |name: &str| {
        let path = format!("{}/state/oper-status", component(name));
        told[1][0]["update"][path].as_str().unwrap_or_default()
    };
    assert!(status("up1").ends_with(":ACTIVE") && status("up2").ends_with(":INACTIVE"));
    assert_eq!(error(&told[2]).0, "NOT_FOUND", "{told:?}");
    let part = format!(
        "{}/subcomponents/subcomponent[name=up1/core0]/name",
        component("up1")
    );
    let mut heard = told[3].as_array().unwrap().iter();
    assert!(
        heard.any(|heard| heard["update"][&part] == "up1/core0"),
        "{told:?}"
    );
    // six rows and that these were all; then samples of them again
    let samples = told[4].as_array().unwrap();
    assert_eq!(
        (samples.len(), &samples[6]),
        (8, &json!("sync")),
        "{told:?}"
    );
}

#[test]
fn network_instances_have_core_ports() {
    let web = Web::start();
    let viewer = bearer(&web.token("noc", "view", &[]));
    let netops = bearer(&web.token("netops", "configure", &[]));
    let instances = "/network-instances/network-instance";
    let port = "/configuration/user-planes[name=up1]/ports[name=core0]";
    let port =
        json!({"path": port, "val": {"json": {"role": "core", "network-instance": "voice"}}});
    let voice =
        json!({"path": "/configuration/network-instances[name=voice]", "val": {"json": {}}});
    let makes = json!({"call": "set", "as": netops, "request": {"update": [voice, port]}});
    // the default instance and that this was all; then what is made: the other instance and its port
    let mut follows = subscribe(&viewer, "STREAM", 5, instances, "ON_CHANGE");
    follows["then"] = json!([makes]);
    let interfaces = format!("{instances}[name=voice]/interfaces");
    let told = web.gnmi(&json!([follows, get(&viewer, &interfaces)]));
    let heard = told[0].as_array().unwrap_or_else(|| panic!("{told:?}"));
    for (name, of_type, at) in [("default", "DEFAULT_INSTANCE", 0), ("voice", "L3VRF", 3)] {
        let path = format!("{instances}[name={name}]/state/type");
        let of_type = format!("openconfig-network-instance-types:{of_type}");
        assert_eq!(heard[at]["update"][path], of_type, "{heard:?}");
    }
    let read = &told[1][0]["update"][interfaces]["openconfig-network-instance:interface"];
    assert_eq!(read[0]["state"]["interface"], "up1/core0", "{told:?}");
}

#[test]
fn a_set_is_one_commit() {
    let web = Web::start();
    let netops = bearer(&web.token("netops", "configure", &[]));
    let set = |request: Value| json!({"call": "set", "as": netops, "request": request});
    let pool = "/configuration/ipv4-pools[name=more]";
    let told = web.gnmi(&json!([
        set(json!({
            "delete": ["/configuration/users[name=nobody]"],
            "update": [{"path": pool, "val": {"json": {"sluice-configuration:prefix": "100.96.0.0/16"}}}],
        })),
        set(json!({"update": [{"path": format!("{pool}/nothing"), "val": {"string_val": "x"}}]})),
        set(json!({"update": [{"path": pool, "val": {"json": {"nothing": 1}}}]})),
        set(json!({"update": [{"path": "/state/ports", "val": {"json": []}}]})),
        set(json!({"delete": ["/configuration/users[name=nobody]"]})),
        set(json!({
            "update": [{"path": format!("{pool}/prefix"), "val": {"string_val": "100.97.0.0/16"}}],
            "extension": [{"commit": {"id": "c1", "commit": {"rollback_duration": {"seconds": "60"}}}}],
        })),
        set(json!({"extension": [{"commit": {"id": "c2", "confirm": {}}}]})),
        set(json!({"extension": [{"commit": {"id": "c1", "confirm": {}}}]})),
        set(json!({"union_replace": [{"path": pool, "val": {"string_val": "x"}}]})),
    ]));
    let deleted = "/configuration/users[name=nobody]";
    assert_eq!(told[0], json!([["DELETE", deleted], ["UPDATE", pool]]));
    for (number, code, says) in [
        (
            1,
            "INVALID_ARGUMENT",
            "/configuration/ipv4-pools[name=more]/nothing: `nothing` is not known",
        ),
        (
            2,
            "INVALID_ARGUMENT",
            "[name=more]: `nothing` is not known here",
        ),
        (3, "INVALID_ARGUMENT", "only what is below /configuration"),
        (6, "FAILED_PRECONDITION", "no commit by gNMI with this id"),
        (8, "UNIMPLEMENTED", "union_replace"),
    ] {
        let (found, detail) = error(&told[number]);
        assert_eq!(found, code, "{number}: {told:?}");
        assert!(detail.contains(says), "{detail}");
    }
    assert_eq!(told[4], json!([["DELETE", deleted]]));
    assert_eq!((&told[5][0][0], &told[7]), (&json!("UPDATE"), &json!([])));
    let log = web.log();
    let commits = log.iter().filter(|line| line.contains("a commit"));
    assert_eq!(commits.count(), 2, "{log:?}");
}

#[test]
fn a_set_that_changes_nothing_succeeds_without_a_commit() {
    let web = Web::start();
    let netops = bearer(&web.token("netops", "configure", &[]));
    let set = |request: &Value| json!({"call": "set", "as": netops, "request": request});
    let pool = "/configuration/ipv4-pools[name=more]";
    let replace =
        json!({"replace": [{"path": pool, "val": {"json": {"prefix": "100.96.0.0/16"}}}]});
    // what is in force is told without its secrets: only the control plane can tell that it is the same
    let password = "/configuration/users[name=alice]/password";
    let secret = json!({"update": [{"path": password, "val": {"string_val": "wonderland"}}]});
    let confirmed = |request: &Value| {
        let mut request = request.clone();
        request["extension"] = json!([{"commit": {"id": "c1", "commit": {}}}]);
        set(&request)
    };
    let told = web.gnmi(&json!([
        set(&replace),
        set(&replace),
        set(&secret),
        set(&secret),
        confirmed(&replace),
        confirmed(&secret),
        set(&json!({"extension": [{"commit": {"id": "c1", "confirm": {}}}]})),
        get(&netops, "/state/versions"),
    ]));
    for number in [0, 1] {
        assert_eq!(told[number], json!([["REPLACE", pool]]), "{told:?}");
        assert_eq!(told[number + 2], json!([["UPDATE", password]]), "{told:?}");
    }
    for (number, says) in [
        (4, "nothing changes"),
        (5, "nothing changes"),
        (6, "no commit"),
    ] {
        let (found, detail) = error(&told[number]);
        assert_eq!(found, "FAILED_PRECONDITION", "{number}: {told:?}");
        assert!(detail.contains(says), "{detail}");
    }
    let versions = told[7][0]["update"].as_object().unwrap();
    assert!(
        versions.keys().eq(["/state/versions[version=9]"]),
        "{versions:?}"
    );
}

#[test]
fn a_set_goes_on_without_its_client() {
    let web = Web::start();
    let netops = bearer(&web.token("netops", "configure", &[]));
    let extension = |action: &str| json!([{"commit": {"id": "c1", action: {}}}]);
    let prefix = "/configuration/ipv4-pools[name=slow]/prefix";
    let told = web.gnmi(&json!([
        {"call": "set", "as": netops, "seconds": 2, "request": {
            "update": [{"path": prefix, "val": {"string_val": "100.96.0.0/16"}}],
            "extension": extension("commit")}},
        // its turn comes when the other is through
        {"call": "set", "as": netops, "request": {"extension": extension("confirm")}},
    ]));
    assert_eq!(error(&told[0]).0, "DEADLINE_EXCEEDED", "{told:?}");
    assert_eq!(told[1], json!([]), "{told:?}");
    let log = web.log();
    let told = |words: &str| log.iter().any(|line| line.contains(words));
    assert!(told("kind=\"gnmi\" result=\"version 8: "), "{log:?}");
}

#[test]
fn a_confirmation_is_of_the_version_that_has_the_id() {
    let web = Web::start();
    let netops = bearer(&web.token("netops", "configure", &[]));
    let set = |prefix: &str, id: &str| {
        let pool = "/configuration/ipv4-pools[name=more]/prefix";
        let mut request = json!({"update": [{"path": pool, "val": {"string_val": prefix}}]});
        if !id.is_empty() {
            request["extension"] = json!([{"commit": {"id": id, "commit": {}}}]);
        }
        json!({"call": "set", "as": netops, "request": request})
    };
    let confirm = |id: &str| {
        let request = json!({"extension": [{"commit": {"id": id, "confirm": {}}}]});
        json!({"call": "set", "as": netops, "request": request})
    };
    let told = web.gnmi(&json!([
        set("100.96.0.0/16", "c1"),
        set("100.97.0.0/16", ""),
        confirm("c1"),
        set("100.98.0.0/16", "c2"),
        confirm("c2"),
        confirm("c2"),
    ]));
    for (number, says) in [
        (2, "version 8, which has this id, is not the newest"),
        (5, "no commit"),
    ] {
        let (found, detail) = error(&told[number]);
        assert_eq!(found, "FAILED_PRECONDITION", "{number}: {told:?}");
        assert!(detail.contains(says), "{detail}");
    }
    assert_eq!(told[4], json!([]), "{told:?}");
    let log = web.log();
    let kept = log.iter().filter(|line| line.contains("a confirmation"));
    let kept: Vec<_> = kept.collect();
    assert_eq!(kept.len(), 1, "{log:?}");
    assert!(
        kept[0].contains("who=\"netops\" result=\"version 10\""),
        "{kept:?}"
    );
}

#[test]
fn what_is_too_much_or_missing_is_refused() {
    let web = Web::start();
    let netops = bearer(&web.token("netops", "configure", &[]));
    let call = |call: &str, request: Value| json!({"call": call, "as": netops, "request": request});
    let target = json!({"target": "x".repeat(257)});
    let right = json!({"target": "x".repeat(256)});
    let ports = |interval: &str| json!([{"path": "/state/ports", "mode": "SAMPLE", "sample_interval": interval}]);
    let rule = "/configuration/acls[name=base]/rules[name=10]";
    let long = format!("/state{}", format!("/{}", "x".repeat(200)).repeat(30));
    let told = web.gnmi(&json!([
        call("get", json!({"path": ["/state/ports"], "prefix": target})),
        call("set", json!({"delete": [rule], "prefix": target})),
        call(
            "subscribe",
            json!({"subscription": ports("0"), "prefix": target})
        ),
        call("subscribe", json!({"subscription": ports("999999999")})),
        call("set", json!({"update": [{"path": rule}]})),
        call(
            "set",
            json!({"replace": [{"path": rule, "val": {"json": {}}}]})
        ),
        get(&netops, &long),
        call("get", json!({"path": ["/state/ports"], "prefix": right})),
    ]));
    for (number, says) in [
        (0, "target has 257 octets"),
        (1, "target has 257 octets"),
        (2, "target has 257 octets"),
        (
            3,
            "sample_interval is 999999999 ns: expected 0, or at least",
        ),
        (4, "rules[name=10]: the value is missing"),
        (5, "rules[name=10]: an entry has no `value`"),
        (6, "/state/xxx"),
    ] {
        let (found, detail) = error(&told[number]);
        assert_eq!(found, "INVALID_ARGUMENT", "{number}: {told:?}");
        assert!(detail.contains(says) && detail.len() <= 1024, "{detail}");
    }
    assert_eq!(told[7][0]["target"], right["target"]);
}

#[test]
fn polls_are_answered_where_only_updates_are_wanted() {
    let web = Web::start();
    let viewer = bearer(&web.token("noc", "view", &[]));
    let subscribe = |mode: &str, polls: usize, until: usize| {
        json!({"call": "subscribe", "as": viewer, "until": until, "polls": polls, "request": {
            "mode": mode, "updates_only": true, "subscription": [{"path": "/state/ports"}]}})
    };
    let told = web.gnmi(&json!([subscribe("POLL", 1, 3), subscribe("ONCE", 0, 9)]));
    let polled = told[0].as_array().unwrap();
    let synced = polled.iter().map(|heard| heard == "sync");
    assert!(synced.eq([true, false, true]), "{polled:?}");
    assert_eq!(told[1], json!(["sync"]));
}

#[test]
fn subscriptions_tell_what_there_is() {
    let web = Web::start();
    let support = bearer(&web.token("noc", "support", &[]));
    let subscribe = |mode: &str, until: usize, subscription: Value, more: Value| {
        let mut call = json!({"call": "subscribe", "as": support, "until": until, "request": {
            "mode": mode, "encoding": "JSON_IETF", "subscription": [subscription]}});
        call.as_object_mut()
            .unwrap()
            .extend(more.as_object().cloned().unwrap());
        call
    };
    let ports = json!({"path": "/state/ports", "mode": "SAMPLE"});
    let told = web.gnmi(&json!([
        subscribe("ONCE", 100, ports.clone(), json!({})),
        subscribe("POLL", 4, ports.clone(), json!({"polls": 2})),
        subscribe("STREAM", 4, ports, json!({})),
        subscribe("STREAM", 1, json!({"path": "/state/sessions"}), json!({})),
        subscribe(
            "STREAM",
            3,
            json!({"path": "/state/alarms", "mode": "ON_CHANGE",
            "heartbeat_interval": "2000000000"}),
            json!({})
        ),
        subscribe(
            "STREAM",
            1,
            json!({"path": "/configuration", "mode": "ON_CHANGE"}),
            json!({})
        ),
        subscribe("ONCE", 1, json!({"path": "/state/sessions"}), json!({})),
    ]));
    let row = "/state/ports[name=core0][user_plane=up1]";
    let octets = |heard: &Value| heard["update"][format!("{row}/rx_octets")].clone();
    assert_eq!(
        (octets(&told[0][0]), &told[0][1]),
        (json!("1500"), &json!("sync"))
    );
    for (number, expected) in [
        (1, [true, false, true, false]),
        (2, [true, false, true, true]),
    ] {
        let heard: Vec<&Value> = told[number].as_array().unwrap().iter().collect();
        let is_row = heard.iter().map(|heard| octets(heard) == "1500");
        assert!(is_row.eq(expected), "{heard:?}");
    }
    assert_eq!(error(&told[3]).0, "UNIMPLEMENTED", "{:?}", told[3]);
    let alarm = "/state/alarms[name=aaa-server-out][resource=first]/severity";
    for heard in [&told[4][0], &told[4][2]] {
        assert_eq!(heard["update"][alarm], "minor", "{heard}");
    }
    let name = "/configuration/user-planes[name=up1]/name";
    assert_eq!(told[5][0]["update"][name], "up1", "{:?}", told[5]);
    assert_eq!(error(&told[6]).0, "RESOURCE_EXHAUSTED", "{:?}", told[6]);
}

#[test]
fn a_stream_ends_with_its_token() {
    let web = Web::start();
    let token = web.token("short", "view", &["--expires", "3s"]);
    let told = web.gnmi(
        &json!([{"call": "subscribe", "as": bearer(&token), "request": {
        "subscription": [{"path": "/state/alarms", "mode": "ON_CHANGE"}]}}]),
    );
    assert_eq!(error(&told[0]).0, "UNAUTHENTICATED", "{told:?}");
}
