//go:build !windows

package hcn

// Open returns ErrNotWindows.
func Open() (API, error) { return nil, ErrNotWindows }
