// Package table prints the answers of contiv-netctl: as columns for users, as JSON or YAML for scripts.
package table
