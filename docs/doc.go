// Package docs has no code: its tests keep what is written here, and in the README files, true. Links lead somewhere, every
// document can be found from the README, and commands, flags and targets exist.
package docs
