package cniapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"syscall"
	"time"
)

// Client sends requests to the agent.
type Client struct {
	// Socket is the path of the agent's socket.
	Socket string
	// RetryFor is how long the client repeats the request when no agent runs, or the agent stops.
	RetryFor time.Duration
}

// UnreachableError reports that no agent answered.
type UnreachableError struct {
	Socket string
	Err    error
}

// Error implements error.
func (e *UnreachableError) Error() string {
	return fmt.Sprintf("contiv-agent does not respond on %s (check that it runs on this node): %s", e.Socket, e.Err.Error())
}

// Unwrap returns the cause.
func (e *UnreachableError) Unwrap() error { return e.Err }

const (
	firstPause = 20 * time.Millisecond
	lastPause  = 500 * time.Millisecond
)

// Do sends req, which has to be idempotent, and returns the agent's answer: a result, an *Error, or an *UnreachableError. While no agent
// runs, the request is repeated until RetryFor or ctx is over. ctx needs a deadline; the request makes the agent answer a little earlier.
func (c *Client) Do(ctx context.Context, req *Request) (*Result, error) {
	giveUp := time.Now().Add(c.RetryFor)
	pause := firstPause
	for {
		res, err := c.once(ctx, req)
		if err == nil || !transient(err) {
			return res, err
		}
		wait := pause + rand.N(pause/2) // jitter, so that not all pods of a node retry at the same time
		if ctx.Err() != nil || time.Now().Add(wait).After(giveUp) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(wait):
		}
		pause = min(pause*3/2, lastPause)
	}
}

// transient reports whether a new agent, or the same one a little later, may answer.
func transient(err error) bool {
	var answer *Error
	if errors.As(err, &answer) {
		return answer.Retry
	}
	return !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, errTooLong)
}

func (c *Client) once(ctx context.Context, req *Request) (*Result, error) {
	unreachable := func(err error) error { return &UnreachableError{Socket: c.Socket, Err: err} }
	msg := *req
	msg.Version = Version
	if deadline, ok := ctx.Deadline(); ok {
		msg.TimeoutMS = max(1, remaining(time.Until(deadline)).Milliseconds())
	}
	line, err := marshalLine(&msg)
	if err != nil {
		return nil, err
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", c.Socket)
	if err != nil {
		return nil, unreachable(err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()

	if _, err := conn.Write(line); err != nil {
		// The agent may have rejected the connection before it read the request; then its reply can be read.
		if res, replyErr := readReply(conn); replyErr == nil || isAnswer(replyErr) {
			return res, replyErr
		}
		return nil, unreachable(fmt.Errorf("send request: %w", err))
	}
	res, err := readReply(conn)
	if err != nil && !isAnswer(err) {
		return nil, unreachable(err)
	}
	return res, err
}

// remaining returns the time that the agent may take so that its answer arrives before the timeout.
func remaining(left time.Duration) time.Duration {
	return left - min(left/10, 500*time.Millisecond)
}

func isAnswer(err error) bool {
	var answer *Error
	return errors.As(err, &answer)
}

func readReply(conn io.Reader) (*Result, error) {
	line, err := readLine(conn)
	if err != nil {
		return nil, fmt.Errorf("wait for reply: %w", err)
	}
	reply := wireReply{}
	if err := json.Unmarshal(line, &reply); err != nil {
		return nil, Errorf(CodeDecode, "reply of contiv-agent cannot be decoded: %s", err.Error())
	}
	switch {
	case reply.Error != nil:
		return nil, reply.Error
	case reply.Result == nil:
		return &Result{}, nil
	}
	return reply.Result, nil
}
