// Package delta knows the difference between what is wanted and what is there, so that every kind of dataplane object
// (routes, set members, chains, ACLs) does not track it on its own.
//
// A Tracker holds both sides, keyed alike, and the two lists that turn one into the other: pending updates (wanted, and absent
// or different) and pending deletions (there, not wanted). Each change of a side costs O(1), and going through a list costs
// its length: nothing but a full comparison (Dataplane().ReplaceAll) costs the number of objects.
//
// The user changes Desired as intent changes, walks the pending lists when it may write, and says for each entry whether the
// write was done; what was not done stays pending. What it learns about the dataplane otherwise (a listing, an event) goes to
// Dataplane, and what has drifted becomes pending by itself.
package delta
