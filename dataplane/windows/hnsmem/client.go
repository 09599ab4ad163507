package hnsmem

import "contiv.dev/vswitch/dataplane/windows/hns"

// Client is one process that uses the machine's HNS. A test can end it between any two calls, while others continue.
type Client struct {
	// Before is called at the start of each call of the client, without a lock: the call returns its error. nil: nothing.
	Before func(Call) error
	// After is called when a call has finished its work, before the client gets the outcome. nil: nothing.
	After func(Call)
}

// V1As returns version 1 of HNS for a client.
func (h *Host) V1As(c *Client) hns.API { return v1{h, c} }

// V2As returns version 2 of HNS for a client.
func (h *Host) V2As(c *Client) V2 { return V2{h, c} }

func (h V2) begin(op, id string) (unlock func(), err error) { return h.beginAs(h.client, op, id) }

func (h v1) begin(op, id string) (unlock func(), err error) { return h.beginAs(h.client, op, id) }

// beginAs is begin for a client; nil: any client.
func (h *Host) beginAs(c *Client, op, id string) (unlock func(), err error) {
	if c != nil && c.Before != nil {
		if err := c.Before(Call{op, id}); err != nil {
			return nil, err
		}
	}
	done, err := h.begin(op, id)
	if err != nil || c == nil || c.After == nil {
		return done, err
	}
	return func() {
		done()
		c.After(Call{op, id})
	}, nil
}
