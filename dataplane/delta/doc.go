// Package delta tracks the difference between the desired and the actual objects of a dataplane, so that each kind of dataplane object does not
// need its own tracking. The Linux driver uses it for the forwarding entries and neighbours of tunnels, and for elements of services. Where an
// object is more than a key and a value, its own package tracks it: routes, which several owners may claim and which wait for links; members of
// sets, for which only the difference is stored instead of both sides.
//
// A Tracker holds both sides with the same keys, and the two lists that turn one side into the other: pending updates (desired, and absent or
// different) and pending deletions (present, not desired). Each change of a side costs O(1), and a walk over a list costs its length: only a
// full comparison (Dataplane().ReplaceAll) costs the number of objects.
//
// The user changes Desired when the configuration changes, walks the pending lists when it may write, and returns for each entry whether the
// write was done; entries that were not written stay pending. Other information about the dataplane (a listing, an event) goes to Dataplane,
// and objects that differ from the desired state become pending automatically.
package delta
