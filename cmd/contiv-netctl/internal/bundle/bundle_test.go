package bundle

import (
	"io"
	"strings"
	"testing"
	"time"
)

func TestSecretsAreRedacted(t *testing.T) {
	b := New(io.Discard, time.Now())
	for _, tc := range []struct{ text, secret, kept string }{
		{"a\n-----BEGIN EC PRIVATE KEY-----\nMHcCAQ\nxyz\n-----END EC PRIVATE KEY-----\nb", "MHcCAQ", "b"},
		{"Authorization: Bearer abcdef123456", "abcdef123456", "Bearer "},
		{`"authorization": "Basic dXNlcjpwdw=="`, "dXNlcjpwdw", "Basic"},
		{`{"etcd-password": "hunter22", "x": 1}`, "hunter22", `"x": 1`},
		{`{"etcd-password": "correct \"horse\", battery", "x": 1}`, "battery", `"x": 1`},
		{`"conf": "{\"password\": \"hunter22 too\", \"x\": 1}"`, "hunter22 too", `\"x\": 1`},
		{`etcd-password: "correct horse"`, "horse", "etcd-password"},
		{"token=0123456789 next", "0123456789", "next"},
		{"memif secret: s3cr3tvalue", "s3cr3tvalue", "memif"},
		{"jwt eyJhbGciOiJSUzI1NiIs.eyJpc3MiOiJrdWJl.c2lnbmF0dXJlLi4u end", "eyJpc3MiOiJrdWJl", "end"},
	} {
		got := b.Clean(tc.text)
		if strings.Contains(got, tc.secret) || !strings.Contains(got, tc.kept) || !strings.Contains(got, redaction) {
			t.Errorf("%q became %q", tc.text, got)
		}
	}
	for _, text := range []string{`"tokenFile": "/etc/contiv/token"`, "token of the REST API replaced", "10.1.1.1 dev eth0",
		"keys: 17"} {
		if got := b.Clean(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestNamesStayInside(t *testing.T) {
	b := New(io.Discard, time.Now())
	for _, name := range []string{"../x", "/etc/passwd", "nodes/../../x", "..", "."} {
		if b.Add(name, "") == nil {
			t.Errorf("%q was taken", name)
		}
	}
	if err := b.Add("nodes/n1/file", "text"); err != nil {
		t.Error(err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}
