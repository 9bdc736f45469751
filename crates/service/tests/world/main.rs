//! The whole service without threads: sessions on two shards, three databases, a fake disk for each, in one thread and virtual
//! time. [`world`] carries the messages; the other files are plays by topic and a random run with checkers.

mod audit;
mod backups;
mod batches;
mod client;
mod conversion;
mod disk;
mod dismissal;
mod endings;
mod first_answers;
mod late;
mod locks;
mod long_texts;
mod monitors;
mod ordering;
mod positions;
mod random;
mod recording;
mod removal;
mod storage;
mod turns;
mod unread;
mod waits;
mod world;
