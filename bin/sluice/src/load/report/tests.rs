use super::*;
use lab::access_network::Sessions;

/// A home that has sent ten packets in each family, of which so many came to the reflector and back.
fn home(number: u32, is_online: bool, [there, back]: [u64; 2]) -> HomeOutcome {
    let counts = Counts {
        received: back,
        late: 1,
        ..Counts::default()
    };
    HomeOutcome {
        user: format!("home{number}"),
        line: "100.7".into(),
        is_online,
        has_prefix: number % 2 == 1,
        sessions: Sessions::default(),
        sent: [10; 2],
        arrived: Some([counts; 2]),
        reflected: Some([there; 2]),
    }
}

fn outcome() -> Outcome {
    let mut outcome = Outcome {
        homes: vec![home(1, true, [10, 10]), home(2, true, [9, 7])],
        hung_up: Duration::from_secs(30),
        ..Outcome::default()
    };
    for ms in 1..=100 {
        outcome.set_ups.total.record(Duration::from_millis(ms));
        outcome.delays[0].record(Duration::from_micros(10 * ms));
    }
    outcome
}

fn report(outcome: &Outcome, change: impl FnOnce(&mut Run, &mut Status)) -> Report {
    let mut status = Status {
        sent: 40,
        set_ups: 2,
        ever_online: 2,
        last_online: Some(Duration::from_secs(4)),
        ..Status::default()
    };
    let mut run = Run {
        interface: "eth1",
        status: &Status::default(),
        outcome,
        interrupted: false,
        reflected: true,
        cpu: [Duration::from_millis(1), Duration::from_millis(2)],
        memory: 1 << 20,
        set_ups: 2,
        rounds: 2,
        max_loss: None,
        delegation: false,
    };
    change(&mut run, &mut status);
    run.status = &status;
    Report::new(&run)
}

#[test]
fn losses_are_told_apart_by_direction() {
    let outcome = outcome();
    let report = report(&outcome, |_, _| {});
    let ipv4 = report.traffic.as_ref().unwrap().ipv4;
    assert_eq!((ipv4.sent, ipv4.received, ipv4.lost), (20, 17, 3));
    assert_eq!((ipv4.lost_up, ipv4.lost_down), (Some(1), Some(2)));
    assert_eq!((ipv4.lost_percent, ipv4.homes_with_loss), (15.0, 1));
    assert_eq!((ipv4.reordered, ipv4.duplicated), (2, 0));
    assert!(report.is_good(), "loss alone is no failure: {report:?}");
    assert_eq!(report.set_ups.per_second, 0.5);
    assert_eq!(report.tool.cpu_microseconds_per_set_up, 500.0);
    let total = report.set_ups.milliseconds["total"];
    assert!((total.p50 - 50.0).abs() < 2.0 && total.max == 100.0);
}

#[test]
fn where_packets_without_any_answer_were_lost_is_unknown() {
    let mut outcome = outcome();
    outcome.homes.push(home(3, true, [0, 0]));
    let some = report(&outcome, |_, _| {});
    let ipv4 = some.traffic.as_ref().unwrap().ipv4;
    assert_eq!((ipv4.sent, ipv4.lost), (30, 13));
    // Those of the homes that got answers.
    assert_eq!((ipv4.lost_up, ipv4.lost_down), (Some(1), Some(2)));
    assert_eq!(ipv4.homes_without_answer, Some(1));
    assert!(some.notes[0].starts_with("1 home got no IPv4 answer"));

    outcome.homes.drain(..2);
    let none = report(&outcome, |_, _| {});
    let ipv4 = none.traffic.as_ref().unwrap().ipv4;
    assert_eq!((ipv4.received, ipv4.lost), (0, 10));
    assert_eq!((ipv4.lost_up, ipv4.lost_down), (None, None));
    let text = none.lines(None).join("\n");
    let row = text.lines().find(|line| line.starts_with("IPv4")).unwrap();
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(cells[..7], ["IPv4", "10", "10", "(100", "%)", "-", "-"]);
    assert!(!none.is_good());
}

#[test]
fn what_this_machine_did_not_do_is_noted() {
    let outcome = outcome();
    assert!(report(&outcome, |_, _| {}).notes.is_empty());
    let notes = report(&outcome, |_, status| {
        (status.overflowed, status.unsent, status.unsent_packets) = (1, 7, 5);
    })
    .notes;
    assert_eq!(
        notes,
        [
            "this machine was too slow for 1 frame, which may be among the lost packets",
            "7 frames could not be sent, 5 verified packets among them, which count as lost"
        ]
    );
    let home_to_home = report(&outcome, |run, _| run.reflected = false);
    let ipv4 = home_to_home.traffic.unwrap().ipv4;
    assert_eq!((ipv4.lost_up, ipv4.homes_without_answer), (None, None));
}

#[test]
fn homes_without_the_prefix_that_they_ask_for_are_a_problem() {
    let outcome = outcome();
    let report = report(&outcome, |run, _| run.delegation = true);
    assert_eq!((report.online, report.delegated), (2, Some(1)));
    let why = "1 of 2 homes that were online had no delegated prefix";
    assert_eq!(report.problems, [why]);
    assert!(report.lines(None)[0].contains("; 1 with a delegated prefix"));
}

fn problems(outcome: &Outcome, change: fn(&mut Run, &mut Status)) -> Vec<String> {
    report(outcome, change).problems
}

#[test]
fn what_went_wrong_is_a_problem() {
    let good = outcome();
    let mut bad = outcome();
    bad.homes[1].is_online = false;
    bad.homes[1].sessions.last_end = Some("refused: full".into());
    assert_eq!(
        problems(&bad, |_, _| {}),
        ["1 of 2 homes were not online at the end"]
    );
    assert!(problems(&bad, |run, _| run.interrupted = true).is_empty());
    let nobody = problems(&bad, |run, status| {
        (run.interrupted, status.ever_online) = (true, 0);
    });
    assert_eq!(nobody, ["no home came online"]);
    assert!(problems(&good, |run, _| run.max_loss = Some(15.0)).is_empty());
    assert_eq!(problems(&good, |run, _| run.max_loss = Some(14.9)).len(), 2);
    assert_eq!(problems(&good, |_, s| s.counts.corrupt = 1).len(), 1);
    let stray = problems(&good, |_, status| {
        status.counts.misdelivered = 1;
        status.strays.insert("a frame for no home", 1);
    });
    assert_eq!(stray, ["1 stray frame: a frame for no home"]);
    bad.homes[1].sessions.lost = 1;
    assert_eq!(problems(&bad, |_, _| {}).len(), 2);
    bad.homes[0].arrived = Some([Counts::default(); 2]);
    bad.homes[1].arrived = Some([Counts::default(); 2]);
    assert!(problems(&bad, |_, _| {})[2].starts_with("no IPv4 packet has arrived"));
}

#[test]
fn the_tables_fit_a_terminal_and_name_who_failed() {
    let mut outcome = outcome();
    outcome.homes[1].is_online = false;
    outcome.homes[1].sessions.last_end = Some("no answer at stage Discovery".into());
    let report = report(&outcome, |run, status| {
        run.reflected = true;
        status.ends.insert("no answer at stage Discovery".into(), 7);
    });
    let text = report.lines(None).join("\n");
    for word in [
        "home2",
        "no answer at stage Discovery",
        "FAILED",
        "UP",
        "15 %",
    ] {
        assert!(text.contains(word), "{word} is missing in\n{text}");
    }
    for width in [40, 80] {
        let tables = report.lines(Some(width));
        let wide = tables
            .iter()
            .skip(1)
            .find(|line| line.chars().count() > width);
        let is_sentence = |line: &&String| line.starts_with("FAILED") || line.starts_with("note");
        assert_eq!(wide.filter(|line| !is_sentence(line)), None);
    }
}

#[test]
fn the_json_has_every_percentile() {
    let outcome = outcome();
    let report = report(&outcome, |_, _| {});
    let json = serde_json::to_value(&report).unwrap();
    for path in [
        "/set_ups/milliseconds/total/p99",
        "/set_ups/milliseconds/ipcp/p50",
        "/traffic/ipv6/lost_up",
        "/traffic/ipv4/delay_milliseconds/p90",
        "/failed_homes",
        "/tool/cpu_microseconds_per_set_up",
    ] {
        assert!(json.pointer(path).is_some(), "{path} is missing in {json}");
    }
}
