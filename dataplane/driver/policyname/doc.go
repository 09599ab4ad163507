// Package policyname resolves the names by which endpoints refer to policies. An endpoint has a tier and a name; newer senders announce policies by
// namespace and kind as well, so a tier and a name may stand for several policies. Then none of them counts: a driver that took one of them
// would enforce another policy than the sender means.
package policyname
