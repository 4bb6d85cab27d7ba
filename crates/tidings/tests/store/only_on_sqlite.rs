//! What only a file can do: be damaged, be shared by two processes, be no file at all.
