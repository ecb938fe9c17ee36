"""An append-only Merkle log: RFC 9162 hashes and proofs, tiles of C2SP tlog-tiles."""
