//! Reading a request's head off the wire, leniently: what a sink sent is
//! reported, not judged.

/// The parts of a request head.
pub(super) struct Head {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) headers: Vec<(String, Vec<u8>)>,
    /// Bytes of the head, with the empty line.
    pub(super) bytes: usize,
}

/// How the body's end is known.
pub(super) enum Framing {
    Length(usize),
    Chunked,
}

/// The head at the start of `bytes`, once its empty line is there.
pub(super) fn parse(bytes: &[u8]) -> Option<Head> {
    let end = find(bytes, b"\r\n\r\n")?;
    let mut lines = bytes[..end].split(|byte| *byte == b'\n').map(|line| line.trim_ascii());
    let request_line = String::from_utf8_lossy(lines.next().unwrap_or_default()).into_owned();
    let mut words = request_line.split(' ');
    let method = words.next().unwrap_or_default().to_owned();
    let path = words.next().unwrap_or_default().to_owned();
    let headers = lines
        .map(|line| {
            let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
            let name = String::from_utf8_lossy(&line[..colon]).into_owned();
            let value = line.get(colon + 1..).unwrap_or_default().trim_ascii().to_vec();
            (name, value)
        })
        .collect();
    Some(Head { method, path, headers, bytes: end + 4 })
}

impl Head {
    pub(super) fn framing(&self) -> Framing {
        let value = |wanted: &str| {
            let (_, value) = self.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted))?;
            std::str::from_utf8(value).ok()
        };
        match value("transfer-encoding") {
            Some(coding) if coding.eq_ignore_ascii_case("chunked") => Framing::Chunked,
            _ => Framing::Length(value("content-length").and_then(|text| text.parse().ok()).unwrap_or(0)),
        }
    }
}

/// Body bytes that `bytes` holds, and whether they are the whole body.
pub(super) fn body(framing: &Framing, bytes: &[u8]) -> (Vec<u8>, bool) {
    match framing {
        Framing::Length(length) => (bytes[..bytes.len().min(*length)].to_vec(), bytes.len() >= *length),
        Framing::Chunked => dechunk(bytes),
    }
}

/// Whether `bytes` holds the body to its end.
pub(super) fn body_is_complete(framing: &Framing, bytes: &[u8]) -> bool {
    match framing {
        Framing::Length(length) => bytes.len() >= *length,
        Framing::Chunked => dechunk(bytes).1,
    }
}

fn dechunk(mut bytes: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    while let Some(line_end) = find(bytes, b"\r\n") {
        let line = String::from_utf8_lossy(&bytes[..line_end]);
        let size_text = line.split(';').next().unwrap_or_default().trim();
        let Ok(size) = usize::from_str_radix(size_text, 16) else { break };
        bytes = &bytes[line_end + 2..];
        if size == 0 {
            return (body, true);
        }
        body.extend_from_slice(&bytes[..bytes.len().min(size)]);
        match bytes.get(size + 2..) {
            Some(rest) => bytes = rest,
            None => break,
        }
    }
    (body, false)
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}
