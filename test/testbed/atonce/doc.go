// Package atonce bounds how many tests of a package run side by side. Most tests that have namespaces, agents or a VPP of their own wait most
// of the time: more of them than there are processors may run.
package atonce
