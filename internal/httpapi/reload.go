package httpapi

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"
)

// minToken is the minimum length of a token.
const minToken = 16

// stamp distinguishes a file from its replacement.
type stamp struct {
	modified time.Time
	size     int64
}

func stampOf(path string) (stamp, error) {
	info, err := os.Stat(path)
	if err != nil {
		return stamp{}, err
	}
	return stamp{info.ModTime(), info.Size()}, nil
}

// certificate is a key pair in two files.
type certificate struct {
	certFile, keyFile string
	log               *slog.Logger

	mu       sync.Mutex
	pair     *tls.Certificate // guarded by mu
	stamps   [2]stamp         // guarded by mu: of the files that pair comes from
	reported complaint        // last logged error; guarded by mu
}

func openCertificate(certFile, keyFile string, log *slog.Logger) (*certificate, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, log: log}
	stamps, err := c.readStamps()
	if err != nil {
		return nil, err
	}
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, err
	}
	c.pair, c.stamps = &pair, stamps
	return c, nil
}

func (c *certificate) readStamps() (stamps [2]stamp, err error) {
	for i, path := range []string{c.certFile, c.keyFile} {
		if stamps[i], err = stampOf(path); err != nil {
			return stamps, err
		}
	}
	return stamps, nil
}

// get is called for every handshake. While the two files are being replaced they do not match: the old pair is used until they
// do.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	stamps, err := c.readStamps()
	if err == nil && stamps != c.stamps {
		var pair tls.Certificate
		if pair, err = tls.LoadX509KeyPair(c.certFile, c.keyFile); err == nil {
			c.pair, c.stamps = &pair, stamps
			c.log.Info("certificate of the REST API replaced", "file", c.certFile)
		}
	}
	if c.reported.isNew(err) {
		c.log.Warn("new certificate of the REST API cannot be used; the old one stays", "file", c.certFile, "error", err)
	}
	return c.pair, nil
}

// tokenFile is the bearer token in a file.
type tokenFile struct {
	path string
	log  *slog.Logger

	mu       sync.Mutex
	token    string    // guarded by mu
	stamp    stamp     // guarded by mu
	reported complaint // last logged error; guarded by mu
}

func openToken(path string, log *slog.Logger) (*tokenFile, error) {
	t := &tokenFile{path: path, log: log}
	at, err := stampOf(path)
	if err != nil {
		return nil, err
	}
	if t.token, err = readToken(path); err != nil {
		return nil, err
	}
	t.stamp = at
	return t, nil
}

func readToken(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(data))
	if len(token) < minToken {
		return "", fmt.Errorf("the token in %s has %d characters; use at least %d", path, len(token), minToken)
	}
	return token, nil
}

// current returns the current token. If the file is missing or cannot be used, it returns the last good one.
func (t *tokenFile) current() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	at, err := stampOf(t.path)
	if err == nil && at != t.stamp {
		var token string
		if token, err = readToken(t.path); err == nil {
			t.token, t.stamp = token, at
		}
	}
	if t.reported.isNew(err) {
		t.log.Warn("new token of the REST API cannot be used; the old one stays", "error", err)
	}
	return t.token
}

// complaint is the error that was logged last: there are many requests, each of which finds the same fault.
type complaint string

// isNew reports whether err is not nil and differs from the last one.
func (c *complaint) isNew(err error) bool {
	last := *c
	if *c = ""; err != nil {
		*c = complaint(err.Error())
	}
	return err != nil && *c != last
}
