// Package table prints the answers of contiv-netctl: as columns for people, as JSON or YAML for scripts.
package table
