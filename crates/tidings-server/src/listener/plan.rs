//! What the receiver does with each request.

/// How a request is failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// With this status, and this Retry-After.
    Status(u16, Option<String>),
    /// By never answering.
    Hang,
    /// By resetting the connection after the request was read.
    Reset,
}

/// Which requests are failed, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// How many; `None` is all of them.
    pub(crate) fail: Option<u64>,
    /// How.
    pub(crate) failure: Failure,
}

/// What is done with one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// It is accepted.
    Accept,
    /// It is failed.
    Fail(Failure),
}

impl Plan {
    /// For the request of that number, from 1.
    pub(crate) fn reply(&self, number: u64) -> Reply {
        let fails = self.fail.is_none_or(|fail| number <= fail);
        if fails { Reply::Fail(self.failure.clone()) } else { Reply::Accept }
    }
}

impl Reply {
    /// In words.
    pub(crate) fn words(&self) -> String {
        match self {
            Reply::Accept => "answered 200".to_owned(),
            Reply::Fail(Failure::Status(status, None)) => format!("answered {status}"),
            Reply::Fail(Failure::Status(status, Some(wait))) => {
                format!("answered {status} with Retry-After {}", crate::print::shown(wait))
            }
            Reply::Fail(Failure::Hang) => "left without an answer".to_owned(),
            Reply::Fail(Failure::Reset) => "reset the connection".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_n_requests_fail_and_the_rest_is_accepted() {
        let plan = Plan { fail: Some(2), failure: Failure::Hang };
        let replies: Vec<bool> = (1..=4).map(|number| plan.reply(number) == Reply::Accept).collect();
        assert_eq!(replies, [false, false, true, true]);
        assert_eq!(Plan { fail: None, failure: Failure::Hang }.reply(9), Reply::Fail(Failure::Hang));
    }
}
