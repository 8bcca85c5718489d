//! Tells the compiler which Ruby this build is for (`cfg(ruby_gte_4_0)` and the like).

fn main() -> Result<(), Box<dyn std::error::Error>> {
    rb_sys_env::activate()?;
    Ok(())
}
