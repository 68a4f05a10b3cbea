//! Still pictures of a video, for models that take no videos.
//!
//! Decides when they are taken and how large they are; ffmpeg takes them. Videos are foreign files: the program is
//! told which format to read, opens nothing else, and runs confined.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::kinds::Kind;
use crate::Media;
use crate::servers::programs::{self, Layers, Limits, ProgramError, Workshop};

/// For one call of a program; a picture takes a fraction of a second.
const LIMIT: Duration = Duration::from_secs(60);
/// For all calls together.
const WHOLE_LIMIT: Duration = Duration::from_secs(120);
/// Bytes of address space.
const MEMORY: u64 = 3 << 30;
/// Bytes of one picture.
const PICTURE_LIMIT: u64 = 16 << 20;
/// Seconds at most between two pictures of a short video: there are as many as that takes.
const CLOSEST: f64 = 0.5;

/// How a video is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StillOptions {
    /// Pictures of one video, at most. Default 12.
    pub most: usize,
    /// The longer side of a picture in pixels, at most. Default 1024: services charge by pixels.
    pub longest_side: u32,
    /// Where `ffmpeg` and `ffprobe` are looked for; none: on the search path of this process.
    pub search_path: Option<OsString>,
}

impl Default for StillOptions {
    fn default() -> Self {
        Self { most: 12, longest_side: 1024, search_path: None }
    }
}

/// Pictures of a video in their order.
#[derive(Debug)]
pub(super) struct Stills {
    pub(super) pictures: Vec<Media>,
    /// Seconds from the beginning, one for each picture.
    times: Vec<f64>,
    /// Seconds of the whole video.
    length: f64,
}

/// Why there are none.
#[derive(Debug, thiserror::Error)]
pub(super) enum StillsError {
    #[error("`ffmpeg` and `ffprobe` are not installed here")]
    Missing,
    #[error("{program} could not read it: {error}")]
    Program { program: &'static str, error: ProgramError },
    #[error("no picture can be taken from it")]
    Blind,
    #[error("taking pictures from it took longer than {} s", WHOLE_LIMIT.as_secs())]
    Overrun,
}

impl Stills {
    /// What the model is told of them.
    pub(super) fn words(&self) -> String {
        let times: Vec<String> = self.times.iter().map(|time| format!("{time:.1}")).collect();
        let (what, when) = match times.as_slice() {
            [only] => ("This picture was taken".to_owned(), format!("at second {only}")),
            times => (
                format!("These {} pictures were taken", times.len()),
                format!("in this order, at seconds {}", times.join(", ")),
            ),
        };
        format!(
            "{what} from a video of {:.1} s, {when}. What happens between them and what is heard is not shown.",
            self.length
        )
    }
}

/// Takes pictures, evenly over the length of a video.
pub(super) async fn take(video: &[u8], kind: Kind, options: &StillOptions) -> Result<Stills, StillsError> {
    let path = options.search_path.as_deref();
    let find = |name: &str| programs::find(&[name], path).ok_or(StillsError::Missing);
    let (ffmpeg, ffprobe) = (find("ffmpeg")?, find("ffprobe")?);
    let all = tokio::time::timeout(WHOLE_LIMIT, taken(video, kind, options, &ffmpeg, &ffprobe));
    all.await.unwrap_or(Err(StillsError::Overrun))
}

async fn taken(
    video: &[u8],
    kind: Kind,
    options: &StillOptions,
    ffmpeg: &Path,
    ffprobe: &Path,
) -> Result<Stills, StillsError> {
    let with = |program: &'static str| move |error: ProgramError| StillsError::Program { program, error };
    let limits = Limits { time: LIMIT, memory: MEMORY, file_size: PICTURE_LIMIT, layers: Layers::All };
    let workshop = Workshop::open(ffmpeg, limits).map_err(with("ffmpeg"))?;
    let given = workshop.put("video", video).map_err(with("ffmpeg"))?;
    let length = length(&workshop, ffprobe, &given, kind).await?;
    let mut stills = Stills { pictures: Vec::new(), times: Vec::new(), length };
    for time in times(length, options.most) {
        // Near the end there may be none any more.
        if let Some(data) = picture(&workshop, ffmpeg, &given, kind, time, options).await? {
            stills.pictures.push(Media { mime_type: "image/jpeg".to_owned(), data });
            stills.times.push(time);
        }
    }
    if stills.pictures.is_empty() { Err(StillsError::Blind) } else { Ok(stills) }
}

/// The middles of equal parts of the video.
fn times(length: f64, most: usize) -> Vec<f64> {
    let parts = (length / CLOSEST).ceil().clamp(1.0, most.max(1) as f64);
    (0..parts as usize).map(|part| (part as f64 + 0.5) * length / parts).collect()
}

/// What both programs are told before the file: its format, and that they open nothing but files.
fn input(kind: Kind) -> [&'static str; 6] {
    let format = match kind.ending {
        "avi" => "avi",
        "webm" | "mkv" => "matroska",
        _ => "mov",
    };
    ["-v", "error", "-protocol_whitelist", "file", "-f", format]
}

/// Seconds of a video.
async fn length(workshop: &Workshop, ffprobe: &Path, video: &Path, kind: Kind) -> Result<f64, StillsError> {
    let told = probe(workshop, ffprobe, video, kind, "stream=codec_name:format=duration").await?;
    if !told.iter().any(|(section, _)| section == "stream") {
        return Err(StillsError::Blind);
    }
    match longest(&told) {
        // Recorded by a browser, it may not say how long it is; its last picture does.
        0.0 => Ok(longest(&probe(workshop, ffprobe, video, kind, "packet=pts_time").await?)),
        length => Ok(length),
    }
}

/// What ffprobe says of the first track of pictures: names of sections with their values.
async fn probe(
    workshop: &Workshop,
    ffprobe: &Path,
    video: &Path,
    kind: Kind,
    entries: &str,
) -> Result<Vec<(String, String)>, StillsError> {
    let mut arguments: Vec<OsString> = input(kind).map(OsString::from).into();
    arguments.extend(["-select_streams", "v:0", "-show_entries", entries, "-of", "csv"].map(OsString::from));
    arguments.push(video.into());
    let said = workshop.run(ffprobe, arguments).await;
    let said = said.map_err(|error| StillsError::Program { program: "ffprobe", error })?;
    let said = String::from_utf8_lossy(&said);
    let lines = said.lines().filter_map(|line| line.split_once(','));
    Ok(lines.map(|(section, value)| (section.to_owned(), value.to_owned())).collect())
}

/// The largest number of seconds among values; 0 where there is none.
fn longest(told: &[(String, String)]) -> f64 {
    let seconds = told.iter().filter(|(section, _)| section != "stream");
    let seconds = seconds.filter_map(|(_, value)| value.trim().trim_end_matches(',').parse::<f64>().ok());
    seconds.filter(|seconds| seconds.is_finite()).fold(0.0, f64::max)
}

/// The picture at a time; none where the video has none any more.
async fn picture(
    workshop: &Workshop,
    ffmpeg: &Path,
    video: &Path,
    kind: Kind,
    time: f64,
    options: &StillOptions,
) -> Result<Option<Vec<u8>>, StillsError> {
    let wrong = |error| StillsError::Program { program: "ffmpeg", error };
    let side = options.longest_side.max(16);
    let size = format!("scale='min({side},iw)':'min({side},ih)':force_original_aspect_ratio=decrease");
    let mut arguments: Vec<OsString> = ["-nostdin", "-threads", "2"].map(OsString::from).into();
    arguments.extend(input(kind).map(OsString::from));
    arguments.extend(["-ss".into(), format!("{time:.3}").into(), "-i".into(), PathBuf::from(video).into()]);
    arguments.extend(["-map", "0:v:0", "-frames:v", "1", "-vf"].map(OsString::from));
    arguments.push(size.into());
    let target =
        ["-pix_fmt", "yuvj420p", "-f", "image2", "-update", "1", "-c:v", "mjpeg", "-q:v", "4", "-y", "still"];
    arguments.extend(target.map(OsString::from));
    let _ = std::fs::remove_file(workshop.path().join("still"));
    workshop.run(ffmpeg, arguments).await.map_err(wrong)?;
    let made = workshop.path().join("still").exists();
    made.then(|| workshop.take("still", PICTURE_LIMIT)).transpose().map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_taken_evenly() {
        let check = |length: f64, most: usize, expected: &[f64]| {
            let found = times(length, most);
            assert_eq!(found.len(), expected.len(), "{found:?}");
            assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-9), "{found:?}");
        };
        check(12.0, 4, &[1.5, 4.5, 7.5, 10.5]);
        check(1.0, 12, &[0.25, 0.75]);
        check(0.04, 12, &[0.02]);
        check(0.0, 12, &[0.0]);
        check(10.0, 0, &[5.0]);
        assert_eq!(times(f64::MAX, 3).len(), 3);
    }

    #[test]
    fn the_model_is_told_when() {
        let stills = |times: &[f64]| Stills { pictures: Vec::new(), times: times.to_vec(), length: 6.04 };
        assert_eq!(
            stills(&[1.5, 4.5]).words(),
            "These 2 pictures were taken from a video of 6.0 s, in this order, at seconds 1.5, 4.5. What happens \
             between them and what is heard is not shown."
        );
        assert!(
            stills(&[3.02])
                .words()
                .starts_with("This picture was taken from a video of 6.0 s, at second 3.0.")
        );
    }
}
