//! What keeps a document from being read.

/// Why a document cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadingError {
    /// Its format is known and not read.
    #[error("`{name}` is {format}, which cannot be read. Read are: {}", READ)]
    Unsupported {
        /// The document's name.
        name: String,
        /// What it is, with an article.
        format: &'static str,
    },
    /// It is no text, and nothing else that is known.
    #[error("`{name}` is not text, and not a format that is known. Read are: {}", READ)]
    Binary {
        /// The document's name.
        name: String,
    },
    /// It broke what reads its format.
    #[error("`{name}` could not be read as {format}: {problem}")]
    Broken {
        /// The document's name.
        name: String,
        /// What it was read as.
        format: &'static str,
        /// What went wrong.
        problem: String,
    },
    /// It needs a password.
    #[error("`{name}` is {format} that needs a password; ask for a copy without one")]
    Encrypted {
        /// The document's name.
        name: String,
        /// What it is.
        format: &'static str,
    },
    /// It has pages and no text.
    #[error(
        "`{name}` has {pages} pages and no text: its pages are pictures, as a scanner makes them. Run text recognition \
         on it first, or look at its pages with a tool that sees"
    )]
    NoText {
        /// The document's name.
        name: String,
        /// How many pages it has.
        pages: usize,
    },
    /// It, or what it unpacks to, is larger than what is read.
    #[error("`{name}` is too large to be read: {problem}")]
    TooLarge {
        /// The document's name.
        name: String,
        /// What of it is.
        problem: String,
    },
    /// A program that is needed for the format is not there.
    #[error("`{name}` is {format}, which is read with the help of {program}: {remedy}")]
    MissingProgram {
        /// The document's name.
        name: String,
        /// What it is.
        format: &'static str,
        /// The program.
        program: &'static str,
        /// What to do.
        remedy: &'static str,
    },
}

impl ReadingError {
    /// A short name for logs: `unsupported`, `binary`, `broken`, `encrypted`, `no_text`, `too_large`,
    /// `missing_program`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Unsupported { .. } => "unsupported",
            Self::Binary { .. } => "binary",
            Self::Broken { .. } => "broken",
            Self::Encrypted { .. } => "encrypted",
            Self::NoText { .. } => "no_text",
            Self::TooLarge { .. } => "too_large",
            Self::MissingProgram { .. } => "missing_program",
        }
    }

    /// Never: the same bytes come out the same.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Unsupported { .. }
            | Self::Binary { .. }
            | Self::Broken { .. }
            | Self::Encrypted { .. }
            | Self::NoText { .. }
            | Self::TooLarge { .. }
            | Self::MissingProgram { .. } => false,
        }
    }
}

/// For error texts.
const READ: &str = "PDF, DOCX, PPTX, XLSX, XLS, ODT, ODS, ODP, EPUB, ZIP, HTML, Markdown, CSV and TSV, JSON, XML, plain \
                    text, source code; DOC, PPT and RTF where LibreOffice is installed";

/// What a reader has to say of a document, whose name it does not know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, serde::Serialize, serde::Deserialize)]
pub(super) enum Problem {
    #[error("{0}")]
    Broken(String),
    #[error("it needs a password")]
    Encrypted,
    #[error("it has {0} pages and no text")]
    NoText(usize),
    #[error("{0}")]
    TooLarge(String),
    #[error("LibreOffice is not installed")]
    NoOffice,
}

impl Problem {
    /// The error of a document.
    pub(super) fn of(self, name: &str, format: &'static str) -> ReadingError {
        let name = name.to_owned();
        match self {
            Self::Broken(problem) => ReadingError::Broken { name, format, problem },
            Self::Encrypted => ReadingError::Encrypted { name, format },
            Self::NoText(pages) => ReadingError::NoText { name, pages },
            Self::TooLarge(problem) => ReadingError::TooLarge { name, problem },
            Self::NoOffice => ReadingError::MissingProgram {
                name,
                format,
                program: "LibreOffice",
                remedy: "install it (`apt-get install libreoffice-writer libreoffice-impress libreoffice-calc`) so that \
                         `soffice` is on the search path, or give the document in a newer format",
            },
        }
    }
}
