//! Where the next page begins, as text that callers pass back and do not read.

use tidings::JobId;
use tidings::core::event::EventId;

/// A first letter for what it is a place in, so that another form can come later.
const JOBS: char = 'a';
const EVENTS: char = 'e';

/// The page after this job.
pub(crate) fn after(id: JobId) -> String {
    id.to_string().replacen("job_", &JOBS.to_string(), 1)
}

/// The page after this event.
pub(crate) fn after_event(id: EventId) -> String {
    id.to_string().replacen("evt_", &EVENTS.to_string(), 1)
}

/// The job that a cursor stands for.
pub(crate) fn parse(cursor: &str) -> Option<JobId> {
    format!("job_{}", cursor.strip_prefix(JOBS)?).parse().ok()
}

/// The event that a cursor stands for.
pub(crate) fn parse_event(cursor: &str) -> Option<EventId> {
    format!("evt_{}", cursor.strip_prefix(EVENTS)?).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_reads_back_as_what_it_was_made_of() {
        let id: JobId = "job_0198c0de000070008000000000000001".parse().unwrap();
        let event: EventId = "evt_0198c0de000070008000000000000001".parse().unwrap();
        assert_eq!((parse(&after(id)), parse_event(&after_event(event))), (Some(id), Some(event)));
        assert_eq!((parse(&after_event(event)), parse_event(&after(id))), (None, None));
        for bad in ["", "a", "e", "b0198c0de000070008000000000000001", "job_0198c0de000070008000000000000001"]
        {
            assert_eq!((parse(bad), parse_event(bad)), (None, None));
        }
    }
}
