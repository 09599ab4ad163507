// Package routetable keeps the main routing table's routes of the Linux driver, and the static neighbours that belong to them,
// as desired. It owns what carries its protocol number, and leaves all else alone.
//
// Each user of the table is a class; several may want the same destination, of which one gets it (Table.SetRoutes). From the claims
// follows for each destination a goal, given which links are up (goal.go); what the kernel has is noted as it is listed and
// written (listing.go, apply.go). Apply turns the difference into one pipelined batch (plan.go): what goes, neighbours, routes
// over links, routes by next hops. All of that is pure; kernel.go is the thin part that talks.
//
// A listing is needed only at first, after a Resync, after answers were lost, and of links that were down: the kernel has
// dropped their routes. New routes are added so that the kernel refuses if there is one already (NLM_F_EXCL); only then is it
// looked whose that is.
//
// When a host's address goes from one link to another, or away, its connections are forgotten: first the old route goes, then
// the connections, in a background job, and only then comes the new route.
package routetable
