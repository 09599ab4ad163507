//go:build !linux

package main

// isNamespace: here nobody can tell.
func isNamespace(string) bool { return true }
