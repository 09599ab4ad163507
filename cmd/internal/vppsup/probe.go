package vppsup

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"
)

// greet makes a client of VPP's API (sockclnt_create) and goes away again. An answer means that VPP's main thread is alive.
// The binary API proper belongs to dataplane/vpp; this one message is how every client begins, in every release.
func greet(socket string, timeout time.Duration) error {
	c, err := net.DialTimeout("unix", socket, timeout)
	if err != nil {
		return fmt.Errorf("VPP's API: %w", err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(timeout)); err != nil {
		return fmt.Errorf("VPP's API: %w", err)
	}
	const header, name, message, sockclntCreate = 16, 64, 2 + 4 + 4 + 64, 15
	frame := make([]byte, header+message)
	binary.BigEndian.PutUint32(frame[8:], message)
	binary.BigEndian.PutUint16(frame[header:], sockclntCreate)
	copy(frame[header+message-name:], "contiv-supervisor")
	if _, err := c.Write(frame); err != nil {
		return fmt.Errorf("VPP's API: %w", err)
	}
	if _, err := io.ReadFull(c, frame[:header]); err != nil {
		return fmt.Errorf("VPP's API does not answer: %w", err)
	}
	return nil
}
