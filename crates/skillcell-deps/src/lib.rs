//! Builds and caches dependency environments inside a build cell
