//! Makes cells from plans, one module per kind of cell
