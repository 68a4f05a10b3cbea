//! Questions about videos, with real ones that ffmpeg makes. Where it is not installed, the tests say so and end.

use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use mcp_tools::egress::{Egress, EgressOptions};
use mcp_tools::servers::models::{MediaOptions, StillOptions, vision_server};
use mcp_tools::{ModelAnswer, ModelError, ModelQuestion, ToolModel};
use serde_json::json;

use crate::python::client::{Client, Reply};

/// Two seconds each of red, green and blue, 320 by 180.
const SCENES: &str = "color=red:s=320x180:d=2,format=yuv420p[a];color=lime:s=320x180:d=2,format=yuv420p[b];\
                      color=blue:s=320x180:d=2,format=yuv420p[c];[a][b][c]concat=n=3:v=1:a=0";

/// Keeps what it is asked; takes pictures, and videos where it says so.
struct Seeing {
    asked: Mutex<Vec<ModelQuestion>>,
    takes_videos: bool,
}

#[async_trait]
impl ToolModel for Seeing {
    async fn ask(&self, question: ModelQuestion) -> Result<ModelAnswer, ModelError> {
        let refused = question.media.iter().find(|media| media.mime_type.starts_with("video/"));
        if let Some(video) = refused.filter(|_| !self.takes_videos) {
            return Err(ModelError::Unsupported(video.mime_type.clone()));
        }
        self.asked.lock().expect("a lock").push(question);
        Ok(ModelAnswer { text: "Colours.".to_owned(), ..ModelAnswer::default() })
    }

    fn name(&self) -> &str {
        "seeing"
    }
}

fn ffmpeg(arguments: &[&str]) -> Option<Vec<u8>> {
    let run = Command::new("ffmpeg").args(["-v", "error", "-nostdin", "-y"]).args(arguments).output();
    let Ok(run) = run else {
        eprintln!("skipped: ffmpeg is not installed");
        return None;
    };
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    Some(run.stdout)
}

/// Makes a video; none where ffmpeg is missing.
fn video(path: &Path, coding: &[&str]) -> Option<()> {
    let target = path.to_str().expect("a path");
    let arguments = [&["-f", "lavfi", "-i", SCENES, "-r", "10"], coding, &[target]].concat();
    ffmpeg(&arguments).map(drop)
}

/// The colour of a picture, as the letter of the strongest part, and its width.
fn colour(folder: &Path, picture: &[u8]) -> (char, u32) {
    let path = folder.join("picture");
    std::fs::write(&path, picture).expect("a file");
    let raw = ["-i", path.to_str().expect("a path"), "-f", "rawvideo", "-pix_fmt", "rgb24", "-"];
    let pixels = ffmpeg(&raw).expect("ffmpeg");
    let [red, green, blue] = [pixels[0], pixels[1], pixels[2]];
    let letter = match (red > 128, green > 128, blue > 128) {
        (true, false, false) => 'r',
        (false, true, false) => 'g',
        (false, false, true) => 'b',
        other => panic!("{other:?}"),
    };
    // Sixteen to nine, three bytes each.
    let height = ((pixels.len() / 3) as f64 * 9.0 / 16.0).sqrt().round();
    (letter, (height * 16.0 / 9.0) as u32)
}

async fn ask(
    model: &Arc<Seeing>,
    folder: &Path,
    change: impl FnOnce(&mut MediaOptions),
    file: &str,
) -> Reply {
    let egress = Egress::new(EgressOptions::default()).expect("a way out");
    let mut media = MediaOptions::new(vec![folder.to_owned()], egress);
    change(&mut media);
    let server = vision_server("tool-vqa", model.clone(), media);
    let client = Client::connect(server, tempfile::tempdir().expect("a directory")).await;
    let path = folder.join(file).display().to_string();
    let arguments = json!({ "media_path_or_url": path, "question": "Which colours?" });
    client.call("visual_question_answering", arguments).await
}

fn seeing(takes_videos: bool) -> Arc<Seeing> {
    Arc::new(Seeing { asked: Mutex::default(), takes_videos })
}

#[tokio::test]
async fn a_model_that_takes_videos_is_given_them() {
    let folder = tempfile::tempdir().expect("a directory");
    let Some(()) = video(&folder.path().join("scenes.mp4"), &["-c:v", "mpeg4"]) else { return };
    let model = seeing(true);
    let reply = ask(&model, folder.path(), |_| (), "scenes.mp4").await;
    assert_eq!((reply.text.as_str(), reply.is_error), ("Colours.", false));
    {
        let asked = model.asked.lock().expect("a lock");
        let [ModelQuestion { media, text, .. }] = asked.as_slice() else { panic!("one question") };
        assert_eq!(
            (media.len(), media[0].mime_type.as_str(), text.as_str()),
            (1, "video/mp4", "Which colours?")
        );
        assert_eq!(media[0].data, std::fs::read(folder.path().join("scenes.mp4")).expect("a file"));
    }
    // Or not, where pictures are asked for.
    ask(&model, folder.path(), |media| media.stills_only = true, "scenes.mp4").await;
    let asked = model.asked.lock().expect("a lock");
    assert!(asked[1].media.iter().all(|media| media.mime_type == "image/jpeg"));
}

#[tokio::test]
async fn others_are_shown_pictures_taken_evenly() {
    let folder = tempfile::tempdir().expect("a directory");
    for (file, coding) in [
        ("scenes.mp4", &["-c:v", "mpeg4"][..]),
        ("scenes.mov", &["-c:v", "mjpeg", "-pix_fmt", "yuvj420p"]),
        ("scenes.avi", &["-c:v", "mpeg4"]),
        ("scenes.webm", &["-c:v", "libvpx", "-deadline", "realtime"]),
        // As a browser records it: without a length.
        ("live.webm", &["-c:v", "libvpx", "-deadline", "realtime", "-f", "webm", "-live", "1"]),
        ("scenes.mkv", &["-c:v", "mpeg4"]),
    ] {
        let Some(()) = video(&folder.path().join(file), coding) else { return };
        let model = seeing(false);
        let three = |media: &mut MediaOptions| {
            media.stills = StillOptions { most: 3, longest_side: 160, ..StillOptions::default() };
        };
        let reply = ask(&model, folder.path(), three, file).await;
        assert_eq!((reply.text.as_str(), reply.is_error), ("Colours.", false), "{file}");
        let asked = model.asked.lock().expect("a lock");
        let [ModelQuestion { media, text, .. }] = asked.as_slice() else { panic!("{file}: one question") };
        let seen: String = media.iter().map(|picture| colour(folder.path(), &picture.data).0).collect();
        assert_eq!(seen, "rgb", "{file}");
        assert_eq!(colour(folder.path(), &media[0].data).1, 160, "{file}");
        assert!(text.starts_with("These 3 pictures were taken from a video of "), "{file}: {text}");
        assert!(text.ends_with("not shown.\n\nWhich colours?"), "{text}");
        let times = text.split("at seconds ").nth(1).and_then(|rest| rest.split(". ").next()).expect("times");
        let times: Vec<f64> = times.split(", ").map(|time| time.parse().expect("a time")).collect();
        let expected = [1.0, 3.0, 5.0];
        assert!(times.iter().zip(expected).all(|(a, b)| (a - b).abs() < 0.25), "{file}: {times:?}");
    }
}

#[tokio::test]
async fn what_cannot_be_shown_says_why() {
    let folder = tempfile::tempdir().expect("a directory");
    let scenes = folder.path().join("scenes.mp4");
    let Some(()) = video(&scenes, &["-c:v", "mpeg4"]) else { return };
    let whole = std::fs::read(&scenes).expect("a file");
    std::fs::write(folder.path().join("cut.mp4"), &whole[..whole.len() / 3]).expect("a file");
    let sound = folder.path().join("sound.mp4");
    let sine = ["-f", "lavfi", "-i", "sine=d=1", "-c:a", "aac", sound.to_str().expect("a path")];
    ffmpeg(&sine).expect("ffmpeg");
    let model = seeing(false);
    for (file, part) in [
        ("cut.mp4", "ffprobe could not read it: it ended with exit status: 1: "),
        ("sound.mp4", "no picture can be taken from it."),
    ] {
        let reply = ask(&model, folder.path(), |_| (), file).await;
        assert!(reply.is_error && reply.text.contains(part), "{file}: {reply:?}");
        assert!(reply.text.contains("the model takes no video/mp4"), "{file}: {reply:?}");
    }
    // A list of other files in a format that opens them is no video.
    std::fs::write(folder.path().join("list.mp4"), "#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n")
        .expect("a file");
    let reply = ask(&model, folder.path(), |_| (), "list.mp4").await;
    assert!(reply.is_error && reply.text.contains("not a file of a format that is known"), "{reply:?}");
    assert!(model.asked.lock().expect("a lock").is_empty());
}

/// Needs no ffmpeg: it is looked for where there is none.
#[tokio::test]
async fn without_ffmpeg_both_ways_out_are_named() {
    let folder = tempfile::tempdir().expect("a directory");
    std::fs::write(folder.path().join("film.mp4"), b"\0\0\0\x18ftypisom").expect("a file");
    let nowhere = |media: &mut MediaOptions| media.stills.search_path = Some(folder.path().into());
    let model = seeing(false);
    let reply = ask(&model, folder.path(), nowhere, "film.mp4").await;
    assert!(reply.is_error, "{reply:?}");
    for part in ["not installed here", "apt-get install ffmpeg", "VISION_BASE_URL"] {
        assert!(reply.text.contains(part), "{reply:?}");
    }
}
