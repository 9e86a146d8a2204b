//! Whatever is done to a log, `verify` finds it and says where; and a log that nobody touched is whole,
//! however its writers ended.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

mod samples;

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use samples::{ended, middle, opened, recorder, run, started};
use sha2::{Digest as _, Sha256};
use skillcell_audit::{
    Access, Broken, Expectation, Folder, Log, Retention, Verified, keygen, verify,
};
use skillcell_core::{AuditLevel, Status};
use std::fs;
use std::path::{Path, PathBuf};

/// How a log comes to be.
#[derive(Debug, Clone)]
struct Plan {
    /// Events of each call.
    calls: Vec<u8>,
    segment_bytes: u64,
    /// Before which call there is a key.
    key: Option<u8>,
    /// After which call all but so many bytes are pruned.
    prune: Option<(u8, u64)>,
    /// After which call a copy is put aside.
    copy: u8,
}

fn plan() -> impl Strategy<Value = Plan> {
    (
        prop::collection::vec(0..12_u8, 1..7),
        prop_oneof![Just(900_u64), 1_000..6_000_u64, Just(1 << 20)],
        prop::option::of(0..3_u8),
        prop::option::of((0..7_u8, 500..8_000_u64)),
        0..6_u8,
    )
        .prop_map(|(calls, segment_bytes, key, prune, copy)| Plan {
            calls,
            segment_bytes,
            key,
            prune,
            copy,
        })
}

struct Made {
    _dir: tempfile::TempDir,
    folder: Folder,
    /// The log as it was earlier.
    copy: PathBuf,
    keyed: bool,
}

fn make(plan: &Plan) -> Made {
    let dir = tempfile::tempdir().unwrap();
    let folder = Folder::at(dir.path().join("audit"));
    let copy = dir.path().join("copy");
    let retention = Retention {
        segment_bytes: plan.segment_bytes,
        ..Retention::default()
    };
    for (n, events) in plan.calls.iter().enumerate() {
        if plan.key == Some(n as u8) {
            keygen(&folder).unwrap();
        }
        let recorder = recorder(&folder, retention, run(n as u64));
        recorder
            .decide(None, &started("a/b", AuditLevel::Security))
            .unwrap();
        for (task, event) in middle().into_iter().cycle().take(usize::from(*events)) {
            recorder.decide(task, &event).unwrap();
        }
        recorder.finish(&ended(Status::Ok, &[])).unwrap();
        if let Some((after, keep)) = plan.prune
            && usize::from(after) == n
        {
            let keep = Retention {
                keep_bytes: Some(keep),
                ..retention
            };
            let mut log = Log::open(folder.clone(), retention).unwrap();
            log.prune(&keep).unwrap();
        }
        if usize::from(plan.copy) == n {
            copy_folder(folder.path(), &copy);
        }
    }
    Made {
        _dir: dir,
        keyed: plan.key.is_some_and(|k| usize::from(k) < plan.calls.len()),
        folder,
        copy,
    }
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

fn check(folder: &Folder) -> Result<Verified, Broken> {
    verify(folder, &Expectation::default()).unwrap()
}

/// What can be done to a log by somebody who can write its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    ChangeByte,
    DeleteLine,
    DuplicateLine,
    SwapLines,
    ForgeLine,
    CutSegment,
    DeleteSegment,
    SwapSegments,
    RenameSegment,
    DuplicateSegment,
    CopySegmentToFront,
    DeleteHead,
    EmptyHead,
    ChangeHead,
    AppendForeignLine,
    DropLastLineAndCheckpoint,
    // With a key.
    ReplayEarlier,
    RewriteTheRest,
    ChangeCheckpoint,
    DeleteCheckpoints,
    DeletePublicKey,
    OtherKey,
}

const ACTS: [Act; 22] = [
    Act::ChangeByte,
    Act::DeleteLine,
    Act::DuplicateLine,
    Act::SwapLines,
    Act::ForgeLine,
    Act::CutSegment,
    Act::DeleteSegment,
    Act::SwapSegments,
    Act::RenameSegment,
    Act::DuplicateSegment,
    Act::CopySegmentToFront,
    Act::DeleteHead,
    Act::EmptyHead,
    Act::ChangeHead,
    Act::AppendForeignLine,
    Act::DropLastLineAndCheckpoint,
    Act::ReplayEarlier,
    Act::RewriteTheRest,
    Act::ChangeCheckpoint,
    Act::DeleteCheckpoints,
    Act::DeletePublicKey,
    Act::OtherKey,
];

/// Where `verify` must see it: one of these, or anywhere.
enum Where {
    At(Vec<(PathBuf, Option<u64>)>),
    Anywhere,
}

fn at(path: &Path, line: impl Into<Option<u64>>) -> Option<Where> {
    Some(Where::At(vec![(path.to_owned(), line.into())]))
}

/// A log as files of lines, each with its newline.
struct Files {
    folder: Folder,
    segments: Vec<(PathBuf, Vec<Vec<u8>>)>,
}

impl Files {
    fn read(folder: &Folder) -> Files {
        let lines = |path: &Path| -> Vec<Vec<u8>> {
            fs::read(path)
                .unwrap()
                .split_inclusive(|b| *b == b'\n')
                .map(<[u8]>::to_vec)
                .collect()
        };
        Files {
            folder: folder.clone(),
            segments: folder
                .segments()
                .unwrap()
                .into_iter()
                .map(|s| (s.path.clone(), lines(&s.path)))
                .collect(),
        }
    }

    fn write(&self) {
        for (path, lines) in &self.segments {
            fs::write(path, lines.concat()).unwrap();
        }
    }

    /// Any line: its segment, and its place there from 0.
    fn pick(&self, random: u64) -> (usize, usize) {
        let all: usize = self.segments.iter().map(|(_, l)| l.len()).sum();
        let mut n = random as usize % all;
        for (segment, (_, lines)) in self.segments.iter().enumerate() {
            if n < lines.len() {
                return (segment, n);
            }
            n -= lines.len();
        }
        unreachable!()
    }

    fn is_pruned(&self) -> bool {
        self.segments[0].0 != self.folder.segment(1).path
    }

    /// Where the chain is found to be broken when lines from this place on are not there.
    fn gone_from(&self, segment: usize, line: usize) -> Option<Where> {
        let (path, _) = &self.segments[segment];
        match self.segments.get(segment + 1) {
            Some((next, _)) if line > 0 => at(next, 1),
            _ => at(path, None),
        }
    }

    fn head(&self) -> PathBuf {
        self.folder.path().join("head.json")
    }
}

fn rehash(line: &[u8], previous: &[u8; 32]) -> (Vec<u8>, [u8; 32]) {
    let covered = &line[..line.len() - 76];
    let mut hasher = Sha256::new();
    hasher.update(previous);
    hasher.update(covered);
    let hash: [u8; 32] = hasher.finalize().into();
    let digits: String = hash.iter().map(|b| format!("{b:02x}")).collect();
    let line = [covered, b",\"hash\":\"", digits.as_bytes(), b"\"}\n"].concat();
    (line, hash)
}

fn hash_of(line: &[u8]) -> [u8; 32] {
    let digits = std::str::from_utf8(&line[line.len() - 67..line.len() - 3]).unwrap();
    std::array::from_fn(|i| u8::from_str_radix(&digits[2 * i..2 * i + 2], 16).unwrap())
}

/// The line with another time in it.
fn altered(line: &[u8]) -> Vec<u8> {
    let mark = b"\"mono_us\":";
    let at = line.windows(mark.len()).position(|w| w == mark).unwrap() + mark.len();
    let mut line = line.to_vec();
    line[at] = if line[at] == b'9' { b'1' } else { line[at] + 1 };
    line
}

/// Does it. None where there is nothing to do it to.
fn tamper(made: &Made, act: Act, random: [u64; 3]) -> Option<Where> {
    let [a, b, c] = random;
    let (before, mut files) = (Files::read(&made.folder), Files::read(&made.folder));
    let (segment, line) = files.pick(a);
    let path = files.segments[segment].0.clone();
    let number = line as u64 + 1;
    let count = files.segments.len();
    let (last_path, last_lines) = files.segments.last().cloned().unwrap();
    let next_line = |files: &Files| match files.segments[segment].1.get(line + 1) {
        Some(_) => (path.clone(), Some(number + 1)),
        None => match files.segments.get(segment + 1) {
            Some((next, _)) => (next.clone(), Some(1)),
            None => (path.clone(), Some(number)),
        },
    };
    let announces = |line: &[u8]| {
        let mark = b"\"event\":\"pruned\"";
        line.windows(mark.len()).any(|w| w == mark)
    };
    let found = match act {
        Act::ChangeByte => {
            let line = &mut files.segments[segment].1[line];
            let place = b as usize % line.len();
            line[place] = line[place].wrapping_add(1 + (c % 255) as u8);
            at(&path, number)
        }
        Act::DeleteLine => {
            files.segments[segment].1.remove(line);
            if line < files.segments[segment].1.len() {
                at(&path, number)
            } else {
                files.gone_from(segment, line)
            }
        }
        Act::DuplicateLine => {
            let copy = files.segments[segment].1[line].clone();
            files.segments[segment].1.insert(line, copy);
            at(&path, number + 1)
        }
        Act::SwapLines => {
            let (other, there) = files.pick(b);
            if (other, there) == (segment, line) {
                return None;
            }
            let (x, y) = (
                files.segments[segment].1[line].clone(),
                files.segments[other].1[there].clone(),
            );
            files.segments[segment].1[line] = y;
            files.segments[other].1[there] = x;
            let (first, n) = (segment, line).min((other, there));
            at(&files.segments[first].0.clone(), n as u64 + 1)
        }
        Act::ForgeLine => {
            let before = match (line, segment) {
                (0, 0) => return None,
                (0, _) => files.segments[segment - 1].1.last().unwrap(),
                _ => &files.segments[segment].1[line - 1],
            };
            let forged = altered(&files.segments[segment].1[line]);
            files.segments[segment].1[line] = rehash(&forged, &hash_of(before)).0;
            // A checkpoint may know this very line.
            Some(Where::At(vec![
                (path.clone(), Some(number)),
                next_line(&files),
            ]))
        }
        Act::CutSegment => {
            let lines = &mut files.segments[segment].1;
            lines.truncate(line + 1);
            let keep = b as usize % lines[line].len();
            lines[line].truncate(keep);
            if keep > 0 {
                at(&path, number)
            } else {
                files.gone_from(segment, line)
            }
        }
        Act::DeleteSegment => {
            fs::remove_file(&path).unwrap();
            files.segments.remove(segment);
            let place = match files.segments.last() {
                None => files.folder.path().to_owned(),
                Some((last, _)) if segment + 1 == count => last.clone(),
                Some(_) => path.clone(),
            };
            at(&place, None)
        }
        Act::SwapSegments => {
            let other = b as usize % count;
            if other == segment {
                return None;
            }
            let (x, y) = (segment.min(other), segment.max(other));
            let lines = std::mem::take(&mut files.segments[x].1);
            files.segments[x].1 = std::mem::replace(&mut files.segments[y].1, lines);
            at(&files.segments[x].0.clone(), 1)
        }
        Act::RenameSegment => {
            let to = files.folder.segment(1000 + b % 1000).path;
            fs::rename(&path, to).unwrap();
            files.segments.remove(segment);
            match count {
                1 => Some(Where::Anywhere),
                _ => at(&path, None),
            }
        }
        Act::DuplicateSegment => {
            let last = files.folder.segments().unwrap().last().unwrap().number;
            let to = files.folder.segment(last + 1).path;
            fs::copy(&path, &to).unwrap();
            at(&to, 1)
        }
        Act::CopySegmentToFront => {
            let first = files.folder.segments().unwrap()[0].number;
            if first == 1 {
                return None;
            }
            fs::copy(&path, files.folder.segment(first - 1).path).unwrap();
            Some(Where::Anywhere)
        }
        Act::DeleteHead => {
            fs::remove_file(files.head()).unwrap();
            at(&files.head(), None)
        }
        Act::EmptyHead => {
            fs::write(files.head(), b"").unwrap();
            at(&files.head(), None)
        }
        Act::ChangeHead => {
            let text = fs::read(files.head()).unwrap();
            let mut head: serde_json::Value = serde_json::from_slice(&text).unwrap();
            let field = ["segment", "length", "seq"][b as usize % 3];
            let value = head[field].as_u64().unwrap();
            head[field] = (value + 1 + c % 3).saturating_sub(2 * (a % 2)).into();
            if head[field] == value {
                return None;
            }
            fs::write(files.head(), head.to_string()).unwrap();
            Some(Where::Anywhere)
        }
        Act::AppendForeignLine => {
            let mut foreign = files.segments[segment].1[line].clone();
            if b % 2 == 0 {
                foreign = b"{\"seq\":1,\"event\":\"what\"}\n".to_vec();
            }
            files.segments.last_mut().unwrap().1.push(foreign);
            at(&last_path, last_lines.len() as u64 + 1)
        }
        Act::DropLastLineAndCheckpoint => {
            files.segments.last_mut().unwrap().1.pop();
            let path = files.folder.checkpoints();
            if let Ok(text) = fs::read_to_string(&path) {
                let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
                lines.pop();
                fs::write(&path, lines.concat()).unwrap();
            }
            files.gone_from(count - 1, last_lines.len() - 1)
        }
        Act::ReplayEarlier => {
            if !made.keyed || !earlier_is_older(made) {
                return None;
            }
            replay(made);
            return Some(Where::Anywhere);
        }
        Act::RewriteTheRest => {
            if !made.keyed {
                return None;
            }
            rewrite_from(&mut files, segment, line)?;
            Some(Where::Anywhere)
        }
        Act::ChangeCheckpoint => {
            let path = files.folder.checkpoints();
            let mut text = fs::read(&path).ok()?;
            let place = b as usize % (text.len() - 1);
            text[place] = text[place].wrapping_add(1 + (c % 255) as u8);
            let number = text[..place].iter().filter(|b| **b == b'\n').count();
            fs::write(&path, text).unwrap();
            at(&path, number as u64 + 1)
        }
        Act::DeleteCheckpoints => {
            let path = files.folder.checkpoints();
            fs::remove_file(&path).ok()?;
            at(&path, None)
        }
        Act::DeletePublicKey => {
            fs::remove_file(files.folder.public_key()).ok()?;
            at(&files.folder.checkpoints(), None)
        }
        Act::OtherKey => {
            if !made.keyed {
                return None;
            }
            let elsewhere = Folder::at(made.copy.with_extension("key"));
            keygen(&elsewhere).unwrap();
            fs::copy(elsewhere.public_key(), files.folder.public_key()).unwrap();
            at(&files.folder.checkpoints(), 1)
        }
    };
    // Where a log begins is said by a line in it; when that is not the same, no place is sure.
    let of_lines = matches!(
        act,
        Act::ChangeByte | Act::DeleteLine | Act::ForgeLine | Act::CutSegment | Act::SwapLines
    );
    let pruning = before.is_pruned();
    let touched = pruning && {
        let told = |files: &Files| -> Vec<Vec<u8>> {
            let lines = files.segments.iter().flat_map(|(_, lines)| lines.clone());
            lines.filter(|line| announces(line)).collect()
        };
        !of_lines || told(&before) != told(&files)
    };
    files.write();
    if touched {
        Some(Where::Anywhere)
    } else {
        found
    }
}

fn last_seq(folder: &Path) -> u64 {
    let text = fs::read(folder.join("head.json")).unwrap();
    let head: serde_json::Value = serde_json::from_slice(&text).unwrap();
    head["seq"].as_u64().unwrap()
}

/// Whether the copy has less than the log, and at least a line under a key.
fn earlier_is_older(made: &Made) -> bool {
    made.copy.exists()
        && made.copy.join("signing-key.der").exists()
        && last_seq(&made.copy) < last_seq(made.folder.path())
}

/// Puts the earlier log in the place of the log, but for what is signed.
fn replay(made: &Made) {
    for segment in made.folder.segments().unwrap() {
        fs::remove_file(segment.path).unwrap();
    }
    for segment in Folder::at(&made.copy).segments().unwrap() {
        let to = made.folder.segment(segment.number).path;
        fs::copy(segment.path, to).unwrap();
    }
    let head = |folder: &Path| folder.join("head.json");
    fs::copy(head(&made.copy), head(made.folder.path())).unwrap();
}

/// Changes a line, and makes a new chain and head from there on.
fn rewrite_from(files: &mut Files, segment: usize, line: usize) -> Option<()> {
    let mut previous = match (line, segment) {
        (0, 0) if files.is_pruned() => return None,
        (0, 0) => [0; 32],
        (0, _) => hash_of(files.segments[segment - 1].1.last().unwrap()),
        _ => hash_of(&files.segments[segment].1[line - 1]),
    };
    let forged = altered(&files.segments[segment].1[line]);
    files.segments[segment].1[line] = forged;
    for (at, (_, lines)) in files.segments.iter_mut().enumerate().skip(segment) {
        let from = if at == segment { line } else { 0 };
        for line in &mut lines[from..] {
            (*line, previous) = rehash(line, &previous);
        }
    }
    let text = fs::read(files.head()).unwrap();
    let mut head: serde_json::Value = serde_json::from_slice(&text).unwrap();
    head["hash"] = previous
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect::<String>()
        .into();
    fs::write(files.head(), head.to_string()).unwrap();
    Some(())
}

fn assert_found(made: &Made, place: &Where, act: Act) -> Result<(), TestCaseError> {
    match (check(&made.folder), place) {
        (Ok(verified), _) => Err(TestCaseError::fail(format!(
            "{act:?} was not found: {verified:?}"
        ))),
        (Err(broken), Where::At(places)) => {
            let found = (broken.file.clone(), broken.line);
            prop_assert!(
                places.contains(&found),
                "{act:?} was seen elsewhere: {broken}, not {places:?}"
            );
            Ok(())
        }
        (Err(_), Where::Anywhere) => Ok(()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 192,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_tampering_is_found_and_its_place_is_named(
        plan in plan(),
        act in prop::sample::select(&ACTS[..]),
        random in any::<[u64; 3]>(),
    ) {
        let made = make(&plan);
        let whole = check(&made.folder);
        prop_assert!(whole.is_ok(), "untouched: {whole:?}");
        let Some(place) = tamper(&made, act, random) else {
            return Ok(());
        };
        assert_found(&made, &place, act)?;
    }

    /// Where there is no key, a whole new history can be made; but not one with the heads that
    /// callers got.
    #[test]
    fn a_head_that_is_kept_elsewhere_proves_more_than_the_log(
        plan in plan(),
        rewrite in any::<bool>(),
        random in any::<u64>(),
    ) {
        let made = make(&Plan { key: None, ..plan });
        let Ok(Verified { head: Some(head), .. }) = check(&made.folder) else {
            return Err(TestCaseError::fail("untouched"));
        };
        if rewrite {
            let mut files = Files::read(&made.folder);
            let (segment, line) = files.pick(random);
            // A rewritten announcement of pruning doesn't change what is checked here.
            prop_assume!(rewrite_from(&mut files, segment, line).is_some());
            files.write();
        } else {
            prop_assume!(made.copy.exists() && last_seq(&made.copy) < last_seq(made.folder.path()));
            replay(&made);
        }
        prop_assert!(check(&made.folder).is_ok());
        let expectation = Expectation { heads: vec![head], key: None };
        prop_assert!(verify(&made.folder, &expectation).unwrap().is_err());
    }

    /// A writer is killed at any byte of what it appends, before it has said so in the head.
    #[test]
    fn a_writer_that_is_killed_leaves_a_log_that_goes_on(
        plan in plan(),
        cut in any::<u64>(),
        next in 0..4_u64,
    ) {
        let made = make(&Plan { prune: None, ..plan });
        prop_assume!(made.copy.exists());
        let folder = &made.folder;
        let text = fs::read(made.copy.join("head.json")).unwrap();
        let head: serde_json::Value = serde_json::from_slice(&text).unwrap();
        let (number, length) = (head["segment"].as_u64().unwrap(), head["length"].as_u64().unwrap());
        for segment in folder.segments().unwrap() {
            if segment.number > number + 1 || (segment.number == number + 1 && next != 1) {
                fs::remove_file(segment.path).unwrap();
            }
        }
        let (path, least) = match next {
            // The next segment was begun.
            1 if folder.segment(number + 1).path.exists() => (folder.segment(number + 1).path, 0),
            _ => (folder.segment(number).path, length),
        };
        let text = fs::read(&path).unwrap();
        let keep = least + cut % (text.len() as u64 - least + 1);
        fs::write(&path, &text[..keep as usize]).unwrap();
        for file in ["head.json", "checkpoints.jsonl", "signing-key.der", "signing-key.pub"] {
            let to = folder.path().join(file);
            if fs::copy(made.copy.join(file), &to).is_err() {
                fs::remove_file(&to).unwrap_or(());
            }
        }
        let left = check(folder);
        prop_assert!(left.is_ok(), "after the kill: {left:?}");
        let torn = left.unwrap().torn_bytes;
        let recorder = recorder(folder, Retention::default(), run(99));
        recorder.decide(None, &started("a/b", AuditLevel::Security)).unwrap();
        recorder.finish(&ended(Status::Ok, &[])).unwrap();
        let after = check(folder);
        prop_assert!(after.is_ok(), "after the next call: {after:?}");
        prop_assert_eq!(after.unwrap().torn_bytes, 0);
        let all: Vec<u8> = folder.segments().unwrap().iter()
            .flat_map(|s| fs::read(&s.path).unwrap()).collect();
        let told = format!("\"event\":\"recovered\",\"data\":{{\"torn_bytes\":{torn}}}");
        let told = String::from_utf8(all).unwrap().contains(&told);
        prop_assert_eq!(told, torn > 0);
    }
}

/// The very first line of a log, cut at each of its bytes.
#[test]
fn a_log_whose_first_writer_was_killed_begins_again() {
    let made = make(&Plan {
        calls: vec![1],
        segment_bytes: 1 << 20,
        key: None,
        prune: None,
        copy: 9,
    });
    let path = made.folder.segment(1).path;
    let text = fs::read(&path).unwrap();
    let first = text.iter().position(|b| *b == b'\n').unwrap() + 1;
    for keep in 0..=first {
        fs::write(&path, &text[..keep]).unwrap();
        fs::write(made.folder.path().join("head.json"), b"").unwrap();
        assert!(check(&made.folder).is_ok(), "{keep}");
        let recorder = recorder(&made.folder, Retention::default(), run(1));
        recorder
            .decide(None, &started("a/b", AuditLevel::Security))
            .unwrap();
        assert!(check(&made.folder).is_ok(), "{keep}");
    }
}

#[test]
fn pruning_that_was_stopped_half_way_leaves_a_whole_log() {
    let made = make(&Plan {
        calls: vec![10; 6],
        segment_bytes: 1_500,
        key: Some(0),
        prune: None,
        copy: 5,
    });
    let retention = Retention {
        keep_bytes: Some(4_000),
        ..Retention::default()
    };
    let mut log = Log::open(made.folder.clone(), Retention::default()).unwrap();
    let gone = log.prune(&retention).unwrap();
    assert!(gone.len() > 3);
    // Nothing removed yet, all but one, and so on; oldest first.
    for back in (0..gone.len()).rev() {
        let segment = &gone[back];
        let was = made.copy.join(segment.path.file_name().unwrap());
        fs::copy(was, &segment.path).unwrap();
        let verified = check(&made.folder).unwrap();
        assert_eq!(verified.last_seq, last_seq(made.folder.path()));
    }
    // What is left over is checked like the rest.
    fs::remove_file(&gone[0].path).unwrap();
    let text = fs::read(&gone[2].path).unwrap();
    let mut changed = text.clone();
    changed[text.len() / 2] ^= 1;
    fs::write(&gone[2].path, changed).unwrap();
    assert_eq!(check(&made.folder).unwrap_err().file, gone[2].path);
    fs::write(&gone[2].path, &text).unwrap();
    assert!(check(&made.folder).is_ok());
    // The next pruning takes it along.
    log.prune(&retention).unwrap();
    assert!(!gone.iter().any(|s| s.path.exists()));
    assert!(check(&made.folder).is_ok());
}

#[test]
fn half_a_checkpoint_does_not_spoil_the_next_one() {
    let plan = Plan {
        calls: vec![1, 1],
        segment_bytes: 1 << 20,
        key: Some(0),
        prune: None,
        copy: 9,
    };
    let made = make(&plan);
    let path = made.folder.checkpoints();
    let text = fs::read(&path).unwrap();
    fs::write(&path, &text[..text.len() - 40]).unwrap();
    assert!(check(&made.folder).is_ok());
    let recorder = recorder(&made.folder, Retention::default(), run(9));
    recorder.finish(&ended(Status::Ok, &[])).unwrap();
    let verified = check(&made.folder).unwrap();
    assert_eq!(verified.signed_seq, Some(verified.last_seq));
}

/// So neither the first call that goes on, or is killed, is taken for a fault, nor a log of which
/// everything but the key was taken away for one that has not begun.
#[test]
fn a_key_signs_from_its_beginning_on() {
    let dir = tempfile::tempdir().unwrap();
    let folder = Folder::at(dir.path().join("audit"));
    keygen(&folder).unwrap();
    let made = check(&folder).unwrap();
    assert_eq!((made.lines, made.checkpoints), (0, 1));
    let recorder = recorder(&folder, Retention::default(), run(1));
    recorder
        .decide(None, &started("a/b", AuditLevel::Security))
        .unwrap();
    let going_on = check(&folder).unwrap();
    assert!(going_on.signed_seq < Some(going_on.last_seq));
    recorder.finish(&ended(Status::Ok, &[])).unwrap();
    let over = check(&folder).unwrap();
    assert_eq!(over.signed_seq, Some(over.last_seq));
    for wipe in ["00000001.jsonl", "head.json", "checkpoints.jsonl"] {
        fs::remove_file(folder.path().join(wipe)).unwrap();
        assert!(check(&folder).is_err(), "without {wipe}");
    }
    fs::write(folder.checkpoints(), "").unwrap();
    assert!(check(&folder).is_err(), "with no checkpoint at all");
}

#[test]
fn a_busy_log_is_whole_at_every_moment() {
    let dir = tempfile::tempdir().unwrap();
    let folder = Folder::at(dir.path().join("audit"));
    keygen(&folder).unwrap();
    let retention = Retention {
        segment_bytes: 2_000,
        ..Retention::default()
    };
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..3)
            .map(|n| {
                let folder = folder.clone();
                scope.spawn(move || {
                    for call in 0..20 {
                        let recorder = recorder(&folder, retention, run(100 * n + call));
                        for event in 0..6 {
                            let path = format!("/tmp/{event}");
                            recorder
                                .decide(None, &opened(&path, Access::Write))
                                .unwrap();
                        }
                        recorder.finish(&ended(Status::Ok, &[])).unwrap();
                    }
                })
            })
            .collect();
        let mut checked = 0;
        while !writers.iter().all(|w| w.is_finished()) {
            let verified = check(&folder);
            assert!(verified.is_ok(), "{verified:?}");
            checked += 1;
        }
        assert!(checked > 0);
    });
    assert_eq!(
        check(&folder).unwrap().signed_seq,
        Some(last_seq(folder.path()))
    );
}
