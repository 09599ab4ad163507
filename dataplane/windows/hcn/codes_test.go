package hcn

import (
	"errors"
	"fmt"
	"testing"
)

// TestMeaning: the codes of Microsoft's table have the right meaning for callers. A code that may be temporary is not a permanent error.
func TestMeaning(t *testing.T) {
	for code, want := range map[uint32]error{
		0x803b0001: ErrNotFound, 0x803b0002: ErrNotFound, 0x803b0008: ErrNotFound, 0x803b0034: ErrNotFound,
		0x803b0010: ErrExists, 0x803b0013: ErrExists, 0x803b002b: ErrExists,
		0x803b0015: ErrUnsupported, 0x803b000f: ErrUnsupported,
		0x803b000d: ErrInvalid, 0x803b001e: ErrInvalid, 0x803b0005: ErrInvalid,
		0x803b0006: nil /* the adapter may come */, 0x803b0020: nil /* the service stops */, 0x803b0025: nil, 0x803b002c: nil, 0x80070005: nil, 0: nil,
	} {
		if got := meaning(code); !errors.Is(got, want) || want == nil && got != nil {
			t.Errorf("%#x means %v, want %v", code, got, want)
		}
		for _, form := range []string{"hcnDeleteEndpoint failed in Win32: (%#x)", `{"Success":false,"ErrorCode":"%#X"}`} {
			if got := meaningOfText(fmt.Sprintf(form, code)); !errors.Is(got, want) || want == nil && got != nil {
				t.Errorf("%q means %v, want %v", fmt.Sprintf(form, code), got, want)
			}
		}
	}
	if got := meaningOfText("endpoint 0x803b00020 at 1803b0002"); got != nil {
		t.Errorf("a longer number means %v", got)
	}
}

// TestCodesAreInRange: codes outside of the range that errors are compared with have no meaning.
func TestCodesAreInRange(t *testing.T) {
	for code := uint32(0x803b0000); code < 0x803b0100; code++ {
		if inside := code >= firstCode && code <= lastCode; !inside && meaning(code) != nil {
			t.Errorf("%#x is not in the range", code)
		}
	}
}
