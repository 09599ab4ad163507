// Package sysctl reads and writes kernel settings below /proc/sys in a network namespace.
package sysctl
