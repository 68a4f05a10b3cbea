//! What the fields of published originals are called. A new suite is a row here.

/// How question and answer of an original are enciphered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cipher {
    /// Not at all.
    None,
    /// Base64 of the bytes combined by XOR with the SHA-256 of the record's `canary`, repeated.
    XorSha256,
    /// Base64 of the bytes combined by XOR with the record's `canary` itself, repeated.
    XorCanary,
}

/// Which records of an original a suite takes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Selection {
    /// How many.
    pub(super) tasks: usize,
    /// Their ids, one a line; none where they have to be given.
    pub(super) ids: Option<&'static str>,
    /// Whose selection it is.
    pub(super) source: &'static str,
}

/// Where a suite's originals have what.
#[derive(Debug, Clone, Copy)]
pub(super) struct Recipe {
    /// The suite.
    pub(super) suite: &'static str,
    /// Names of the id; where a record has none it is numbered.
    pub(super) id: &'static [&'static str],
    /// Names of the question.
    pub(super) question: &'static [&'static str],
    /// Names of the right answer.
    pub(super) answer: &'static [&'static str],
    /// An answer that says that there is none (held back by the publishers).
    pub(super) no_answer: Option<&'static str>,
    /// Whether records without any of these are fine: questions that nobody can answer yet.
    pub(super) is_open: bool,
    /// Names of a file beside the original.
    pub(super) file: &'static [&'static str],
    /// Names of a picture inside the original.
    pub(super) picture: &'static [&'static str],
    /// Whether records with a file or picture are left out.
    pub(super) text_only: bool,
    /// How question and answer are enciphered.
    pub(super) cipher: Cipher,
    /// Further fields that some editions encipher too. One that is no cipher text stays as it is.
    pub(super) also_enciphered: &'static [&'static str],
    /// The suite is a selection of the original's records.
    pub(super) selection: Option<Selection>,
    /// Fields that are not kept: previews and pictures of solutions.
    pub(super) left_out: &'static [&'static str],
}

const PLAIN: Recipe = Recipe {
    suite: "",
    id: &["id", "task_id", "ID"],
    question: &["question", "Question", "problem", "prompt", "Prompt", "query"],
    answer: &["answer", "Answer", "ground_truth", "final_answer"],
    no_answer: None,
    is_open: false,
    file: &[],
    picture: &[],
    text_only: false,
    cipher: Cipher::None,
    also_enciphered: &[],
    selection: None,
    left_out: &[],
};

const GAIA: Recipe = Recipe {
    id: &["task_id"],
    question: &["Question"],
    answer: &["Final answer", "answer"],
    no_answer: Some("?"),
    file: &["file_name"],
    left_out: &["file_path"],
    ..PLAIN
};

const HLE: Recipe = Recipe { picture: &["image"], left_out: &["image_preview", "rationale_image"], ..PLAIN };

const RECIPES: &[Recipe] = &[
    Recipe { suite: "gaia-validation", ..GAIA },
    Recipe {
        suite: "gaia-validation-text-103",
        text_only: true,
        selection: Some(Selection {
            tasks: 103,
            ids: Some(include_str!("../../data/gaia-validation-text-103.ids")),
            source: "WebThinker's selection",
        }),
        ..GAIA
    },
    Recipe { suite: "hle", ..HLE },
    Recipe { suite: "hle-text-2158", text_only: true, ..HLE },
    Recipe {
        suite: "hle-text-500",
        text_only: true,
        selection: Some(Selection {
            tasks: 500,
            ids: None,
            source: "WebThinker's selection, which is published with numbers instead of the original's ids",
        }),
        ..HLE
    },
    Recipe { suite: "browsecomp", cipher: Cipher::XorSha256, also_enciphered: &["problem_topic"], ..PLAIN },
    Recipe {
        suite: "browsecomp_zh",
        cipher: Cipher::XorSha256,
        also_enciphered: &["Topic", "topic"],
        ..PLAIN
    },
    Recipe { suite: "webwalkerqa", ..PLAIN },
    Recipe { suite: "frames", id: &["Unnamed: 0", "", "id"], ..PLAIN },
    Recipe {
        suite: "xbench_deepsearch",
        cipher: Cipher::XorCanary,
        also_enciphered: &["reference_steps", "type"],
        ..PLAIN
    },
    Recipe { suite: "seal-0", ..PLAIN },
    Recipe { suite: "aime2025", ..PLAIN },
    Recipe { suite: "deepsearchqa", ..PLAIN },
    Recipe { suite: "futurex", is_open: true, ..PLAIN },
    Recipe { suite: "simpleqa", ..PLAIN },
];

/// Suites whose originals can be prepared.
pub(super) fn suites() -> impl Iterator<Item = &'static str> {
    RECIPES.iter().map(|recipe| recipe.suite)
}

/// Where the originals of a suite have what.
pub(super) fn recipe_of(suite: &str) -> Option<&'static Recipe> {
    RECIPES.iter().find(|recipe| recipe.suite == suite)
}
