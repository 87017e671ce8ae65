//! Compares the function with the table of RFC 1661 §4.1, typed as the RFC prints it.
use super::*;

const STATES: [State; 10] = [
    State::Initial,
    State::Starting,
    State::Closed,
    State::Stopped,
    State::Closing,
    State::Stopping,
    State::ReqSent,
    State::AckRcvd,
    State::AckSent,
    State::Opened,
];

/// Rows are events, columns the states 0 to 9; `-` marks an event that cannot occur.
const TABLE: &str = "
Up    2       irc,scr/6 -       -             -      -      -          -          -          -
Down  -       -         0       tls/1         0      1      1          1          1          tld/1
Open  tls/1   1         irc,scr/6 3           5      5      6          7          8          9
Close 0       tlf/0     2       2             4      4      irc,str/4  irc,str/4  irc,str/4  tld,irc,str/4
TO+   -       -         -       -             str/4  str/5  scr/6      scr/6      scr/8      -
TO-   -       -         -       -             tlf/2  tlf/3  tlf/3      tlf/3      tlf/3      -
RCR+  -       -         sta/2   irc,scr,sca/8 4      5      sca/8      sca,tlu/9  sca/8      tld,scr,sca/8
RCR-  -       -         sta/2   irc,scr,scn/6 4      5      scn/6      scn/7      scn/6      tld,scr,scn/6
RCA   -       -         sta/2   sta/3         4      5      irc/7      scr/6      irc,tlu/9  tld,scr/6
RCN   -       -         sta/2   sta/3         4      5      irc,scr/6  scr/6      irc,scr/8  tld,scr/6
RTR   -       -         sta/2   sta/3         sta/4  sta/5  sta/6      sta/6      sta/6      tld,zrc,sta/5
RTA   -       -         2       3             tlf/2  tlf/3  6          6          8          tld,scr/6
RUC   -       -         scj/2   scj/3         scj/4  scj/5  scj/6      scj/7      scj/8      scj/9
RXJ+  -       -         2       3             4      5      6          6          8          9
RXJ-  -       -         tlf/2   tlf/3         tlf/2  tlf/3  tlf/3      tlf/3      tlf/3      tld,irc,str/5
RXR   -       -         2       3             4      5      6          7          8          ser/9
";

fn event(name: &str) -> Event {
    match name {
        "Up" => Event::Up,
        "Down" => Event::Down,
        "Open" => Event::Open,
        "Close" => Event::Close,
        "TO+" => Event::Timeout,
        "TO-" => Event::LastTimeout,
        "RCR+" => Event::GoodRequest,
        "RCR-" => Event::BadRequest,
        "RCA" => Event::Ack,
        "RCN" => Event::Nak,
        "RTR" => Event::TerminateRequest,
        "RTA" => Event::TerminateAck,
        "RUC" => Event::UnknownCode,
        "RXJ+" => Event::PermittedReject,
        "RXJ-" => Event::FatalReject,
        "RXR" => Event::Echo,
        _ => panic!("{name}"),
    }
}

fn action(name: &str) -> Actions {
    match name {
        "tld" => Actions::TLD,
        "tlu" => Actions::TLU,
        "tls" => Actions::TLS,
        "tlf" => Actions::TLF,
        "irc" => Actions::IRC,
        "zrc" => Actions::ZRC,
        "scr" => Actions::SCR,
        "sca" => Actions::SCA,
        "scn" => Actions::SCN,
        "str" => Actions::STR,
        "sta" => Actions::STA,
        "scj" => Actions::SCJ,
        "ser" => Actions::SER,
        _ => panic!("{name}"),
    }
}

#[test]
fn the_function_is_the_table() {
    let rows: Vec<_> = TABLE.lines().filter(|l| !l.is_empty()).collect();
    assert_eq!(rows.len(), 16);
    for row in rows {
        let mut cells = row.split_whitespace();
        let name = cells.next().unwrap();
        let cells: Vec<_> = cells.collect();
        assert_eq!(cells.len(), 10, "{name}");
        for (state, cell) in STATES.into_iter().zip(cells) {
            let expected = match cell.rsplit_once('/') {
                _ if cell == "-" => (state, Actions::NONE),
                None => (STATES[cell.parse::<usize>().unwrap()], Actions::NONE),
                Some((actions, next)) => (
                    STATES[next.parse::<usize>().unwrap()],
                    actions
                        .split(',')
                        .map(action)
                        .fold(Actions::NONE, |a, b| a | b),
                ),
            };
            assert_eq!(
                transition(state, event(name)),
                expected,
                "{name} in {state:?}"
            );
        }
    }
}

#[test]
fn the_timer_runs_exactly_where_the_table_has_timeouts() {
    for state in STATES {
        let moves = transition(state, Event::LastTimeout) != (state, Actions::NONE);
        assert_eq!(state.is_timed(), moves, "{state:?}");
    }
}
