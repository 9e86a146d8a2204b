//! Finds, reads and fingerprints skill bundles on disk
