//! Compound files: the container of old Office documents.
//!
//! Decides which streams such a file has, and reads them. Chains of sectors that run in circles or out of the file
//! end an attempt rather than the program.

/// A stream that is not used.
const FREE: u32 = 0xFFFF_FFFA;
/// Bytes of a directory entry.
const ENTRY: usize = 128;

/// An open compound file.
pub(super) struct CompoundFile<'a> {
    bytes: &'a [u8],
    sector: usize,
    mini_sector: usize,
    cutoff: usize,
    table: Vec<u32>,
    mini_table: Vec<u32>,
    mini_stream: Vec<u8>,
    streams: Vec<Stream>,
}

struct Stream {
    name: String,
    start: u32,
    size: usize,
}

impl<'a> CompoundFile<'a> {
    /// None where this is no whole compound file.
    pub(super) fn open(bytes: &'a [u8]) -> Option<Self> {
        if !bytes.starts_with(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1") {
            return None;
        }
        let power = |at: usize| {
            u16_at(bytes, at).filter(|power| (6..=16).contains(power)).map(|power| 1usize << power)
        };
        let mut file = Self {
            bytes,
            sector: power(30)?,
            mini_sector: power(32)?,
            cutoff: u32_at(bytes, 56)? as usize,
            table: Vec::new(),
            mini_table: Vec::new(),
            mini_stream: Vec::new(),
            streams: Vec::new(),
        };
        file.table = file.allocation_table()?;
        let directory = file.chain(u32_at(bytes, 48)?, usize::MAX);
        let mini_table = file.chain(u32_at(bytes, 60)?, usize::MAX);
        file.mini_table = numbers(&mini_table);
        for entry in directory.chunks_exact(ENTRY) {
            let length = usize::from(u16_at(entry, 64)?).min(64).saturating_sub(2);
            let units: Vec<u16> = (0..length / 2).filter_map(|at| u16_at(entry, at * 2)).collect();
            let (start, size) = (u32_at(entry, 116)?, u32_at(entry, 120)? as usize);
            match entry[66] {
                // The root holds the small streams.
                5 => file.mini_stream = file.chain(start, size),
                2 => file.streams.push(Stream { name: String::from_utf16_lossy(&units), start, size }),
                _ => {}
            }
        }
        Some(file)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.streams.iter().any(|stream| stream.name == name)
    }

    /// The first stream of a name.
    pub(super) fn read(&self, name: &str) -> Option<Vec<u8>> {
        let stream = self.streams.iter().find(|stream| stream.name == name)?;
        if stream.size >= self.cutoff {
            return Some(self.chain(stream.start, stream.size));
        }
        let mut out = Vec::new();
        let mut at = stream.start;
        let mut steps = 0;
        while at < FREE && out.len() < stream.size && steps <= self.mini_table.len() {
            let from = (at as usize).checked_mul(self.mini_sector)?;
            let piece =
                self.mini_stream.get(from..from.saturating_add(self.mini_sector).min(self.mini_stream.len()));
            out.extend_from_slice(piece.unwrap_or_default());
            at = self.mini_table.get(at as usize).copied().unwrap_or(FREE);
            steps += 1;
        }
        out.truncate(stream.size);
        Some(out)
    }

    fn sector_at(&self, number: u32) -> &'a [u8] {
        let from = (number as usize).saturating_add(1).saturating_mul(self.sector);
        let to = from.saturating_add(self.sector).min(self.bytes.len());
        self.bytes.get(from..to).unwrap_or_default()
    }

    /// The sectors of a chain, as far as it goes.
    fn chain(&self, start: u32, size: usize) -> Vec<u8> {
        let mut out = Vec::new();
        let mut at = start;
        let mut steps = 0;
        while at < FREE && out.len() < size && steps <= self.table.len() {
            let piece = self.sector_at(at);
            if piece.is_empty() {
                break;
            }
            out.extend_from_slice(piece);
            at = self.table.get(at as usize).copied().unwrap_or(FREE);
            steps += 1;
        }
        out.truncate(size);
        out
    }

    fn allocation_table(&self) -> Option<Vec<u32>> {
        let most = self.bytes.len() / self.sector + 1;
        let mut sectors: Vec<u32> = (0..109).filter_map(|at| u32_at(self.bytes, 76 + at * 4)).collect();
        let mut next = u32_at(self.bytes, 68)?;
        let mut steps = 0;
        while next < FREE && steps <= most {
            let mut listed = numbers(self.sector_at(next));
            next = listed.pop().unwrap_or(FREE);
            sectors.extend(listed);
            steps += 1;
        }
        let mut table = Vec::new();
        for sector in sectors.into_iter().filter(|sector| *sector < FREE).take(most) {
            table.extend(numbers(self.sector_at(sector)));
        }
        Some(table)
    }
}

fn numbers(bytes: &[u8]) -> Vec<u32> {
    bytes.as_chunks::<4>().0.iter().map(|chunk| u32::from_le_bytes(*chunk)).collect()
}

/// A number of two bytes, low one first.
pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

/// A number of four bytes, low one first.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

/// A floating-point number of eight bytes, low one first.
pub(super) fn f64_at(bytes: &[u8], at: usize) -> Option<f64> {
    Some(f64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}
