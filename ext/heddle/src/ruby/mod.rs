//! The only place that calls Ruby's C functions by itself. What they need (the GVL, a tag to jump to, an object that
//! stays alive) is provided here, so that the rest of the extension is safe Rust.

pub mod aside;
pub mod block;
pub mod error;
pub mod fiber;
pub mod fork;
pub mod frames;
pub mod gc;
pub mod insides;
pub mod interface;
pub mod interrupts;
pub mod io;
pub mod io_buffer;
pub mod masks;
pub mod nogvl;
pub mod note;
pub mod pending;
pub mod postponed_job;
pub mod process;
pub mod ractor;
pub mod receiver;
pub mod stack_colour;
pub mod thread;
pub mod time;
pub mod value;
