//! The layers as data; what they keep in and out is tested from outside.
