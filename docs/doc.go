// Package docs has no code: its tests check that the documents here and the README files are true. Links have a target,
// every document can be reached from the README, and commands, flags and targets exist.
package docs
