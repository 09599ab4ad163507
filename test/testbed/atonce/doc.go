// Package atonce bounds how many tests of a package run at the same time. Most tests that have their own namespaces, agents or VPP wait most
// of the time: more of them than there are processors may run.
package atonce
