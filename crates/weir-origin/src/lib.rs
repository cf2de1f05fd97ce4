//! The origin server: content, delays and scripted stalls.
