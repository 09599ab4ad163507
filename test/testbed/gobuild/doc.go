// Package gobuild builds the commands that tests run as processes.
package gobuild
