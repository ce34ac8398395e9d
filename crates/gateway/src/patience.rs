//! How the system schedules a connection's thread.
//!
//! Such a thread waits for a client's answer, and the client's engine wakes many of them in one pass. By default each
//! may take the processor from the engine at once: then the pass ends late, the next bundle is short, and every replica
//! pays for that.

#![allow(unsafe_code)]

/// From now on this thread takes no processor from another one when it is woken: it waits until there is one, or its
/// turn comes. That is all that `SCHED_BATCH` means; its share is as before. Where there is no such thing, nothing
/// changes.
pub(crate) fn be_patient() {
    #[cfg(target_os = "linux")]
    {
        let parameters = libc::sched_param { sched_priority: 0 };
        // SAFETY: 0 is this thread, and the parameters are read before the call returns. Where it is refused, in a
        // sandbox, the thread is scheduled as before, which costs time and nothing else.
        let _ = unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &raw const parameters) };
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_patient_thread_is_of_the_batch_policy() {
        // Field 41 of proc_pid_stat(5), the 39th behind the name.
        let policy = || {
            let stat = fs::read_to_string("/proc/thread-self/stat").unwrap();
            stat.rsplit(") ").next().unwrap().split(' ').nth(38).unwrap().parse::<i32>().unwrap()
        };
        std::thread::spawn(move || {
            assert_eq!(policy(), libc::SCHED_OTHER);
            be_patient();
            assert_eq!(policy(), libc::SCHED_BATCH);
        })
        .join()
        .unwrap();
    }
}
