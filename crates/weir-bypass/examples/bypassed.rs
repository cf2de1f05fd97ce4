//! Runs a command while connections to some endpoints are bypassed, and tells what was redirected.
//!
//! `cargo run -p weir-bypass --example bypassed -- 127.0.0.1:8080 [ADDRESS…] -- COMMAND…`

#![expect(clippy::print_stdout, reason = "an example tells what it saw")]

use std::error::Error;
use std::net::SocketAddr;
use std::process::Command;

use weir_bypass::{Bypass, Hop};

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let split = args.iter().position(|arg| arg == "--");
    let split = split.ok_or("say endpoints, `--`, and a command")?;
    let mut hops = Vec::new();
    for address in &args[..split] {
        hops.push(Hop::from(address.parse::<SocketAddr>()?));
    }
    let (program, rest) = args[split + 1..].split_first().ok_or("say a command")?;
    let bypass = Bypass::attach(&hops)?;
    let status = Command::new(program).args(rest).status()?;
    println!("{:#?}\n{status}", bypass.counters()?);
    Ok(())
}
