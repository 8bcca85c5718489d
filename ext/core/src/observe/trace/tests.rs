use super::*;

fn ring(capacity: usize) -> Rc<RefCell<Ring>> {
    Rc::new(RefCell::new(Ring::new(capacity).expect("there is memory")))
}

fn last(ring: &Rc<RefCell<Ring>>) -> TraceRecord {
    *ring.borrow().iter().last().expect("there is a record")
}

fn fibers(ring: &Rc<RefCell<Ring>>) -> Vec<u64> {
    ring.borrow().iter().map(|record| record.fiber).collect()
}

const SLEEP: Subject = Subject { what: 4, value: 0, detail: 0 };

#[test]
fn a_full_ring_drops_the_oldest_records_and_counts_them() {
    let ring = ring(3);
    let mut track = Track::new(Rc::clone(&ring), 1);
    (1..=8).for_each(|fiber| track.switch(fiber, SLEEP));
    assert_eq!(fibers(&ring), [6, 7, 8]);
    assert_eq!((ring.borrow().len(), ring.borrow().dropped()), (3, 5));
}

#[test]
fn a_ring_allocates_nothing_when_it_records() {
    let ring = ring(100);
    let before = ring.borrow().records.capacity();
    let mut track = Track::new(Rc::clone(&ring), 1);
    (1..=1000).for_each(|fiber| track.switch(fiber, SLEEP));
    assert_eq!(ring.borrow().records.capacity(), before);
}

#[test]
fn a_ring_that_does_not_fit_into_memory_is_an_error() {
    assert!(Ring::new(usize::MAX / 2).is_err());
}

#[test]
fn records_are_in_the_order_of_their_time() {
    let ring = ring(10);
    let mut track = Track::new(Rc::clone(&ring), 1);
    (1..=20).for_each(|fiber| track.switch(fiber, SLEEP));
    assert!(ring.borrow().iter().map(|record| record.time).is_sorted());
}

#[test]
fn bytes_are_those_of_the_records_from_a_position_on() {
    let ring = ring(3);
    let mut track = Track::new(Rc::clone(&ring), 7);
    (1..=5).for_each(|fiber| track.switch(fiber, SLEEP));
    let ring = ring.borrow();
    assert_eq!(ring.bytes(0, 10).len(), 3 * RECORD_SIZE);
    assert_eq!(ring.bytes(3, 10), []);
    let second = ring.bytes(1, 1);
    assert_eq!(second[8..16], 4_u64.to_le_bytes());
    assert_eq!(second[28..], [7, 0, 0, 0, Kind::Switch as u8, 4]);
}

#[test]
fn a_fiber_is_woken_by_the_running_fiber_of_the_thread_on_whichever_track() {
    let ring = ring(10);
    let (mut one, two) = (Track::new(Rc::clone(&ring), 1), Track::new(Rc::clone(&ring), 2));
    one.switch(5, SLEEP);
    two.wake(6);
    let TraceRecord { what, value, detail, track, .. } = last(&ring);
    assert_eq!((what, value, detail, track), (WakeSource::Fiber as u8, 1, 5, 2));
}

#[test]
fn a_fiber_is_woken_by_the_source_that_is_set() {
    let ring = ring(10);
    let mut track = Track::new(Rc::clone(&ring), 1);
    track.switch(5, SLEEP);
    track.set_source(Some(WakeSource::Timer));
    track.wake(6);
    assert_eq!(last(&ring).what, WakeSource::Timer as u8);
}

#[test]
fn a_fiber_is_woken_by_the_thread_if_no_fiber_runs() {
    let ring = ring(10);
    let mut track = Track::new(Rc::clone(&ring), 1);
    track.wake(6);
    assert_eq!(last(&ring).what, WakeSource::Thread as u8);
    track.switch(5, SLEEP);
    drop(track);
    Track::new(Rc::clone(&ring), 2).wake(6);
    assert_eq!(last(&ring).what, WakeSource::Thread as u8);
}

#[test]
fn a_slice_ends_once() {
    let ring = ring(10);
    let mut track = Track::new(Rc::clone(&ring), 1);
    track.switch(5, SLEEP);
    track.leave(5, SLEEP);
    track.leave(5, SLEEP);
    assert_eq!(fibers(&ring), [5, 5]);
    assert!(!track.runs(5));
}

#[test]
fn an_attempt_has_its_result() {
    let ring = ring(10);
    Track::new(Rc::clone(&ring), 1).attempt(5, 1, 7, -libc::EIO);
    let TraceRecord { value, detail, .. } = last(&ring);
    assert_eq!((value, detail as u32 as i32), (7, -libc::EIO));
}

#[test]
fn operations_begin_when_their_fiber_leaves() {
    let ring = ring(10);
    let mut track = Track::new(Rc::clone(&ring), 1);
    track.switch(5, SLEEP);
    track.operation_begin(5, 1, 7, 0);
    track.operation_begin(5, 1, 8, 1);
    track.leave(5, SLEEP);
    let times: Vec<u64> = ring.borrow().iter().map(|record| record.time).collect();
    assert!(times[0] < times[1] && times[1..].iter().all(|time| *time == times[3]));
}

#[test]
fn operations_get_their_time_although_the_ring_is_full() {
    let ring = ring(2);
    let mut track = Track::new(Rc::clone(&ring), 1);
    (0..5).for_each(|token| track.operation_begin(5, 1, 7, token));
    track.switch(5, SLEEP);
    let ring = ring.borrow();
    assert!(ring.iter().all(|record| record.time == ring.iter().last().expect("there is one").time));
}

#[test]
fn what_one_source_wakes_is_woken_at_one_time() {
    let ring = ring(10);
    let mut track = Track::new(Rc::clone(&ring), 1);
    track.set_source(Some(WakeSource::Timer));
    (1..=5).for_each(|fiber| track.wake(fiber));
    let first = ring.borrow().iter().next().map(|record| record.time);
    assert!(ring.borrow().iter().all(|record| Some(record.time) == first));
    track.set_source(None);
    track.wake(6);
    assert!(Some(last(&ring).time) > first);
}

#[test]
fn a_completion_and_what_it_wakes_are_one_record() {
    let ring = ring(10);
    let mut track = Track::new(Rc::clone(&ring), 1);
    track.set_source(Some(WakeSource::Completion));
    track.operation_end(3, 512, Some(7));
    track.wake(7);
    let TraceRecord { kind, fiber, what, value, detail, .. } = last(&ring);
    assert_eq!((kind, fiber, what, value, detail), (Kind::OperationEnd, 7, 1, 512, 3));
    assert_eq!(ring.borrow().len(), 1);
}
