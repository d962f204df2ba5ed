//! Runs scenarios one after the other, as they are asked for on the standard input: a line is the name of one. Each is
//! answered on the standard output by what there is to say about it, then by `=== passed` or `=== failed` and the
//! milliseconds, as the scenarios in `tests/java` are. Ends with its input, so with its caller.
//!
//! The one argument is the controller's URI, such as `tcp://127.0.0.1:9090`.

mod scenarios;
mod session;

use futures::FutureExt;
use pravega_client::client_factory::ClientFactory;
use pravega_client_config::ClientConfigBuilder;
use session::Session;
use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};
use tokio::time::timeout;

const DEADLINE: Duration = Duration::from_secs(400);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [controller] = arguments.as_slice() else {
        eprintln!("usage: sluice-rust-client CONTROLLER-URI");
        std::process::exit(2);
    };
    // What is said of a failure is read there, also of one in a task of the client's own.
    std::panic::set_hook(Box::new(|panic| println!("{panic}")));
    for name in std::io::stdin().lines() {
        let began = Instant::now();
        let verdict = if passes(&name.expect("a line"), controller) {
            "passed"
        } else {
            "failed"
        };
        println!("=== {verdict} {}", began.elapsed().as_millis());
    }
}

fn passes(name: &str, controller: &str) -> bool {
    let config = ClientConfigBuilder::default()
        .controller_uri(controller)
        .build()
        .expect("a configuration");
    let factory = ClientFactory::new(config);
    factory.runtime().block_on(async {
        let session = Session::new(factory.to_async()).await;
        let scenario = AssertUnwindSafe(scenarios::run(name, &session)).catch_unwind();
        match timeout(DEADLINE, scenario).await {
            Ok(outcome) => outcome.is_ok(),
            Err(_) => {
                println!("{name} did not end in {} s", DEADLINE.as_secs());
                false
            }
        }
    })
}
