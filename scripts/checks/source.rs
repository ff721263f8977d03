//! Reads Rust sources as far as the checks need: which modules there are, which paths they name, where `unsafe` stands
//! and which lint levels are set. Comments, literals and code that only tests compile are left out.

use std::path::{Path, PathBuf};

/// A crate's sources, found by following its `mod` declarations from the root.
#[derive(Debug, Default)]
pub struct Crate {
    pub files: Vec<PathBuf>,
    /// Every module, inline ones too, with the file that holds it; the root is the first.
    pub modules: Vec<(Vec<String>, PathBuf)>,
    /// Names of the modules directly below the root.
    pub top_modules: Vec<String>,
    /// Paths that start with `crate`, `super` or `self`.
    pub uses: Vec<Use>,
    /// All other paths, as if they began in the module where they stand: `child::f`, and `std::fs` too.
    pub relative: Vec<Use>,
    /// Names that a module brings in, or passes on: the module, the name, and the path behind it.
    pub imports: Vec<(Vec<String>, String, Vec<String>)>,
    /// Names that the root passes on, each with the path behind it.
    pub exports: Vec<(String, Vec<String>)>,
    pub unsafe_code: Vec<Place>,
    pub lints: Vec<Lint>,
}

/// A position, and the module it belongs to (empty for the root).
#[derive(Clone, Debug)]
pub struct Place {
    pub module: Vec<String>,
    pub file: PathBuf,
    pub line: u32,
}

/// A path that the code names, from the crate's root.
#[derive(Clone, Debug)]
pub struct Use {
    pub place: Place,
    pub path: Vec<String>,
}

/// A level set for the lint `unsafe_code`.
#[derive(Clone, Debug)]
pub struct Lint {
    /// `forbid`, `deny`, `allow`, …
    pub level: String,
    /// The module it governs; `place.module` is where it stands.
    pub module: Vec<String>,
    pub place: Place,
    /// Inside the module (`#![…]`) and not in front of an item.
    pub inner: bool,
}

impl Crate {
    /// Reads the crate whose root file is given.
    pub fn read(root: &Path) -> Result<Crate, String> {
        let mut krate = Crate::default();
        // Children of a root file lie beside it, whatever its name.
        let folder = root.parent().map(Path::to_path_buf).unwrap_or_default();
        krate.file(root, &[], &folder)?;
        Ok(krate)
    }

    fn file(&mut self, path: &Path, module: &[String], children: &Path) -> Result<(), String> {
        let text = std::fs::read_to_string(path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
        let tokens = tokens(&text).map_err(|line| format!("{}:{line}: a literal without an end", path.display()))?;
        self.files.push(path.to_path_buf());
        self.modules.push((module.to_vec(), path.to_path_buf()));
        let mut scan = Scan {
            tokens: &tokens,
            at: 0,
            file: path,
            module: module.to_vec(),
            open: Vec::new(),
            found: self,
        };
        scan.run();
        let mut declared = std::mem::take(&mut scan.open);
        for Declared { name, inside } in declared.drain(..) {
            let folder = inside[module.len()..]
                .iter()
                .fold(children.to_path_buf(), |folder, part| folder.join(part));
            let beside = folder.join(format!("{name}.rs"));
            let below = folder.join(&name).join("mod.rs");
            let file = if beside.is_file() { beside } else { below };
            let inner: Vec<String> = inside.into_iter().chain([name.clone()]).collect();
            self.file(&file, &inner, &folder.join(&name))
                .map_err(|e| format!("{e} (module `{}`, declared in {})", inner.join("::"), path.display()))?;
        }
        Ok(())
    }
}

/// A `mod name;` and the module it stands in.
struct Declared {
    name: String,
    inside: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Word(String),
    /// `::`
    Path,
    Sign(char),
}

#[derive(Clone, Debug)]
struct Token {
    kind: Kind,
    line: u32,
}

impl Token {
    fn word(&self) -> Option<&str> {
        match &self.kind {
            Kind::Word(word) => Some(word),
            _ => None,
        }
    }

    fn is(&self, sign: char) -> bool {
        self.kind == Kind::Sign(sign)
    }
}

/// Words and signs of a source text; the error is the line of a literal or comment that never ends.
fn tokens(text: &str) -> Result<Vec<Token>, u32> {
    read(text).map(|(tokens, _)| tokens)
}

/// Literals of a source text as they are written, without quotes, each with its line; the error is as of [`tokens`].
pub fn literals(text: &str) -> Result<Vec<(u32, String)>, u32> {
    read(text).map(|(_, literals)| literals)
}

fn read(text: &str) -> Result<(Vec<Token>, Vec<(u32, String)>), u32> {
    let source: Vec<char> = text.chars().collect();
    let at = |i: usize| source.get(i).copied().unwrap_or('\0');
    let (mut tokens, mut literals, mut i, mut line) = (Vec::new(), Vec::new(), 0, 1);
    while i < source.len() {
        let (c, start) = (source[i], i);
        if c == '/' && at(i + 1) == '/' {
            while i < source.len() && source[i] != '\n' {
                i += 1;
            }
        } else if c == '/' && at(i + 1) == '*' {
            i = end_of_block_comment(&source, i).ok_or(line)?;
        } else if let Some(end) = end_of_literal(&source, i) {
            i = end.ok_or(line)?;
            let literal: String = source[start..i].iter().collect();
            let inside = literal.trim_start_matches(['b', 'c', 'r', '#']).trim_end_matches('#');
            literals.push((line, inside.trim_matches(['"', '\'']).to_string()));
        } else if c == '\'' {
            // A lifetime: its name is no word of interest.
            i += 1;
            while at(i).is_alphanumeric() || at(i) == '_' {
                i += 1;
            }
        } else if c.is_alphanumeric() || c == '_' {
            if c == 'r' && at(i + 1) == '#' {
                i += 2;
            }
            let word = i;
            while at(i).is_alphanumeric() || at(i) == '_' {
                i += 1;
            }
            tokens.push(Token {
                kind: Kind::Word(source[word..i].iter().collect()),
                line,
            });
        } else if c == ':' && at(i + 1) == ':' {
            tokens.push(Token { kind: Kind::Path, line });
            i += 2;
        } else {
            if !c.is_whitespace() {
                tokens.push(Token {
                    kind: Kind::Sign(c),
                    line,
                });
            }
            i += 1;
        }
        line += source[start..i].iter().filter(|c| **c == '\n').count() as u32;
    }
    Ok((tokens, literals))
}

fn end_of_block_comment(source: &[char], start: usize) -> Option<usize> {
    let (mut depth, mut i) = (0, start);
    while i + 1 < source.len() {
        match (source[i], source[i + 1]) {
            ('/', '*') => (depth, i) = (depth + 1, i + 2),
            ('*', '/') => (depth, i) = (depth - 1, i + 2),
            _ => i += 1,
        }
        if depth == 0 {
            return Some(i);
        }
    }
    None
}

/// The end of the string or character that starts here: nothing if none does, `Some(None)` if it never ends.
fn end_of_literal(source: &[char], start: usize) -> Option<Option<usize>> {
    let at = |i: usize| source.get(i).copied().unwrap_or('\0');
    let mut i = start;
    // b, c, r, br and cr may stand in front.
    if matches!(at(i), 'b' | 'c') && matches!(at(i + 1), '"' | '\'' | 'r') {
        i += 1;
    }
    if at(i) == 'r' && (at(i + 1) == '"' || at(i + 1) == '#') {
        let hashes = source[i + 1..].iter().take_while(|c| **c == '#').count();
        if at(i + 1 + hashes) != '"' {
            return None;
        }
        let mut j = i + 2 + hashes;
        while j < source.len() {
            if source[j] == '"' && source[j + 1..].iter().take(hashes).filter(|c| **c == '#').count() == hashes {
                return Some(Some(j + 1 + hashes));
            }
            j += 1;
        }
        return Some(None);
    }
    let quote = at(i);
    let is_char = quote == '\'' && (at(i + 1) == '\\' || at(i + 2) == '\'');
    if quote != '"' && !is_char {
        return None;
    }
    let mut j = i + 1;
    while j < source.len() {
        match source[j] {
            '\\' => j += 2,
            c if c == quote => return Some(Some(j + 1)),
            _ => j += 1,
        }
    }
    Some(None)
}

struct Scan<'a> {
    tokens: &'a [Token],
    at: usize,
    file: &'a Path,
    module: Vec<String>,
    open: Vec<Declared>,
    found: &'a mut Crate,
}

impl Scan<'_> {
    fn run(&mut self) {
        // Brace depths at which inline modules close.
        let (mut depth, mut closes) = (0_u32, Vec::new());
        while let Some(token) = self.tokens.get(self.at) {
            match &token.kind {
                Kind::Sign('#') if self.attributes() => continue,
                Kind::Sign('{') => depth += 1,
                Kind::Sign('}') => {
                    depth = depth.saturating_sub(1);
                    if closes.last() == Some(&depth) {
                        closes.pop();
                        self.module.pop();
                    }
                }
                Kind::Word(word) => match word.as_str() {
                    "mod" => {
                        if let Some(opens) = self.declaration()
                            && opens
                        {
                            closes.push(depth);
                            depth += 1;
                        }
                        continue;
                    }
                    "unsafe" => {
                        let place = self.place();
                        self.found.unsafe_code.push(place);
                    }
                    "use" => self.import(),
                    "crate" | "super" | "self" if self.path() => continue,
                    "crate" | "super" | "self" => {}
                    _ if self.relative_path() => continue,
                    _ => {}
                },
                _ => {}
            }
            self.at += 1;
        }
    }

    fn place(&self) -> Place {
        let line = self.tokens.get(self.at).map_or(0, |t| t.line);
        Place {
            module: self.module.clone(),
            file: self.file.to_path_buf(),
            line,
        }
    }

    fn word_at(&self, i: usize) -> Option<&str> {
        self.tokens.get(i)?.word()
    }

    fn sign_at(&self, i: usize, sign: char) -> bool {
        self.tokens.get(i).is_some_and(|t| t.is(sign))
    }

    /// At `mod`: notes the module, steps over the declaration, and says whether its body opens here.
    fn declaration(&mut self) -> Option<bool> {
        let name = self.word_at(self.at + 1).map(str::to_string);
        let body = self.sign_at(self.at + 2, '{');
        let Some(name) = name.filter(|_| body || self.sign_at(self.at + 2, ';')) else {
            self.at += 1;
            return None;
        };
        self.at += 3;
        if self.module.is_empty() {
            self.found.top_modules.push(name.clone());
        }
        if body {
            self.module.push(name);
            self.found.modules.push((self.module.clone(), self.file.to_path_buf()));
        } else {
            self.open.push(Declared {
                name,
                inside: self.module.clone(),
            });
        }
        Some(body)
    }

    /// At `#`: reads all attributes in a row. True if it moved on, past the item too when only tests compile it.
    fn attributes(&mut self) -> bool {
        let (start, mut only_tests, mut lints) = (self.at, false, Vec::new());
        while self.sign_at(self.at, '#') {
            let inner = self.sign_at(self.at + 1, '!');
            let open = self.at + 1 + usize::from(inner);
            if !self.sign_at(open, '[') {
                break;
            }
            let close = self.matching(open);
            let words: Vec<&str> = self.tokens[open..close].iter().filter_map(Token::word).collect();
            let tests = matches!(
                words.as_slice(),
                ["cfg", "test", ..] | ["cfg", "all", "test", ..] | ["test"]
            );
            if words.contains(&"unsafe_code") {
                lints.push((words[0].to_string(), inner, self.place()));
            }
            if inner && tests && self.module.is_empty() && self.found.files.len() == 1 {
                self.at = self.tokens.len();
                return true;
            }
            only_tests |= tests && !inner;
            self.at = close + 1;
        }
        for (level, inner, place) in lints {
            let mut module = self.module.clone();
            if !inner {
                module.extend(self.module_here());
            }
            self.found.lints.push(Lint {
                level,
                module,
                place,
                inner,
            });
        }
        if only_tests {
            self.skip_item();
        }
        self.at > start
    }

    /// The name of the module declared by the item that starts here.
    fn module_here(&self) -> Option<String> {
        let mut i = self.at;
        if self.word_at(i) == Some("pub") {
            i += 1;
            if self.sign_at(i, '(') {
                i = self.matching(i) + 1;
            }
        }
        (self.word_at(i) == Some("mod"))
            .then(|| self.word_at(i + 1).map(str::to_string))
            .flatten()
    }

    /// The closing bracket for the opening one at `open`, or the end.
    fn matching(&self, open: usize) -> usize {
        let mut depth = 0_u32;
        for (i, token) in self.tokens.iter().enumerate().skip(open) {
            match token.kind {
                Kind::Sign('(' | '[' | '{') => depth += 1,
                Kind::Sign(')' | ']' | '}') => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return i;
            }
        }
        self.tokens.len() - 1
    }

    fn skip_item(&mut self) {
        while let Some(token) = self.tokens.get(self.at) {
            match token.kind {
                Kind::Sign('(' | '[') => self.at = self.matching(self.at),
                Kind::Sign('{') => {
                    self.at = self.matching(self.at) + 1;
                    return;
                }
                Kind::Sign(';') => {
                    self.at += 1;
                    return;
                }
                _ => {}
            }
            self.at += 1;
        }
    }

    /// At `crate`, `super` or `self`: notes what the path names. False, without moving, if it is no path.
    fn path(&mut self) -> bool {
        let aliased = self.word_at(self.at + 1) == Some("as");
        if !aliased && self.tokens.get(self.at + 1).map(|t| &t.kind) != Some(&Kind::Path) {
            return false;
        }
        let place = self.place();
        let mut leaves = Vec::new();
        self.at = self.tree(self.at, self.module.clone(), &mut leaves);
        self.found.uses.extend(leaves.into_iter().map(|(_, path)| Use {
            place: place.clone(),
            path,
        }));
        true
    }

    /// At a word that begins a path: notes what the path names. False, without moving, if it begins none.
    fn relative_path(&mut self) -> bool {
        let next = self.tokens.get(self.at + 1).map(|t| &t.kind);
        let before = self
            .at
            .checked_sub(1)
            .and_then(|at| self.tokens.get(at))
            .map(|t| &t.kind);
        if next != Some(&Kind::Path) || before == Some(&Kind::Path) {
            return false;
        }
        let place = self.place();
        let mut leaves = Vec::new();
        self.at = self.tree(self.at, self.module.clone(), &mut leaves);
        self.found.relative.extend(leaves.into_iter().map(|(_, path)| Use {
            place: place.clone(),
            path,
        }));
        true
    }

    /// At a `use`: notes the names it brings in.
    fn import(&mut self) {
        let mut leaves = Vec::new();
        self.tree(self.at + 1, self.module.clone(), &mut leaves);
        let module = &self.module;
        self.found
            .imports
            .extend(leaves.into_iter().map(|(name, path)| (module.clone(), name, path)));
        if self.module.is_empty() {
            let brought = self.found.imports.iter().filter(|(module, ..)| module.is_empty());
            self.found.exports = brought.map(|(_, name, path)| (name.clone(), path.clone())).collect();
        }
    }

    /// Reads a path or a tree of paths, each leaf with the name it gives; returns the position after it.
    fn tree(&self, mut i: usize, mut path: Vec<String>, leaves: &mut Vec<(String, Vec<String>)>) -> usize {
        loop {
            match self.tokens.get(i).map(|t| &t.kind) {
                Some(Kind::Word(word)) => match word.as_str() {
                    "crate" => path.clear(),
                    "super" => drop(path.pop()),
                    "self" => {}
                    _ => path.push(word.clone()),
                },
                Some(Kind::Sign('*')) => path.push("*".into()),
                Some(Kind::Sign('{')) => {
                    let close = self.matching(i);
                    i += 1;
                    while i < close {
                        i = self.tree(i, path.clone(), leaves).max(i + 1);
                    }
                    return close + 1;
                }
                _ => return i,
            }
            i += 1;
            if self.tokens.get(i).map(|t| &t.kind) == Some(&Kind::Path) {
                i += 1;
                // A path goes on with a word, a star or a group; generic arguments end it.
                if self.sign_at(i, '<') {
                    break;
                }
                continue;
            }
            break;
        }
        let mut name = path.last().cloned().unwrap_or_default();
        if self.word_at(i) == Some("as") {
            name = self.word_at(i + 1).unwrap_or_default().to_string();
            i += 2;
        }
        leaves.push((name, path));
        i
    }
}

#[cfg(test)]
#[path = "source_tests.rs"]
mod tests;
