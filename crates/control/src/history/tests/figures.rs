//! Figures over time.

use super::*;

const DAY: u32 = 86_400;
/// A beginning of five minutes.
const BEGAN: u32 = 1_800_000_000;

fn sample(unix: u32, values: &[(&'static str, &str, f64)]) -> Sample {
    let series = |name, resource: &str| Series {
        measure: Measure {
            name,
            unit: "sessions",
        },
        resource: resource.into(),
    };
    let values = values
        .iter()
        .map(|(name, resource, value)| (series(name, resource), *value));
    Sample {
        unix,
        values: values.collect(),
    }
}

/// What is asked at this time.
fn asked_at(now: u32, database: &Database, name: &str, since: u32, until: u32) -> Vec<Figure> {
    let query = FigureQuery {
        name: name.into(),
        resource: None,
        since,
        until,
    };
    database.reader().figures(&query, now)
}

fn asked(database: &Database, name: &str, since: u32, until: u32) -> Vec<Figure> {
    asked_at(until, database, name, since, until)
}

#[test]
fn figures_are_there_sample_by_sample_for_a_day_and_put_together_for_a_month() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path());
    let mut figures = Figures::beside(directory.path());
    let last = BEGAN + 32 * DAY;
    let asked =
        |database: &Database, since, until| asked_at(last, database, "online", since, until);
    let mut unix = BEGAN;
    while unix < last {
        // The value tells the day, and one in two hours is higher.
        let day = (unix - BEGAN) / DAY;
        let peak = if unix.is_multiple_of(7200) {
            1000.0
        } else {
            0.0
        };
        let values = [("online", "", f64::from(day) + peak), ("up", "up1", 1.0)];
        figures.add(&sample(unix, &values));
        unix += match last - unix {
            0..=3600 => 10,
            3601..=86_400 => 120,
            _ => 3600,
        };
    }
    let hour = asked(&database, last - 3600, last);
    assert_eq!(hour.len(), 360);
    assert!(hour.windows(2).all(|two| two[1].unix - two[0].unix == 10));
    let day = asked(&database, last - DAY, last);
    assert_eq!((day.len(), day[0].seconds), (720, 120));
    assert!(day.iter().all(|row| row.mean >= 31.0));
    let month = asked(&database, last - 30 * DAY, last);
    assert_eq!((month.len(), month[0].seconds), (720, 3600));
    let row = &month[10 * 24];
    assert_eq!(
        (row.unix, row.most),
        (last - 20 * DAY, 1012.0),
        "peaks stay"
    );
    assert_eq!(
        (month[10 * 24 + 1].mean, month[10 * 24 + 1].most),
        (12.0, 12.0)
    );
    // What is older is gone, and so are samples of more than a day ago.
    assert_eq!(asked(&database, BEGAN, last - 30 * DAY - 3600), []);
    let minutes = asked(&database, last - 3 * DAY, last - 2 * DAY);
    assert_eq!((minutes.len(), minutes[0].seconds), (24, 300));
    // Of a day ago, a moment is read from what is put together.
    let moment = asked(&database, last - 3 * DAY, last - 3 * DAY + 300);
    assert_eq!((moment.len(), moment[0].most), (1, 1029.0));
}

#[test]
fn without_a_name_each_series_has_one_row_with_its_peak() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path());
    let mut figures = Figures::beside(directory.path());
    let last = BEGAN + 2000;
    for unix in (BEGAN..last).step_by(10) {
        let online = if unix == BEGAN + 700 { 90.0 } else { 10.0 };
        let values = [
            ("online", "", online),
            ("up", "up1", 8.0),
            ("up", "up2", 4.0),
        ];
        figures.add(&sample(unix, &values));
    }
    for _ in 0..2 {
        let all = asked(&database, "", BEGAN, last);
        let rows: Vec<(&str, &str, f64)> = all
            .iter()
            .map(|row| (row.name.as_str(), row.resource.as_str(), row.most))
            .collect();
        let expected = [("online", "", 90.0), ("up", "up1", 8.0), ("up", "up2", 4.0)];
        assert_eq!(rows, expected);
        assert!((all[0].mean - 10.4).abs() < 0.01, "{}", all[0].mean);
        assert_eq!((all[0].unix, all[0].seconds), (BEGAN, 2000));
        // to five minutes, as they are put together
        assert_eq!(all[0].most_at, BEGAN + 600);
        assert_eq!(asked(&database, "up", BEGAN, last).len(), 400);
        assert_eq!(asked(&database, "down", BEGAN, last), []);
        drop(figures);
        figures = Figures::beside(directory.path());
        figures.add(&sample(last, &[]));
    }
}

#[test]
fn a_daemon_that_was_away_loses_no_five_minutes_and_a_clock_that_goes_back_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path());
    let mut figures = Figures::beside(directory.path());
    let add = |figures: &mut Figures, unix| {
        let values = [("online", "", 5.0)];
        figures.add(&sample(unix, &values));
    };
    add(&mut figures, BEGAN + 10);
    drop(figures);
    let mut figures = Figures::beside(directory.path());
    add(&mut figures, BEGAN + 3 * DAY);
    let then = asked(&database, "online", BEGAN, BEGAN + 3 * DAY);
    assert_eq!((then.len(), then[0].mean), (1, 5.0));
    add(&mut figures, BEGAN + 20);
    add(&mut figures, BEGAN + 3 * DAY + 10);
    let now = asked(
        &database,
        "online",
        BEGAN + 3 * DAY - 600,
        BEGAN + 3 * DAY + 20,
    );
    assert_eq!(now.len(), 2);
}

#[test]
fn damaged_figures_cost_no_events_and_begin_anew() {
    let directory = tempfile::tempdir().unwrap();
    let mut database = open(directory.path());
    add(
        &mut database,
        1,
        &block(&[online(1, 1, addresses(Some(1), None))]),
    );
    let mut figures = Figures::beside(directory.path());
    let values = [("online", "", 5.0)];
    figures.add(&sample(BEGAN, &values));
    drop(figures);
    fs::write(directory.path().join("figures.db"), [7; 5000]).unwrap();
    assert_eq!(asked(&database, "online", BEGAN - 10, BEGAN + 10), []);
    let mut figures = Figures::beside(directory.path());
    figures.add(&sample(BEGAN, &values)); // finds the damage
    figures.add(&sample(BEGAN + 10, &values));
    assert_eq!(asked(&database, "online", BEGAN, BEGAN + 20).len(), 1);
    assert_eq!(times(&database.reader(), ""), [1]);
    assert_eq!(database.reader().status().damaged, 0);
}
