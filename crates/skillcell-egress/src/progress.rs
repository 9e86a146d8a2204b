/// What a parser knows of the bytes so far. It depends on these bytes only, not on how they
/// arrived; and more bytes never change a `Done` or a `Malformed`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress<T> {
    NeedMore,
    Done(T),
    /// Why, in plain words.
    Malformed(&'static str),
}
