//! Where the next page begins, as text that callers pass back and do not read.

use tidings::JobId;

/// A first letter for its form, so that another form can come later.
const FORM: char = 'a';

/// The page after this job.
pub(crate) fn after(id: JobId) -> String {
    let id = id.to_string();
    format!("{FORM}{}", id.strip_prefix("job_").unwrap_or(&id))
}

/// The job that a cursor stands for.
pub(crate) fn parse(cursor: &str) -> Option<JobId> {
    let hex = cursor.strip_prefix(FORM)?;
    format!("job_{hex}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_reads_back_as_the_job_that_it_was_made_of() {
        let id: JobId = "job_0198c0de000070008000000000000001".parse().unwrap();
        assert_eq!(parse(&after(id)), Some(id));
        for bad in ["", "a", "b0198c0de000070008000000000000001", "job_0198c0de000070008000000000000001"] {
            assert_eq!(parse(bad), None);
        }
    }
}
