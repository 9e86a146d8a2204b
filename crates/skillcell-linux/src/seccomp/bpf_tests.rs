use super::super::table::UnixSockets;
use super::*;

const SANDBOX: Profile = Profile {
    sockets: Sockets::PrivateNamespace,
    pin_affinity: false,
    watch: true,
    record: Recorded::Denials,
    unix: UnixSockets::Named,
    count_forks: false,
    ownerless_memory: OwnerlessMemory::Counted,
};

fn compile(profile: Profile, notify: bool) -> Filter {
    Filter::compile(profile, notify).unwrap_or_else(|e| panic!("{e}"))
}

fn ask(profile: Profile, nr: libc::c_long, args: [u32; 6]) -> u32 {
    evaluate(&compile(profile, true).program, ARCH, nr as u32, args)
}

#[test]
fn unlisted_calls_are_denied_and_reported() {
    for nr in [
        libc::SYS_mount,
        libc::SYS_ptrace,
        libc::SYS_bpf,
        libc::SYS_io_uring_setup,
        libc::SYS_keyctl,
        libc::SYS_unshare,
        libc::SYS_setns,
        libc::SYS_userfaultfd,
        libc::SYS_process_vm_readv,
        libc::SYS_pidfd_getfd,
        libc::SYS_perf_event_open,
        libc::SYS_open_by_handle_at,
        libc::SYS_fsopen,
        libc::SYS_kexec_load,
        libc::SYS_init_module,
        9999,
    ] {
        assert_eq!(ask(SANDBOX, nr, [0; 6]), NOTIFY, "{nr}");
    }
}

#[test]
fn foreign_abis_are_denied() {
    let program = compile(SANDBOX, true).program;
    assert_eq!(evaluate(&program, 0x4000_0003, 4, [0; 6]), KILL);
    assert_eq!(
        evaluate(&program, ARCH, libc::SYS_read as u32 | X32_BIT, [0; 6]),
        NOTIFY
    );
}

#[test]
fn clone_is_allowed_without_namespace_flags_only() {
    assert_eq!(
        ask(
            SANDBOX,
            libc::SYS_clone,
            [libc::SIGCHLD as u32, 0, 0, 0, 0, 0]
        ),
        ALLOW
    );
    assert_eq!(
        ask(
            SANDBOX,
            libc::SYS_clone,
            [libc::CLONE_NEWUSER as u32, 0, 0, 0, 0, 0]
        ),
        NOTIFY
    );
    assert_eq!(ask(SANDBOX, libc::SYS_clone3, [0; 6]), errno(libc::ENOSYS));
}

#[test]
fn sockets_are_unix_tcp_and_udp_only() {
    let s = |family: i32, kind: i32, protocol: i32| {
        ask(
            SANDBOX,
            libc::SYS_socket,
            [family as u32, kind as u32, protocol as u32, 0, 0, 0],
        )
    };
    assert_eq!(
        s(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0),
        ALLOW
    );
    assert_eq!(s(libc::AF_UNIX, libc::SOCK_DGRAM, 0), ALLOW);
    assert_eq!(s(libc::AF_NETLINK, libc::SOCK_RAW, 0), ALLOW);
    assert_eq!(s(libc::AF_NETLINK, libc::SOCK_RAW, 9), NOTIFY);
    assert_eq!(s(libc::AF_INET, libc::SOCK_RAW, 1), NOTIFY);
    assert_eq!(
        s(libc::AF_INET, libc::SOCK_DGRAM, libc::IPPROTO_ICMP),
        NOTIFY
    );
    assert_eq!(s(libc::AF_INET, libc::SOCK_STREAM, 132), NOTIFY);
    assert_eq!(s(libc::AF_INET, libc::SOCK_STREAM, 262), NOTIFY);
    for family in [libc::AF_PACKET, libc::AF_VSOCK, libc::AF_ALG, 44, 9999] {
        assert_eq!(s(family, libc::SOCK_STREAM, 0), NOTIFY, "{family}");
    }
}

#[test]
fn the_process_level_has_no_sockets_but_stream_pairs() {
    let process = Profile {
        sockets: Sockets::PairsOnly,
        ..SANDBOX
    };
    assert_eq!(
        ask(
            process,
            libc::SYS_socket,
            [libc::AF_UNIX as u32, libc::SOCK_STREAM as u32, 0, 0, 0, 0]
        ),
        NOTIFY
    );
    assert_eq!(ask(process, libc::SYS_connect, [0; 6]), NOTIFY);
    assert_eq!(ask(process, libc::SYS_shmget, [0; 6]), NOTIFY);
    assert_eq!(
        ask(
            process,
            libc::SYS_socketpair,
            [libc::AF_UNIX as u32, libc::SOCK_STREAM as u32, 0, 0, 0, 0]
        ),
        ALLOW
    );
    assert_eq!(
        ask(
            process,
            libc::SYS_socketpair,
            [libc::AF_UNIX as u32, libc::SOCK_DGRAM as u32, 0, 0, 0, 0]
        ),
        NOTIFY
    );
}

#[test]
fn named_unix_sockets_can_be_switched_off() {
    let pairs = Profile {
        unix: UnixSockets::PairsOnly,
        ..SANDBOX
    };
    for kind in [libc::SOCK_STREAM, libc::SOCK_DGRAM, libc::SOCK_SEQPACKET] {
        let args = [libc::AF_UNIX as u32, kind as u32, 0, 0, 0, 0];
        assert_eq!(ask(pairs, libc::SYS_socket, args), NOTIFY);
        assert_eq!(ask(SANDBOX, libc::SYS_socket, args), ALLOW);
    }
}

#[test]
fn the_process_level_changes_no_attributes() {
    let process = Profile {
        sockets: Sockets::PairsOnly,
        ..SANDBOX
    };
    for nr in [
        libc::SYS_chmod,
        libc::SYS_fchmod,
        libc::SYS_fchmodat,
        libc::SYS_fchownat,
        libc::SYS_utimensat,
        libc::SYS_setxattr,
        libc::SYS_fsetxattr,
        libc::SYS_utime,
        libc::SYS_futimesat,
    ] {
        assert_eq!(ask(process, nr, [0; 6]), NOTIFY, "{nr}");
        let unwatched = compile(process, false).program;
        assert_eq!(
            evaluate(&unwatched, ARCH, nr as u32, [0; 6]),
            errno(libc::EPERM),
            "{nr}"
        );
    }
}

#[test]
fn changed_attributes_are_looked_at_where_mounts_decide() {
    let unwatched = Profile {
        watch: false,
        ..SANDBOX
    };
    for nr in [libc::SYS_chmod, libc::SYS_fchmod, libc::SYS_utimensat] {
        assert_eq!(ask(SANDBOX, nr, [0; 6]), NOTIFY, "{nr}");
        assert_eq!(ask(unwatched, nr, [0; 6]), ALLOW, "{nr}");
    }
}

#[test]
fn an_installer_without_namespaces_has_no_sockets_but_sets_modes_and_times() {
    let installer = Profile {
        sockets: Sockets::InstallerPairsOnly,
        ..SANDBOX
    };
    for family in [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6] {
        let args = [family as u32, libc::SOCK_STREAM as u32, 0, 0, 0, 0];
        assert_eq!(ask(installer, libc::SYS_socket, args), NOTIFY, "{family}");
    }
    assert_eq!(ask(installer, libc::SYS_connect, [0; 6]), NOTIFY);
    assert_eq!(ask(installer, libc::SYS_shmget, [0; 6]), NOTIFY);
    assert_eq!(ask(installer, libc::SYS_fchmod, [0; 6]), ALLOW);
    assert_eq!(ask(installer, libc::SYS_utimensat, [0; 6]), ALLOW);
}

#[test]
fn terminal_injection_is_denied() {
    assert_eq!(
        ask(
            SANDBOX,
            libc::SYS_ioctl,
            [0, libc::TIOCSTI as u32, 0, 0, 0, 0]
        ),
        NOTIFY
    );
    assert_eq!(
        ask(
            SANDBOX,
            libc::SYS_ioctl,
            [0, libc::TCGETS as u32, 0, 0, 0, 0]
        ),
        ALLOW
    );
}

#[test]
fn opening_for_writing_is_watched_and_reading_is_not() {
    assert_eq!(
        ask(
            SANDBOX,
            libc::SYS_openat,
            [0, 0, libc::O_RDONLY as u32, 0, 0, 0]
        ),
        ALLOW
    );
    assert_eq!(
        ask(
            SANDBOX,
            libc::SYS_openat,
            [0, 0, (libc::O_WRONLY | libc::O_CREAT) as u32, 0, 0, 0]
        ),
        NOTIFY
    );
}

#[test]
fn without_a_listener_denials_are_errors_and_watched_calls_are_allowed() {
    let program = compile(SANDBOX, false).program;
    assert_eq!(
        evaluate(&program, ARCH, libc::SYS_mount as u32, [0; 6]),
        errno(libc::EPERM)
    );
    assert_eq!(
        evaluate(&program, ARCH, libc::SYS_connect as u32, [0; 6]),
        ALLOW
    );
}

#[test]
fn the_search_answers_as_the_table_says_for_every_number() {
    let program = compile(SANDBOX, true).program;
    let mut rows = rules(SANDBOX);
    rows.extend(
        SYSV_IPC
            .iter()
            .map(|(nr, name)| (*nr, *name, Rule::Allow, "ipc")),
    );
    for nr in 0..1200u32 {
        let row = rows.iter().find(|(n, ..)| *n as u32 == nr);
        let got = evaluate(&program, ARCH, nr, [0; 6]);
        match row {
            None => assert_eq!(got, NOTIFY, "{nr}"),
            Some((_, name, Rule::Allow, _)) => assert_eq!(got, ALLOW, "{name}"),
            Some((_, name, Rule::Absent, _)) => assert_eq!(got, errno(libc::ENOSYS), "{name}"),
            Some((_, name, Rule::Watch, _)) => assert_eq!(got, NOTIFY, "{name}"),
            Some(_) => {}
        }
    }
    assert!(program.len() < 1000, "{}", program.len());
}

#[test]
fn no_call_is_listed_twice_and_each_has_a_reason() {
    let mut seen = std::collections::BTreeSet::new();
    for (nr, name, _, reason) in rules(SANDBOX) {
        assert!(seen.insert(nr), "{name} twice");
        assert!(reason.len() > 10, "{name}");
    }
}

#[test]
fn what_is_recorded_is_handed_over_and_what_is_denied_still_is() {
    let security = Profile {
        record: Recorded::Security,
        ..SANDBOX
    };
    for nr in [libc::SYS_execve, libc::SYS_openat, libc::SYS_exit_group] {
        assert_eq!(ask(SANDBOX, nr, [0; 6]), ALLOW, "{nr}");
        assert_eq!(ask(security, nr, [0; 6]), NOTIFY, "{nr}");
    }
    assert_eq!(ask(security, libc::SYS_read, [0; 6]), ALLOW);
    assert_eq!(ask(security, libc::SYS_mount, [0; 6]), NOTIFY);
}

#[test]
fn a_full_record_hands_over_every_call_but_the_one_with_the_pass() {
    let filter = compile(
        Profile {
            record: Recorded::Everything,
            ..SANDBOX
        },
        true,
    );
    let ask = |nr: libc::c_long, args| evaluate(&filter.program, ARCH, nr as u32, args);
    for nr in 0..600 {
        assert_eq!(ask(nr, [0; 6]), NOTIFY, "{nr}");
    }
    let [a, b, c] = filter.pass().unwrap_or_else(|| panic!("no pass"));
    assert_eq!(ask(libc::SYS_sendmsg, [5, 1, 0, a, b, c]), ALLOW);
    assert_eq!(ask(libc::SYS_sendmsg, [5, 1, 0, a, b, !c]), NOTIFY);
    assert_eq!(ask(libc::SYS_sendmsg, [5, 1, 0, a, !b, c]), NOTIFY);
    assert_eq!(ask(libc::SYS_sendmsg, [5, 1, 0, !a, b, c]), NOTIFY);
    assert_eq!(ask(libc::SYS_sendto, [5, 1, 0, a, b, c]), NOTIFY);
    assert_eq!(
        evaluate(&filter.program, 0x4000_0003, 4, [0; 6]),
        KILL,
        "foreign ABIs"
    );
}

/// It hands the listener over, so nobody could answer it.
#[test]
fn the_message_with_the_pass_goes_through_every_filter_that_has_a_listener() {
    for record in [Recorded::Denials, Recorded::Security, Recorded::Everything] {
        let filter = compile(Profile { record, ..SANDBOX }, true);
        let ask = |nr: libc::c_long, args| evaluate(&filter.program, ARCH, nr as u32, args);
        let [a, b, c] = filter.pass().unwrap_or_else(|| panic!("no pass"));
        assert_eq!(ask(libc::SYS_sendmsg, [5, 1, 0, a, b, c]), ALLOW);
        for args in [[5, 1, 0, a, b, !c], [5, 1, 0, !a, b, c], [0; 6]] {
            assert_eq!(ask(libc::SYS_sendmsg, args), NOTIFY, "{record:?}");
        }
        assert_eq!(ask(libc::SYS_sendmmsg, [5, 1, 0, a, b, c]), NOTIFY);
    }
}

#[test]
fn the_list_decides_about_recorded_calls_as_the_kernel_would_have() {
    let plain = compile(SANDBOX, true);
    for record in [Recorded::Security, Recorded::Everything] {
        let filter = compile(Profile { record, ..SANDBOX }, true);
        for nr in 0..600u32 {
            for args in [
                [0; 6],
                [u64::MAX; 6],
                [2, 1, 6, 0, 0, 0],
                [16, 3, 9, 0, 0, 0],
            ] {
                let kernel = evaluate(&plain.program, ARCH, nr, args.map(|a| a as u32));
                let expected = match kernel {
                    ALLOW => Verdict::Allowed,
                    NOTIFY => Verdict::Ask,
                    other => Verdict::Errno((other & 0xffff) as i32),
                };
                assert_eq!(filter.list().verdict(nr.into(), &args), expected, "{nr}");
            }
        }
    }
}

#[test]
fn init_asks_nobody() {
    let filter = compile(SANDBOX, true);
    for nr in 0..600u32 {
        assert_ne!(evaluate(&filter.quiet, ARCH, nr, [0; 6]), NOTIFY, "{nr}");
    }
    let mount = evaluate(&filter.quiet, ARCH, libc::SYS_mount as u32, [0; 6]);
    assert_eq!(mount, errno(libc::EPERM));
}
