package ipam

import "errors"

// ErrExhausted means that this node's pod subnet has no free address.
var ErrExhausted = errors.New("no free pod address")
