//go:build !windows

package hns

// Open returns ErrNotWindows.
func Open() (API, error) { return nil, ErrNotWindows }
