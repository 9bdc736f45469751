//! What every end-to-end test shares: starting servers, talking to them, comparing what they say.
