// Package sysctl writes kernel settings below /proc/sys in a network namespace, as the Linux driver needs them per interface.
package sysctl
