//! Long replies: a client that reads them gets all of them, however many they are.

use corvid_monitor::SessionId;

use crate::world::{World, play};

/// Length of a reply that is counted, with few steps, bytes.
const LONG: usize = 60 << 10;

/// More replies than a session may have unread.
const MANY: usize = 40;

fn ask_for_much(world: &mut World, client: SessionId, number: usize) {
    let select = r#"{"op":"select","table":"T","where":[],"columns":["k"]}"#;
    world.transact(client, &number.to_string(), "A", select);
}

#[test]
fn a_client_that_reads_long_replies_gets_all_of_them() {
    play(|world| {
        let client = world.connect();
        let key = "x".repeat(LONG);
        let insert = format!(r#"{{"op":"insert","table":"T","row":{{"k":"{key}"}}}}"#);
        world.transact(client, "0", "A", &insert);
        world.run();
        assert_eq!(world.take(client).lines().count(), 1);
        for number in 1..=MANY {
            ask_for_much(world, client, number);
            world.run();
            let told = world.take(client);
            assert!(told.contains(&format!("\"id\":{number},")), "{number}");
        }
        for number in 1..=MANY {
            ask_for_much(world, client, number);
        }
        world.run();
        assert_eq!(world.take(client).lines().count(), MANY);
        world.disconnect(client);
        world.check_idle();
        String::new()
    });
}
