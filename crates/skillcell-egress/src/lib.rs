//! The network door: what a cell may reach
