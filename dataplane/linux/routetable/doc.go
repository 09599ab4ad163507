// Package routetable maintains the Linux driver's routes in the main routing table, and the static neighbours that belong to them. It owns
// the objects with its protocol number, and leaves all others unchanged.
//
// Each user of the table is a class; several classes may claim the same destination, and one of them gets it (Table.SetRoutes). The goal of
// each destination is computed from the claims and from the set of links that are up (desired.go). The kernel's state is recorded when it is
// listed and written (listing.go, apply.go). Apply turns the difference into one pipelined batch (plan.go): removals, neighbours, routes
// over links, routes with next hops. All of this has no side effects; kernel.go is the small part that accesses the kernel.
//
// A listing is needed only at the start, after a Resync, after lost answers, and for links that were down, since the kernel has removed
// their routes. New routes are added with NLM_F_EXCL, so that the kernel rejects them if there is already a route; only then the owner of
// the existing route is determined.
//
// When a host's address moves from one link to another, or disappears, its connections are removed: first the old route is removed, then
// the connections, in a background job, and only then the new route is added.
package routetable
