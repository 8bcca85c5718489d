//! What the kernel says about the native threads of this process. Uses nothing of Ruby's, so it can be asked while a
//! thread holds the GVL.

use std::fs;
use std::time::Duration;

use crate::ruby::outcome::Ignore;

/// A native thread.
pub struct Native {
    id: u32,
    name: String,
    /// The letter of proc_pid_stat(5): R runs or can run, S waits.
    state: char,
    /// The time that it has spent on a CPU, in clock ticks.
    ticks: u64,
}

/// All native threads; none where the kernel has no /proc.
pub fn all() -> Vec<Native> {
    let Some(tasks) = fs::read_dir("/proc/self/task").ignored("no /proc") else { return Vec::new() };
    let number = |task: std::io::Result<fs::DirEntry>| {
        task.ignored("no /proc")?.file_name().to_str()?.parse().ignored("no thread")
    };
    tasks.filter_map(|task| read(number(task)?)).collect()
}

/// Why a number of proc_pid_stat(5) is unknown.
const FORMAT: &str = "another format";

fn read(id: u32) -> Option<Native> {
    parse(id, &fs::read_to_string(format!("/proc/self/task/{id}/stat")).ignored("it has ended")?)
}

/// Parses `id (name) state …`. The name may contain spaces and parentheses.
fn parse(id: u32, stat: &str) -> Option<Native> {
    let (head, tail) = stat.rsplit_once(") ")?;
    let name = head.split_once('(')?.1.to_owned();
    let fields: Vec<&str> = tail.split(' ').collect();
    // Fields 14 and 15 of the manual; `tail` begins with the third.
    let ticks = fields.get(11)?.parse::<u64>().ignored(FORMAT)? + fields.get(12)?.parse::<u64>().ignored(FORMAT)?;
    Some(Native { id, name, state: fields.first()?.chars().next()?, ticks })
}

/// The text for a dump that has not begun in time. The threads that have computed most since then come first.
pub fn report(waited: Duration, before: &[Native], now: &[Native]) -> String {
    let mut text = format!(
        "Heddle.dump_on: no dump has begun {} s after the signal, as a thread of process {} runs C code that does not \
         release the GVL. Native threads, with the CPU time that they have used since the signal:\n",
        waited.as_secs_f64(),
        std::process::id(),
    );
    let used = |thread: &Native| {
        let earlier = before.iter().find(|other| other.id == thread.id).map_or(0, |other| other.ticks);
        thread.ticks.saturating_sub(earlier)
    };
    let mut threads: Vec<&Native> = now.iter().collect();
    threads.sort_by_key(|thread| std::cmp::Reverse(used(thread)));
    for thread in threads {
        let state = if thread.state == 'R' { "runs" } else { "waits" };
        let seconds = used(thread) as f64 / ticks_per_second();
        text.push_str(&format!("  thread {} ({}): {state}, {seconds:.2} s\n", thread.id, thread.name));
    }
    text
}

fn ticks_per_second() -> f64 {
    // SAFETY: takes a number and returns one.
    unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_contain_parentheses() {
        let thread = parse(7, "7 (a (b) c) R 1 2 3 4 5 6 7 8 9 10 11 12 13 14").unwrap();
        assert_eq!((thread.id, thread.name.as_str(), thread.state, thread.ticks), (7, "a (b) c", 'R', 23));
    }
}
