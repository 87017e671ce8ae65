//! Tests with made-up machines.

use super::*;

/// A machine with these files.
fn machine(files: &[(&str, &str)]) -> Host {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
    }
    Host::read(root.path())
}

const CLOCK: &str = "sys/devices/system/clocksource/clocksource0/current_clocksource";
const HUGE: &str = "sys/kernel/mm/hugepages/hugepages-2048kB";
const STEADY: (&str, &str) = (
    "proc/cpuinfo",
    "processor\t: 0\nflags\t\t: fpu tsc constant_tsc nonstop_tsc",
);

/// Two nodes of four cores each, two threads per core in the first: everything that a user plane wants.
fn server() -> Vec<(&'static str, &'static str)> {
    vec![
        ("sys/devices/system/cpu/online", "0-7"),
        ("sys/devices/system/cpu/isolated", "2-3"),
        ("sys/devices/system/cpu/nohz_full", "2-3"),
        ("proc/self/status", "Name:\tx\nCpus_allowed_list:\t0-7"),
        ("sys/devices/system/node/node0/cpulist", "0-3"),
        ("sys/devices/system/node/node1/cpulist", "4-7"),
        ("sys/bus/pci/devices/0000:03:00.0/class", "0x020000"),
        ("sys/bus/pci/devices/0000:03:00.0/numa_node", "0"),
        ("sys/bus/pci/devices/0000:04:00.0/class", "0x010802"),
        ("sys/bus/pci/devices/0000:04:00.0/numa_node", "1"),
        (
            "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",
            "512",
        ),
        (
            "sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages",
            "128",
        ),
        (CLOCK, "tsc"),
        STEADY,
        (
            "sys/devices/system/cpu/cpu2/cpufreq/scaling_governor",
            "performance",
        ),
    ]
}

fn wanted(text: &str) -> Wanted {
    let text = format!("{{node-id: up1, address: 192.0.2.2{text}}}");
    let start: Start = serde_saphyr::from_str(&text).unwrap();
    Wanted::from(&start)
}

/// What has to be fixed, by subject.
fn mended(host: &Host, wanted: &Wanted) -> Vec<(&'static str, String)> {
    let all = host.findings(wanted).into_iter();
    all.filter_map(|finding| Some((finding.subject, finding.mend?)))
        .collect()
}

#[test]
fn a_machine_that_has_everything_needs_no_mending() {
    let host = machine(&server());
    for text in ["", ", workers: 2", ", workers: 2, worker-cores: '2,3'"] {
        assert_eq!(mended(&host, &wanted(text)), [], "{text}");
    }
    let taken = host.take(&wanted(", workers: 2"));
    let expected = Taken {
        huge_pages: true,
        cores: vec![2, 3],
    };
    assert_eq!(taken, expected);
}

#[test]
fn each_thing_that_is_missing_is_said_with_how_to_mend_it() {
    for (file, text, subject, mend) in [
        (
            "sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages",
            "127",
            "huge pages",
            "vm.nr_hugepages=128",
        ),
        (
            "proc/self/status",
            "Cpus_allowed_list:\t2",
            "worker cores",
            "2 cores",
        ),
        (
            "sys/devices/system/cpu/nohz_full",
            "(null)",
            "isolation",
            "nohz_full=2",
        ),
        (
            "sys/bus/pci/devices/0000:03:00.0/numa_node",
            "1",
            "NUMA",
            "such as 4-7",
        ),
        (CLOCK, "hpet", "clock source", "echo tsc"),
        (
            "proc/cpuinfo",
            "flags : fpu tsc",
            "clock source",
            "nonstop_tsc",
        ),
        (
            "sys/devices/system/cpu/cpu2/cpufreq/scaling_governor",
            "powersave",
            "frequency governor",
            "cpupower",
        ),
    ] {
        let mut files = server();
        files.retain(|(path, _)| *path != file);
        files.push((file, text));
        let found = mended(&machine(&files), &wanted(""));
        let mine = found.iter().find(|(name, _)| *name == subject);
        assert!(
            mine.is_some_and(|(_, said)| said.contains(mend)),
            "{file}: {found:?}"
        );
    }
}

#[test]
fn isolated_cores_that_the_process_may_not_use_have_to_be_named() {
    let mut files = server();
    files.retain(|(path, _)| *path != "proc/self/status");
    files.push(("proc/self/status", "Cpus_allowed_list:\t0-1,4-7"));
    let host = machine(&files);
    assert_eq!(host.take(&wanted("")).cores, [1]);
    let found = mended(&host, &wanted(""));
    assert_eq!(found, [("isolation", "set `worker-cores: 2`".to_owned())]);
    assert_eq!(mended(&host, &wanted(", worker-cores: 2")), []);
}

#[test]
fn workers_take_physical_cores_first_and_leave_one_core() {
    let threads = [
        ("sys/devices/system/cpu/online", "0-3"),
        (
            "sys/devices/system/cpu/cpu0/topology/thread_siblings_list",
            "0,2",
        ),
        (
            "sys/devices/system/cpu/cpu1/topology/thread_siblings_list",
            "1,3",
        ),
        (
            "sys/devices/system/cpu/cpu2/topology/thread_siblings_list",
            "0,2",
        ),
        (
            "sys/devices/system/cpu/cpu3/topology/thread_siblings_list",
            "1,3",
        ),
    ];
    let host = machine(&threads);
    assert_eq!(host.take(&wanted("")).cores, [1]);
    assert_eq!(host.take(&wanted(", workers: 2")).cores, [1, 2]);
    assert_eq!(host.take(&wanted(", workers: 4")).cores, [0_u16; 0]);
    let one = machine(&[("sys/devices/system/cpu/online", "0")]);
    assert_eq!(one.take(&wanted("")).cores, [0_u16; 0]);
}

#[test]
fn the_start_file_overrules_what_the_machine_has() {
    let (rich, poor) = (machine(&server()), machine(&[]));
    let no = wanted(", huge-pages: false, worker-cores: none");
    let nothing = Taken {
        huge_pages: false,
        cores: Vec::new(),
    };
    assert_eq!((rich.take(&no), poor.take(&no)), (nothing, poor.take(&no)));
    assert!(rich.defaults(&no).iter().all(|f| f.sentence().is_none()));
    assert!(poor.take(&wanted(", huge-pages: true")).huge_pages);
    let said: Vec<_> = poor
        .defaults(&wanted(""))
        .iter()
        .map(Finding::sentence)
        .collect();
    let [Some(huge), Some(cores)] = &said[..] else {
        panic!("{said:?}");
    };
    assert!(
        huge.contains("256 MiB needed") && huge.contains("27 cycles"),
        "{huge}"
    );
    assert!(cores.contains("not measured"), "{cores}");
}

#[test]
fn pages_of_a_gibibyte_serve_as_well() {
    let mut files = server();
    files.retain(|(path, _)| !path.starts_with(HUGE));
    let folder = "sys/kernel/mm/hugepages/hugepages-1048576kB";
    let (reserved, free) = (
        format!("{folder}/nr_hugepages"),
        format!("{folder}/free_hugepages"),
    );
    files.extend([(&*reserved, "1"), (&*free, "1")]);
    let host = machine(&files);
    assert!(host.take(&wanted("")).huge_pages);
    assert!(
        host.findings(&wanted(""))[0]
            .found
            .starts_with("1 of 1 of 1 GiB free")
    );
    assert!(!host.take(&wanted(", memory: 1025")).huge_pages);
}
