//! Tells the compiler which Ruby this build is for (`cfg(ruby_gte_4_0)` and the like).

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Else Cargo runs this again when any file beside it changes. `gem install` leaves its Makefile and the finished
    // library there before it calls Cargo a second time, which would compile the extension twice.
    rb_sys_env::activate()?.print_cargo_rerun_if_changed();
    Ok(())
}
