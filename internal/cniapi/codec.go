package cniapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

var errTooLong = errors.New("message is longer than the limit")

// readLine reads up to the newline. io.ErrUnexpectedEOF means that the peer disconnected before the end of the line.
func readLine(r io.Reader) ([]byte, error) {
	buf := make([]byte, 0, 4096)
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := r.Read(buf[len(buf):cap(buf)])
		fresh := buf[len(buf) : len(buf)+n]
		buf = buf[:len(buf)+n]
		if i := bytes.IndexByte(fresh, '\n'); i >= 0 {
			return buf[:len(buf)-n+i], nil
		}
		if len(buf) > maxMessage {
			return nil, fmt.Errorf("%w of %d bytes", errTooLong, maxMessage)
		}
		if errors.Is(err, io.EOF) {
			return nil, io.ErrUnexpectedEOF
		}
		if err != nil {
			return nil, err
		}
	}
}

// marshalLine returns v as one line of JSON.
func marshalLine(v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	if len(data) > maxMessage {
		return nil, fmt.Errorf("encode %T: %w of %d bytes", v, errTooLong, maxMessage)
	}
	return append(data, '\n'), nil
}

// decodeRequest parses and validates the request in one line.
func decodeRequest(line []byte) (*Request, *Error) {
	req := &Request{}
	if err := json.Unmarshal(line, req); err != nil {
		return nil, Errorf(CodeDecode, "request cannot be decoded: %s", err.Error())
	}
	if err := req.Validate(); err != nil {
		return nil, err
	}
	return req, nil
}
