//! Safe wrappers over the kernel interfaces that make a cell
