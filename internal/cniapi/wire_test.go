package cniapi

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestValidate(t *testing.T) {
	valid := func(change func(*Request)) *Request {
		req := addRequest("0a1b")
		req.Version = Version
		change(req)
		return req
	}
	for name, tc := range map[string]struct {
		req  *Request
		code uint // 0 = valid
	}{
		"add":               {valid(func(*Request) {}), 0},
		"del without netns": {valid(func(r *Request) { r.Command, r.Netns = Del, "" }), 0},
		"status":            {&Request{Version: Version, Command: Status}, 0},
		"gc of everything":  {&Request{Version: Version, Command: GC}, 0},
		"version":           {valid(func(r *Request) { r.Version = 2 }), CodeProtocol},
		"command":           {valid(func(r *Request) { r.Command = "format" }), CodeProtocol},
		"no container":      {valid(func(r *Request) { r.ContainerID = "" }), CodeInvalidEnvironment},
		"container is path": {valid(func(r *Request) { r.ContainerID = "../../etc" }), CodeInvalidEnvironment},
		"container slash":   {valid(func(r *Request) { r.ContainerID = "a/b" }), CodeInvalidEnvironment},
		"container at":      {valid(func(r *Request) { r.ContainerID = "a@b" }), CodeInvalidEnvironment},
		"container long":    {valid(func(r *Request) { r.ContainerID = strings.Repeat("a", 201) }), CodeInvalidEnvironment},
		"no interface":      {valid(func(r *Request) { r.IfName = "" }), CodeInvalidEnvironment},
		"interface long":    {valid(func(r *Request) { r.IfName = "eth0eth0eth0eth0" }), CodeInvalidEnvironment},
		"interface dots":    {valid(func(r *Request) { r.IfName = ".." }), CodeInvalidEnvironment},
		"interface slash":   {valid(func(r *Request) { r.IfName = "a/b" }), CodeInvalidEnvironment},
		"interface NUL":     {valid(func(r *Request) { r.IfName = "a\x00" }), CodeInvalidEnvironment},
		"loopback":          {valid(func(r *Request) { r.IfName = "lo" }), CodeInvalidEnvironment},
		"del of loopback":   {valid(func(r *Request) { r.Command, r.IfName = Del, "lo" }), 0},
		"no netns":          {valid(func(r *Request) { r.Netns = "" }), CodeInvalidEnvironment},
		"relative netns":    {valid(func(r *Request) { r.Netns = "netns/a" }), CodeInvalidEnvironment},
		"half a pod":        {valid(func(r *Request) { r.Pod.Name = "web" }), CodeInvalidEnvironment},
		"mtu":               {valid(func(r *Request) { r.Network.MTU = -1 }), CodeInvalidConfig},
		"gc with a path": {&Request{Version: Version, Command: GC,
			ValidAttachments: []AttachmentRef{{ContainerID: "/", IfName: "eth0"}}}, CodeInvalidEnvironment},
	} {
		err := tc.req.Validate()
		if tc.code == 0 && err != nil || tc.code != 0 && (err == nil || err.Code != tc.code) {
			t.Errorf("%s: got %v, want code %d", name, err, tc.code)
		}
	}
}

func TestTimeout(t *testing.T) {
	for ms, want := range map[int64]time.Duration{0: time.Minute, -5: time.Minute, 1500: 1500 * time.Millisecond, 1 << 60: 10 * time.Minute} {
		if got := (&Request{TimeoutMS: ms}).Timeout(time.Minute); got != want {
			t.Errorf("%d ms: %s, want %s", ms, got, want)
		}
	}
}

func TestEmptyFieldsAreNotSent(t *testing.T) {
	data, err := json.Marshal(&wireReply{Version: 1, Result: &Result{}})
	if err != nil || string(data) != `{"version":1,"result":{}}` {
		t.Errorf("%s %v", data, err)
	}
	data, err = json.Marshal(&Request{Version: 1, Command: Status})
	if err != nil || string(data) != `{"version":1,"command":"status"}` {
		t.Errorf("%s %v", data, err)
	}
}

// FuzzRequest checks that any input on the socket is a valid request or an error, and that a request is equal after a round
// trip.
func FuzzRequest(f *testing.F) {
	for _, seed := range []string{
		`{"version":1,"command":"status"}`,
		`{"version":1,"command":"add","containerID":"a","ifName":"eth0","netns":"/run/netns/a","pod":{"namespace":"n","name":"p"}}`,
		`{"version":1,"command":"gc","validAttachments":[{"containerID":"a","ifName":"eth0"}],"timeoutMs":5}`,
		`{"version":1,"command":"check","containerID":"a","ifName":"e","netns":"/n","prevResult":{"ips":[{"interface":0,"address":"10.0.0.1/32"}]}}`,
		`{"version":1,"command":"del","containerID":"a","ifName":"eth0"}`, `null`, `[]`, `{"version":1e9}`, "", "\x00",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		line, err := readLine(bytes.NewReader(append(data, '\n')))
		if err != nil {
			return
		}
		req, invalid := decodeRequest(line)
		if invalid != nil {
			if invalid.Code == 0 || invalid.Msg == "" {
				t.Errorf("error without code or message: %+v", invalid)
			}
			return
		}
		_ = req.String()
		if strings.ContainsAny(req.ContainerID+req.IfName, "/\x00") {
			t.Errorf("%q %q would leave the store", req.ContainerID, req.IfName)
		}
		line, err = marshalLine(req)
		if err != nil {
			return // the encoding has grown over the limit
		}
		again, invalid := decodeRequest(line[:len(line)-1])
		if invalid != nil || !reflect.DeepEqual(normal(t, again), normal(t, req)) {
			t.Errorf("round trip of %s: %v", data, invalid)
		}
	})
}

// normal returns the JSON form of req, in which empty and missing lists are the same.
func normal(t *testing.T, req *Request) string {
	data, err := json.Marshal(req)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
