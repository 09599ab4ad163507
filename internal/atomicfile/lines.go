package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"strings"
)

// Lines is a list of words in a file of this name, one in each line.
type Lines string

// Load returns the words. It returns none if the file does not exist.
func (f Lines) Load() ([]string, error) {
	raw, err := os.ReadFile(string(f))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return strings.Fields(string(raw)), nil
}

// Store replaces the words.
func (f Lines) Store(words []string) error {
	return Write(string(f), []byte(strings.Join(words, "\n")+"\n"), 0o600)
}
