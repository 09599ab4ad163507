package hcn

import (
	"regexp"
	"strconv"
)

// The range of codes that Microsoft documents for the Host Compute Network ("HCN Error Code").
const firstCode, lastCode = 0x803b0001, 0x803b0037

// meaning returns the error of this package for a documented code; nil: callers can only retry.
func meaning(code uint32) error {
	switch code {
	case 0x803b0001, 0x803b0002, 0x803b0007, 0x803b0008, // network, endpoint, port, policy
		0x803b0027, 0x803b0034: // compartment (of a namespace); the endpoint is not attached
		return ErrNotFound
	case 0x803b0010, 0x803b0011, 0x803b0012, 0x803b0013, // network, layer, policy, port
		0x803b0014, 0x803b0029, 0x803b002b: // the endpoint is attached; default namespace; the endpoint is in a namespace
		return ErrExists
	case 0x803b000f, 0x803b0015, 0x803b0016, 0x803b0018, 0x803b0023, 0x803b0037: // of a remote endpoint, request, mapping, shared switch, VFP
		return ErrUnsupported
	case 0x803b0005, 0x803b000a, 0x803b000b, 0x803b000c, 0x803b000d, 0x803b000e, // subnet of the address, network, type, endpoint, policy, its type
		0x803b0019, 0x803b001b, 0x803b001c, 0x803b001e, // GUID, JSON, reference, address
		0x803b002d, 0x803b0030, 0x803b0032, 0x803b0033: // internal port, prefix, subnets
		return ErrInvalid
	}
	return nil
}

// meaningOfText returns meaning for the code in an error's text: some answers of the service have the code only there.
func meaningOfText(text string) error {
	for _, word := range regexp.MustCompile(`(?i)0x803b[0-9a-f]{4}\b`).FindAllString(text, -1) {
		code, err := strconv.ParseUint(word[2:], 16, 32)
		if err != nil {
			continue
		}
		if err := meaning(uint32(code)); err != nil {
			return err
		}
	}
	return nil
}
