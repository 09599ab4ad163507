// Package delta keeps the difference between what is wanted and what is there, so that every kind of dataplane object does not track it on
// its own. The Linux driver keeps tunnels' forwarding entries and neighbours with it, and services' elements. Where an object is more than
// a key and a value, its own package keeps it: routes, which several may claim and which wait for links; members of sets, of which only the
// difference is kept, not the whole of both sides.
//
// A Tracker holds both sides, keyed alike, and the two lists that turn one into the other: pending updates (wanted, and absent or
// different) and pending deletions (there, not wanted). Each change of a side costs O(1), and going through a list costs its length: only a
// full comparison (Dataplane().ReplaceAll) costs the number of objects.
//
// The user changes Desired as intent changes, walks the pending lists when it may write, and says for each entry whether the write was
// done; what was not done stays pending. What it receives about the dataplane otherwise (a listing, an event) goes to Dataplane, and what
// has drifted becomes pending by itself.
package delta
