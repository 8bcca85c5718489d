//! Which function of which library an address in this process belongs to.
//!
//! Reads the kernel's list of mappings, and the symbols in the library's file (ELF, 64 bit). The dynamic linker could
//! tell, too, but only functions that the library exports, and it holds a lock while it loads a library.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A symbol table that is larger is not read.
const MAX_SIZE: u64 = 64 << 20;
const SYMBOL_SIZE: usize = 24;
const SYMBOL_TABLE: u32 = 2;
const DYNAMIC_SYMBOL_TABLE: u32 = 11;
const LOADED: u32 = 1;
const FUNCTION: u8 = 2;

/// `read (libc.so.6)`, or `libcrypto.so.3` if the file does not name the function. `None` if the address is in no file.
pub fn function_at(address: u64) -> Option<String> {
    let mapping = Mapping::with(address, &fs::read_to_string("/proc/self/maps").ok()?)?;
    let library = Path::new(&mapping.path).file_name()?.to_str()?.to_owned();
    let offset = address - mapping.start + mapping.offset;
    Some(match Elf::open(&mapping.path).and_then(|file| file.function_at(offset)) {
        Some(function) => format!("{function} ({library})"),
        None => library,
    })
}

/// A part of a file that is mapped into memory.
#[derive(Debug, PartialEq, Eq)]
struct Mapping {
    start: u64,
    offset: u64,
    path: String,
}

impl Mapping {
    /// The mapping that contains the address, of proc_pid_maps(5).
    fn with(address: u64, maps: &str) -> Option<Mapping> {
        maps.lines().find_map(|line| {
            let mut fields = line.split_ascii_whitespace();
            let (start, end) = fields.next()?.split_once('-')?;
            let (start, end) = (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
            let offset = u64::from_str_radix(fields.nth(1)?, 16).ok()?;
            let path = line.find('/').map(|path| line[path..].to_owned())?;
            (start..end).contains(&address).then_some(Mapping { start, offset, path })
        })
    }
}

struct Elf {
    file: File,
    header: Vec<u8>,
}

/// A part of the file.
#[derive(Debug, Clone, Copy)]
struct Section {
    kind: u32,
    offset: u64,
    size: u64,
    /// The number of the section with its names.
    link: u32,
}

impl Elf {
    fn open(path: &str) -> Option<Elf> {
        const HEADER_SIZE: u64 = 64;
        // The kind of file, 64 bit, in the order of bytes that this machine has.
        let magic = [0x7f, b'E', b'L', b'F', 2, if cfg!(target_endian = "little") { 1 } else { 2 }];
        let file = File::open(path).ok()?;
        let elf = Elf { header: read(&file, 0, HEADER_SIZE)?, file };
        elf.header.starts_with(&magic).then_some(elf)
    }

    fn function_at(&self, offset: u64) -> Option<String> {
        let address = self.address_of(offset)?;
        let sections = self.sections()?;
        // The first has all functions, and is missing if the file was stripped. The second has those that are exported.
        [SYMBOL_TABLE, DYNAMIC_SYMBOL_TABLE].into_iter().find_map(|kind| {
            let table = sections.iter().find(|section| section.kind == kind)?;
            let names = sections.get(table.link as usize)?;
            self.find(table, names, address)
        })
    }

    /// The address, as symbols have it, of the code at this offset of the file.
    fn address_of(&self, offset: u64) -> Option<u64> {
        let (start, size, count) = (u64_at(&self.header, 32)?, u16_at(&self.header, 54)?, u16_at(&self.header, 56)?);
        let headers = read(&self.file, start, u64::from(size) * u64::from(count))?;
        headers.chunks_exact(size.into()).find_map(|header| {
            let (at, address, length) = (u64_at(header, 8)?, u64_at(header, 16)?, u64_at(header, 32)?);
            let is_there = u32_at(header, 0)? == LOADED && offset >= at && offset - at < length;
            is_there.then(|| (offset - at).wrapping_add(address))
        })
    }

    fn sections(&self) -> Option<Vec<Section>> {
        let (start, size, count) = (u64_at(&self.header, 40)?, u16_at(&self.header, 58)?, u16_at(&self.header, 60)?);
        let headers = read(&self.file, start, u64::from(size) * u64::from(count))?;
        let section = |header: &[u8]| {
            Some(Section {
                kind: u32_at(header, 4)?,
                offset: u64_at(header, 24)?,
                size: u64_at(header, 32)?,
                link: u32_at(header, 40)?,
            })
        };
        headers.chunks_exact(size.into()).map(section).collect()
    }

    fn find(&self, table: &Section, names: &Section, address: u64) -> Option<String> {
        let symbols = read(&self.file, table.offset, table.size)?;
        let name = symbols.chunks_exact(SYMBOL_SIZE).find_map(|symbol| {
            let (kind, value, size) = (symbol.get(4)? & 0xf, u64_at(symbol, 8)?, u64_at(symbol, 16)?);
            let is_within = address >= value && address - value < size;
            (kind == FUNCTION && is_within).then(|| u32_at(symbol, 0))?
        })?;
        let names = read(&self.file, names.offset, names.size)?;
        let name = names.get(name as usize..)?.split(|byte| *byte == 0).next()?;
        Some(String::from_utf8_lossy(name).into_owned())
    }
}

fn read(file: &File, offset: u64, size: u64) -> Option<Vec<u8>> {
    // A malformed file may tell any size.
    let size = usize::try_from(size).ok().filter(|_| (1..=MAX_SIZE).contains(&size))?;
    let mut bytes = vec![0; size];
    file.read_exact_at(&mut bytes, offset).ok().map(|()| bytes)
}

fn bytes_at<const N: usize>(bytes: &[u8], offset: usize) -> Option<[u8; N]> {
    bytes.get(offset..offset + N)?.try_into().ok()
}

fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    bytes_at(bytes, offset).map(u16::from_ne_bytes)
}

fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    bytes_at(bytes, offset).map(u32::from_ne_bytes)
}

fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    bytes_at(bytes, offset).map(u64::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mapping_of_an_address_is_found() {
        let maps = "1000-2000 r--p 00000000 fe:00 7   /a b.so\n2000-3000 r-xp 00001000 fe:00 7   /a b.so\n\
                    3000-4000 rw-p 00000000 00:00 0\n";
        let found = Mapping { start: 0x2000, offset: 0x1000, path: "/a b.so".to_owned() };
        assert_eq!(Mapping::with(0x2004, maps), Some(found));
        assert_eq!(Mapping::with(0x3004, maps), None);
        assert_eq!(Mapping::with(0x4004, maps), None);
    }

    #[test]
    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    fn functions_of_the_program_and_of_libraries_are_named() {
        #[unsafe(no_mangle)]
        #[inline(never)]
        extern "C" fn heddle_machine_code_test() {}

        let found = function_at(heddle_machine_code_test as *const () as u64);
        assert!(found.as_ref().is_some_and(|found| found.contains("heddle_machine_code_test (")), "{found:?}");
        assert!(function_at(libc::getpid as *const () as u64).is_some_and(|found| found.contains('(')));
        assert_eq!(function_at(&raw const found as u64), None, "a stack is no file");
    }
}
