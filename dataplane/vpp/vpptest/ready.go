package vpptest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"time"
)

// await waits until the API answers.
func (v *VPP) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, v.opts.StartTimeout)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		err := register(v.Socket(), v.opts.StartTimeout)
		if err == nil {
			return nil
		}
		if v.dead() {
			return errors.New("the process ended")
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("API not ready: %w", err)
		case <-tick.C:
		}
	}
}

// dead reports whether the process has ended. At this point it has not been reaped yet.
func (v *VPP) dead() bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(v.proc.Pid) + "/stat")
	if err != nil {
		return true
	}
	_, state, _ := bytes.Cut(stat, []byte(") "))
	return bytes.HasPrefix(state, []byte("Z"))
}

// register registers an API client (sockclnt_create) and disconnects. An answer means that VPP is ready.
func register(socket string, timeout time.Duration) error {
	c, err := net.DialTimeout("unix", socket, timeout)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(timeout)); err != nil {
		return err
	}
	const header, message = 16, 2 + 4 + 4 + 64
	frame := make([]byte, header+message)
	binary.BigEndian.PutUint32(frame[8:], message)
	binary.BigEndian.PutUint16(frame[header:], 15)
	copy(frame[header+10:], "vpptest")
	if _, err := c.Write(frame); err != nil {
		return err
	}
	_, err = io.ReadFull(c, frame[:header])
	return err
}
