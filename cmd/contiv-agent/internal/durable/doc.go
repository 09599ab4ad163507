// Package durable replaces files so that they survive a loss of power: a file has its old content or the new one, and after WriteFile
// has returned, the new one. It is for data that cannot be computed again after a reboot.
package durable
