//! What a page shows, character by character.
//!
//! Decides where each character stands, how large and wide it is. Pictures and lines are not looked at; what is in
//! forms is.

use std::rc::Rc;
use std::time::Instant;

use hayro_syntax::content::UntypedIter;
use hayro_syntax::object::{Array, Dict, Name, Object, Stream};
use hayro_syntax::page::{Page, Resources};

use super::font::{Font, Fonts};

/// Forms in forms.
const DEEPEST: usize = 12;
/// Saved states.
const MOST_SAVED: usize = 512;
/// Operators between two looks at the clock.
const LOOK: usize = 4096;

/// What reading a file may still take.
#[derive(Debug)]
pub(super) struct Budget {
    pub(super) until: Instant,
    pub(super) glyphs: usize,
}

/// A character on a page; y grows downwards.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Glyph {
    pub(super) x: f64,
    pub(super) end: f64,
    pub(super) y: f64,
    pub(super) size: f64,
    pub(super) text: String,
    pub(super) is_bold: bool,
    /// Quarter turns against the reading direction.
    pub(super) turn: u8,
    /// Whether it was put in its place rather than set after the one before.
    pub(super) is_placed: bool,
}

/// `[a b c d e f]` as in the file.
type Matrix = [f64; 6];

const UNIT: Matrix = [1.0, 0.0, 0.0, 1.0, 0.0, 0.0];

/// First `a`, then `b`.
fn times(a: Matrix, b: Matrix) -> Matrix {
    [
        a[0] * b[0] + a[1] * b[2],
        a[0] * b[1] + a[1] * b[3],
        a[2] * b[0] + a[3] * b[2],
        a[2] * b[1] + a[3] * b[3],
        a[4] * b[0] + a[5] * b[2] + b[4],
        a[4] * b[1] + a[5] * b[3] + b[5],
    ]
}

#[derive(Debug, Clone)]
struct State {
    page: Matrix,
    font: Option<Rc<Font>>,
    size: f64,
    character_space: f64,
    word_space: f64,
    scale: f64,
    leading: f64,
    rise: f64,
}

/// The characters of a page in the order in which they are shown.
pub(super) fn glyphs(page: &Page<'_>, fonts: &mut Fonts, budget: &mut Budget) -> Result<Vec<Glyph>, String> {
    let start = page.initial_transform(true).as_coeffs();
    let state = State {
        page: start,
        font: None,
        size: 0.0,
        character_space: 0.0,
        word_space: 0.0,
        scale: 1.0,
        leading: 0.0,
        rise: 0.0,
    };
    let mut reader = Reader {
        fonts,
        budget,
        state,
        saved: Vec::new(),
        text: UNIT,
        line: UNIT,
        glyphs: Vec::new(),
        operators: 0,
        is_placed: true,
    };
    if let Some(content) = page.page_stream() {
        reader.run(content, page.resources(), 0)?;
    }
    Ok(reader.glyphs)
}

struct Reader<'r> {
    fonts: &'r mut Fonts,
    budget: &'r mut Budget,
    state: State,
    saved: Vec<State>,
    text: Matrix,
    line: Matrix,
    glyphs: Vec<Glyph>,
    operators: usize,
    /// The next character begins where the file says.
    is_placed: bool,
}

impl Reader<'_> {
    fn run(&mut self, content: &[u8], resources: &Resources<'_>, depth: usize) -> Result<(), String> {
        let mut operators = UntypedIter::new(content);
        while let Some(instruction) = operators.next() {
            self.operators += 1;
            if self.operators.is_multiple_of(LOOK) && Instant::now() > self.budget.until {
                return Err("reading its pages took too long".into());
            }
            let operands: Vec<&Object<'_>> = instruction.operands().collect();
            let number = |at: usize| match operands.get(at) {
                Some(Object::Number(number)) => number.as_f64(),
                _ => 0.0,
            };
            let operator: &[u8] = instruction.operator.as_ref();
            self.is_placed |= matches!(operator, b"Td" | b"TD" | b"Tm" | b"T*" | b"BT" | b"cm");
            match operator {
                b"q" if self.saved.len() < MOST_SAVED => self.saved.push(self.state.clone()),
                b"Q" => {
                    if let Some(state) = self.saved.pop() {
                        self.state = state;
                    }
                }
                b"cm" => {
                    let matrix = std::array::from_fn(number);
                    self.state.page = times(matrix, self.state.page);
                }
                b"BT" => (self.text, self.line) = (UNIT, UNIT),
                b"Tf" => {
                    if let Some(Object::Name(name)) = operands.first() {
                        self.state.font = resources.get_font(name).map(|dict| self.fonts.get(&dict));
                    }
                    self.state.size = number(1);
                }
                b"Tc" => self.state.character_space = number(0),
                b"Tw" => self.state.word_space = number(0),
                b"Tz" => self.state.scale = number(0) / 100.0,
                b"TL" => self.state.leading = number(0),
                b"Ts" => self.state.rise = number(0),
                b"Td" => self.move_line(number(0), number(1)),
                b"TD" => {
                    self.state.leading = -number(1);
                    self.move_line(number(0), number(1));
                }
                b"Tm" => {
                    self.line = std::array::from_fn(number);
                    self.text = self.line;
                }
                b"T*" => self.move_line(0.0, -self.state.leading),
                b"Tj" => self.show_operand(operands.first().copied())?,
                b"'" => {
                    self.move_line(0.0, -self.state.leading);
                    self.show_operand(operands.first().copied())?;
                }
                b"\"" => {
                    (self.state.word_space, self.state.character_space) = (number(0), number(1));
                    self.move_line(0.0, -self.state.leading);
                    self.show_operand(operands.get(2).copied())?;
                }
                b"TJ" => {
                    if let Some(Object::Array(array)) = operands.first() {
                        self.show_array(array)?;
                    }
                }
                b"gs" => {
                    let font = match operands.first() {
                        Some(Object::Name(name)) => {
                            resources.get_ext_g_state(name).and_then(|state| state.get::<Array<'_>>("Font"))
                        }
                        _ => None,
                    };
                    if let Some(font) = font {
                        if let Some(dict) = font.iter::<Dict<'_>>().next() {
                            self.state.font = Some(self.fonts.get(&dict));
                        }
                        if let Some(Object::Number(size)) = font.iter::<Object<'_>>().nth(1) {
                            self.state.size = size.as_f64();
                        }
                    }
                }
                b"Do" => {
                    if let Some(Object::Name(name)) = operands.first()
                        && let Some(form) = resources.get_x_object(name)
                    {
                        self.form(&form, resources, depth)?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn form(&mut self, form: &Stream<'_>, outer: &Resources<'_>, depth: usize) -> Result<(), String> {
        let dict = form.dict();
        let is_form = dict.get::<Name<'_>>("Subtype").is_some_and(|kind| kind.as_str() == "Form");
        if !is_form || depth >= DEEPEST {
            return Ok(());
        }
        let Ok(content) = form.decoded() else { return Ok(()) };
        let (state, saved) = (self.state.clone(), std::mem::take(&mut self.saved));
        if let Some(matrix) = dict.get::<Array<'_>>("Matrix") {
            let mut numbers = matrix.iter::<f32>();
            let matrix = std::array::from_fn(|at| numbers.next().map_or(UNIT[at], f64::from));
            self.state.page = times(matrix, self.state.page);
        }
        let texts = (self.text, self.line);
        let done = match dict.get::<Dict<'_>>("Resources") {
            Some(own) => self.run(&content, &Resources::new(own), depth + 1),
            None => self.run(&content, outer, depth + 1),
        };
        (self.text, self.line) = texts;
        (self.state, self.saved) = (state, saved);
        done
    }

    fn move_line(&mut self, x: f64, y: f64) {
        self.line = times([1.0, 0.0, 0.0, 1.0, x, y], self.line);
        self.text = self.line;
    }

    fn show_operand(&mut self, operand: Option<&Object<'_>>) -> Result<(), String> {
        match operand {
            Some(Object::String(string)) => self.show(super::font::bytes(string)),
            _ => Ok(()),
        }
    }

    fn show_array(&mut self, array: &Array<'_>) -> Result<(), String> {
        for object in array.iter::<Object<'_>>() {
            match object {
                Object::String(string) => self.show(super::font::bytes(&string))?,
                Object::Number(number) => {
                    let back = number.as_f64() / 1000.0 * self.state.size * self.state.scale;
                    self.text = times([1.0, 0.0, 0.0, 1.0, -back, 0.0], self.text);
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn show(&mut self, bytes: &[u8]) -> Result<(), String> {
        let Some(font) = self.state.font.clone() else { return Ok(()) };
        let state = self.state.clone();
        let (text_matrix, glyphs, is_placed) = (&mut self.text, &mut self.glyphs, &mut self.is_placed);
        let before = glyphs.len();
        font.show(bytes, |shown| {
            let width = shown.width * state.size;
            let to_page = times(*text_matrix, state.page);
            let at = |x: f64, y: f64| {
                (x * to_page[0] + y * to_page[2] + to_page[4], x * to_page[1] + y * to_page[3] + to_page[5])
            };
            let (x, y) = at(0.0, state.rise);
            let (end_x, end_y) = at(width * state.scale, state.rise);
            let size = (state.size * to_page[2].hypot(to_page[3])).abs();
            if let Some(text) = shown.text
                && [x, y, end_x, end_y, size].iter().all(|number| number.is_finite())
            {
                let glyph = placed(to_page, (x, y), (end_x, end_y), size, text, font.is_bold);
                glyphs.push(Glyph { is_placed: std::mem::take(is_placed), ..glyph });
            }
            let spaces = state.character_space + if shown.is_space { state.word_space } else { 0.0 };
            *text_matrix = times([1.0, 0.0, 0.0, 1.0, (width + spaces) * state.scale, 0.0], *text_matrix);
        });
        let added = self.glyphs.len() - before;
        match self.budget.glyphs.checked_sub(added) {
            Some(left) => {
                self.budget.glyphs = left;
                Ok(())
            }
            None => Err("its pages have too many characters".into()),
        }
    }
}

/// A character in the frame in which its line runs from left to right.
fn placed(
    to_page: Matrix,
    start: (f64, f64),
    end: (f64, f64),
    size: f64,
    text: String,
    is_bold: bool,
) -> Glyph {
    let (along, across) = (to_page[0], to_page[1]);
    let turn = if along.abs() >= across.abs() {
        if along >= 0.0 { 0 } else { 2 }
    } else if across > 0.0 {
        1
    } else {
        3
    };
    let (x, end, y) = match turn {
        0 => (start.0, end.0, start.1),
        2 => (-start.0, -end.0, -start.1),
        1 => (start.1, end.1, -start.0),
        _ => (-start.1, -end.1, start.0),
    };
    Glyph { x, end: end.max(x), y, size, text, is_bold, turn, is_placed: false }
}
