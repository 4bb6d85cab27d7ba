//! What only a server can do: go away, come back, refuse to write, pass messages on.
