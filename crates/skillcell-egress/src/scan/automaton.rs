use std::collections::{BTreeMap, VecDeque};

/// Aho and Corasick's automaton. Ours and not the well-known crate's, because we must know how
/// long the partial match is at which a chunk ends: that is what has to be held back.
pub(super) struct Automaton {
    nodes: Vec<Node>,
}

#[derive(Default)]
struct Node {
    next: BTreeMap<u8, u32>,
    /// The node of the longest proper end of this one's word that is also a beginning.
    fall_back: u32,
    depth: u32,
    /// The longest word that ends here.
    word: Option<Word>,
}

/// Its place in the list that the automaton was made of, and its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) index: usize,
    pub(super) length: usize,
}

impl Automaton {
    pub(super) const START: u32 = 0;

    pub(super) fn new(words: &[Vec<u8>]) -> Self {
        let mut this = Self {
            nodes: vec![Node::default()],
        };
        for (index, word) in words.iter().enumerate() {
            this.insert(index, word);
        }
        this.link();
        this
    }

    fn node(&self, at: u32) -> Option<&Node> {
        self.nodes.get(at as usize)
    }

    fn insert(&mut self, index: usize, word: &[u8]) {
        if word.is_empty() {
            return;
        }
        let mut at = Self::START;
        for byte in word {
            let fresh = self.nodes.len() as u32;
            let Some(node) = self.nodes.get_mut(at as usize) else {
                return;
            };
            let depth = node.depth + 1;
            at = *node.next.entry(*byte).or_insert(fresh);
            if at == fresh {
                self.nodes.push(Node {
                    depth,
                    ..Node::default()
                });
            }
        }
        if let Some(node) = self.nodes.get_mut(at as usize) {
            let length = word.len();
            node.word.get_or_insert(Word { index, length });
        }
    }

    fn link(&mut self) {
        let mut queue = VecDeque::from([Self::START]);
        while let Some(at) = queue.pop_front() {
            let Some(node) = self.node(at) else { continue };
            let fall_back = node.fall_back;
            let edges: Vec<(u8, u32)> = node.next.iter().map(|(b, n)| (*b, *n)).collect();
            for (byte, child) in edges {
                let target = if at == Self::START {
                    Self::START
                } else {
                    self.next(fall_back, byte)
                };
                let within = self.word(target);
                if let Some(node) = self.nodes.get_mut(child as usize) {
                    node.fall_back = target;
                    // Its own is longer than one that begins later.
                    node.word = node.word.or(within);
                }
                queue.push_back(child);
            }
        }
    }

    pub(super) fn next(&self, mut at: u32, byte: u8) -> u32 {
        loop {
            let Some(node) = self.node(at) else {
                return Self::START;
            };
            if let Some(next) = node.next.get(&byte) {
                return *next;
            }
            if at == Self::START {
                return Self::START;
            }
            at = node.fall_back; // always nearer to the start
        }
    }

    pub(super) fn is_match(&self, at: u32) -> bool {
        self.word(at).is_some()
    }

    pub(super) fn word(&self, at: u32) -> Option<Word> {
        self.node(at).and_then(|node| node.word)
    }

    /// Whether no longer word goes on from here.
    pub(super) fn is_leaf(&self, at: u32) -> bool {
        self.node(at).is_none_or(|node| node.next.is_empty())
    }

    pub(super) fn depth(&self, at: u32) -> usize {
        self.node(at).map_or(0, |node| node.depth as usize)
    }
}
