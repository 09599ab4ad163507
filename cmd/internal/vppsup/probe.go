package vppsup

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"
)

// greet connects to VPP's API as a client (sockclnt_create) and disconnects. An answer means that VPP's main thread is running. dataplane/vpp
// implements the rest of the binary API; every client of every release begins with this one message.
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
		return fmt.Errorf("VPP's API does not respond: %w", err)
	}
	return nil
}
