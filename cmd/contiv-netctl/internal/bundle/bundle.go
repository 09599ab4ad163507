package bundle

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"strings"
	"time"
)

// Bundle is being written.
type Bundle struct {
	gz      *gzip.Writer
	tar     *tar.Writer
	at      time.Time
	secrets []*regexp.Regexp
}

// blackout stands for a secret.
const blackout = "[removed]"

// New writes to out.
func New(out io.Writer, at time.Time) *Bundle {
	gz := gzip.NewWriter(out)
	return &Bundle{gz: gz, tar: tar.NewWriter(gz), at: at, secrets: secrets()}
}

// secrets find what must not leave the cluster; the part to keep is the first group.
func secrets() []*regexp.Regexp {
	const name = `\b[\w.-]*(?:password|passwd|secret|token|api[_-]?key|private[_-]?key|psk)`
	return []*regexp.Regexp{
		regexp.MustCompile(`()-----BEGIN [A-Z ]*PRIVATE KEY-----(?s:.*?)-----END [A-Z ]*PRIVATE KEY-----`),
		regexp.MustCompile(`(?i)(\bauthorization["']?\s*[:=]\s*["']?(?:bearer|basic)\s+)[^\s"',]+`),
		// In quotes, which may be escaped when JSON is in JSON; and without.
		regexp.MustCompile(`(?i)(` + name + `"?\s*[:=]\s*")(?:[^"\\\n]|\\.)+`),
		regexp.MustCompile(`(?i)(` + name + `\\"\s*[:=]\s*\\")[^"\\\n]+`),
		regexp.MustCompile(`(?i)(` + name + `"?\s*[:=]\s*)[^\s"',}\\]{4,}`),
		// A JSON Web Token, such as service accounts have.
		regexp.MustCompile(`()\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}`),
	}
}

// Clean blacks out secrets.
func (b *Bundle) Clean(text string) string {
	for _, s := range b.secrets {
		text = s.ReplaceAllString(text, "${1}"+blackout)
	}
	return text
}

// Add puts a text into the bundle. A name must stay inside of it: names of nodes come from others.
func (b *Bundle) Add(name, text string) error {
	clean := path.Clean(name)
	if path.IsAbs(clean) || clean == "." || clean == ".." || strings.HasPrefix(clean, "../") {
		return fmt.Errorf("support bundle: the name %q leads out of it", name)
	}
	text = b.Clean(text)
	if err := b.tar.WriteHeader(&tar.Header{Name: clean, Mode: 0o600, Size: int64(len(text)), ModTime: b.at}); err != nil {
		return fmt.Errorf("support bundle: %s: %w", name, err)
	}
	if _, err := io.WriteString(b.tar, text); err != nil {
		return fmt.Errorf("support bundle: %s: %w", name, err)
	}
	return nil
}

// Close ends the bundle; what it is written to stays open.
func (b *Bundle) Close() error { return errors.Join(b.tar.Close(), b.gz.Close()) }
