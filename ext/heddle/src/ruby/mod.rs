//! The only folder that calls Ruby's C functions directly. It meets their requirements (the GVL, a `protect` for
//! exceptions, objects that stay alive), so that the rest of the extension is mostly safe Rust.

pub mod call_sites;
pub mod constant;
pub mod error;
pub mod fiber;
pub mod fork;
pub mod frames;
pub mod gc;
pub mod gvl;
pub mod hidden_variable;
pub mod hook_interface;
pub mod insides;
pub mod interrupts;
pub mod io;
pub mod io_buffer;
pub mod line_events;
pub mod masks;
pub mod nogvl;
pub mod outcome;
pub mod pending_interrupts;
pub mod postponed_job;
pub mod process;
pub mod ractor;
pub mod raise_hooks;
pub mod receiver;
pub mod thread;
pub mod time;
pub mod value;
