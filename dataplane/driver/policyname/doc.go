// Package policyname resolves the names by which endpoints refer to policies. An endpoint refers to a tier and a name. Newer senders announce
// policies also by namespace and kind, so several policies may have the same tier and name. Then the name resolves to none of them: a driver
// that used one of them could enforce another policy than the sender means.
package policyname
