//! Many small transactions with their exact results, by topic. Run with `UPDATE_EXPECT=1` to
//! rewrite the expectations.

mod carry_over;
mod conditions;
mod fixture;
mod indexes;
mod loading;
mod mutations;
mod operations;
mod random;
mod rbac;
mod references;
mod whole;
