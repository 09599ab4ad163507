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

// Bundle is a support bundle that is being written.
type Bundle struct {
	gz      *gzip.Writer
	tar     *tar.Writer
	at      time.Time
	secrets []*regexp.Regexp
}

// redaction replaces a secret.
const redaction = "[removed]"

// New returns a bundle that is written to out.
func New(out io.Writer, at time.Time) *Bundle {
	gz := gzip.NewWriter(out)
	return &Bundle{gz: gz, tar: tar.NewWriter(gz), at: at, secrets: secrets()}
}

// secrets returns expressions for text that must not leave the cluster; the first group is the part to keep.
func secrets() []*regexp.Regexp {
	const name = `\b[\w.-]*(?:password|passwd|secret|token|api[_-]?key|private[_-]?key|psk)`
	return []*regexp.Regexp{
		regexp.MustCompile(`()-----BEGIN [A-Z ]*PRIVATE KEY-----(?s:.*?)-----END [A-Z ]*PRIVATE KEY-----`),
		regexp.MustCompile(`(?i)(\bauthorization["']?\s*[:=]\s*["']?(?:bearer|basic)\s+)[^\s"',]+`),
		// Values in quotes, which are escaped when JSON is inside of JSON, and values without quotes.
		regexp.MustCompile(`(?i)(` + name + `"?\s*[:=]\s*")(?:[^"\\\n]|\\.)+`),
		regexp.MustCompile(`(?i)(` + name + `\\"\s*[:=]\s*\\")[^"\\\n]+`),
		regexp.MustCompile(`(?i)(` + name + `"?\s*[:=]\s*)[^\s"',}\\]{4,}`),
		// A JSON Web Token, such as that of a service account.
		regexp.MustCompile(`()\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}`),
	}
}

// Clean replaces secrets.
func (b *Bundle) Clean(text string) string {
	for _, s := range b.secrets {
		text = s.ReplaceAllString(text, "${1}"+redaction)
	}
	return text
}

// Add adds a text to the bundle. A name must stay inside of the bundle, because names of nodes are input.
func (b *Bundle) Add(name, text string) error {
	clean := path.Clean(name)
	if path.IsAbs(clean) || clean == "." || clean == ".." || strings.HasPrefix(clean, "../") {
		return fmt.Errorf("support bundle: the name %q is a path outside of the bundle", name)
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

// Close completes the bundle; its writer stays open.
func (b *Bundle) Close() error { return errors.Join(b.tar.Close(), b.gz.Close()) }
