//! The system calls that turn a process into what an image holds, as a table that is carried out
//! from a page of its own, when nothing else of the process is left.

use super::vmas::{self, Vma};
use super::{Area, Content, Image};
use crate::error::{LinuxError, Result, Step};
use rustix::io::Errno;

const PAGE: u64 = 4096;
/// Where user memory ends with four-level page tables.
const TOP: u64 = 0x7fff_ffff_f000;
/// The lowest address that anything is looked for at.
const BOTTOM: u64 = 0x1000;
/// What a stack may grow to, and what stays free below that.
const STACK: u64 = 8 << 20;
const STACK_GAP: u64 = 1 << 20;
/// The payload keeps its handshake here until its image stands.
pub(super) const FIRST_OWN: u64 = 5;
/// The image's memory, then its files.
pub(crate) const FIRST_IMAGE: u64 = 6;

/// What a row asks for beside system calls, in place of a number.
pub(super) const STORE: u64 = u64::MAX - 1;
pub(super) const DONE: u64 = u64::MAX;

/// A system call, six arguments, and whether it may fail.
pub(super) type Row = [u64; 8];

const MAY_FAIL: u64 = 1;
const MREMAP_MOVE_TO: u64 = 3;

fn call(nr: libc::c_long, args: &[u64]) -> Row {
    let mut row = [0; 8];
    row[0] = nr as u64;
    row[1..=args.len()].copy_from_slice(args);
    row
}

fn map(area: &Area, fd: u64, offset: u64, flags: i32) -> Row {
    let flags = flags | libc::MAP_PRIVATE | libc::MAP_FIXED;
    call(
        libc::SYS_mmap,
        &[
            area.start,
            area.end - area.start,
            area.protection as u64,
            flags as u64,
            fd,
            offset,
        ],
    )
}

/// Room that neither this process nor the image uses.
pub(super) fn free_room(image: &Image, size: u64) -> Result<u64> {
    let own = own_areas()?;
    let taken = own
        .iter()
        .map(|v| (v.start, v.end))
        .chain(image.areas.iter().map(|a| (stack_floor(image, a), a.end)))
        .chain(image.vdso.iter().copied());
    let taken: Vec<(u64, u64)> = taken.collect();
    let mut at = 0x1000_0000_0000;
    while at + size < TOP {
        match taken
            .iter()
            .find(|(start, end)| at < *end && at + size > *start)
        {
            None => return Ok(at),
            Some((_, end)) => at = (end + (2 << 20)) & !((2 << 20) - 1),
        }
    }
    Err(LinuxError::new(Step::Resume, Errno::NOMEM))
}

fn own_areas() -> Result<Vec<Vma>> {
    let text = std::fs::read("/proc/self/maps").map_err(|e| LinuxError::io(Step::Resume, &e))?;
    vmas::parse(&text).ok_or(LinuxError::new(Step::Resume, Errno::PROTO))
}

/// How far down an area reaches: a stack has room below.
fn stack_floor(image: &Image, area: &Area) -> u64 {
    if area.content != Content::Stack {
        return area.start;
    }
    let below = image
        .areas
        .iter()
        .map(|a| a.end)
        .filter(|end| *end <= area.start);
    let free = below.max().unwrap_or(BOTTOM) + STACK_GAP;
    area.start.min(free.max(area.end.saturating_sub(STACK)))
}

/// Everything up to the last jump. `room` is what is not to be unmapped; its last pages, `spare`,
/// may be used to keep the kernel's pages in for a moment.
pub(super) fn rows(image: &Image, room: (u64, u64), spare: u64) -> Result<Vec<Row>> {
    let own: Vec<(u64, u64)> = own_areas()?
        .iter()
        .filter(|v| v.is_vdso())
        .map(|v| (v.start, v.end))
        .collect();
    let size = |vdso: &[(u64, u64)]| -> Vec<u64> { vdso.iter().map(|(s, e)| e - s).collect() };
    let moved: u64 = size(&own).iter().sum();
    if size(&own) != size(&image.vdso) || spare + moved > room.1 {
        return Err(LinuxError::new(Step::Resume, Errno::NOTSUP));
    }
    let mut rows = Vec::new();
    let mut kept = own.clone();
    kept.push(room);
    kept.sort_unstable();
    let mut at = BOTTOM;
    for (start, end) in kept.into_iter().chain([(TOP, TOP)]) {
        if at < start {
            rows.push(call(libc::SYS_munmap, &[at, start - at]));
        }
        at = end;
    }
    let mut aside = spare;
    for (start, end) in &own {
        let len = end - start;
        rows.push(call(
            libc::SYS_mremap,
            &[*start, len, len, MREMAP_MOVE_TO, aside],
        ));
        aside += len;
    }
    let mut stack_is_mapped = false;
    for area in image.areas.iter() {
        rows.extend(match area.content {
            Content::Stack if !stack_is_mapped => {
                stack_is_mapped = true;
                let floor = stack_floor(image, area);
                let whole = Area {
                    start: floor,
                    ..*area
                };
                (whole.start < whole.end).then(|| {
                    map(
                        &whole,
                        u64::MAX,
                        0,
                        libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                    )
                })
            }
            Content::Zero | Content::Stack => Some(map(
                area,
                u64::MAX,
                0,
                libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            )),
            Content::Image(offset) => Some(map(area, FIRST_IMAGE, offset, 0)),
            Content::File(file, offset) => {
                Some(map(area, FIRST_IMAGE + 1 + file as u64, offset, 0))
            }
        });
    }
    let mut aside = spare;
    for (start, end) in &image.vdso {
        let len = end - start;
        rows.push(call(
            libc::SYS_mremap,
            &[aside, len, len, MREMAP_MOVE_TO, *start],
        ));
        aside += len;
    }
    let state = &image.state;
    rows.push(call(libc::SYS_set_tid_address, &[state.clear_tid]));
    rows.push(call(
        libc::SYS_set_robust_list,
        &[state.robust_list.0, state.robust_list.1],
    ));
    rows.push(call(
        libc::SYS_arch_prctl,
        &[ARCH_SET_FS, state.registers.fs_base],
    ));
    if let Some(rseq) = state.rseq {
        let args = [rseq.address, rseq.size.into(), 0, rseq.signature.into()];
        let mut row = call(libc::SYS_rseq, &args);
        row[7] = MAY_FAIL; // the C library asks the kernel where it has no such area
        rows.push(row);
    }
    rows.push(call(
        libc::SYS_close_range,
        &[FIRST_OWN, u32::MAX.into(), 0],
    ));
    Ok(rows)
}

const ARCH_SET_FS: u64 = 0x1002;

/// The number of the process itself, as the C library keeps it: to be filled in by each.
pub(super) fn own_number(image: &Image) -> Row {
    let mut row = [0; 8];
    row[0] = STORE;
    row[1] = image.state.clear_tid;
    row
}

pub(super) fn pages(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(PAGE) * PAGE
}
