package kerberos

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/jcmturner/gokrb5/v8/config"
)

// maxFile bounds the files that are read, in bytes. A cache of a busy user has some hundred
// kilobytes.
const maxFile = 16 << 20

// readFile reads a whole file of at most maxFile bytes.
func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("%s has more than %d bytes", name, maxFile)
	}
	return data, err
}

// parseConfig reads a configuration. What the library knows but does not do counts as done.
func parseConfig(data []byte) (c *config.Config, err error) {
	defer recovered(&err, "it is damaged: %v")
	text := withoutInner(string(data))
	for line := range strings.Lines(text) {
		if len(line) >= bufio.MaxScanTokenSize {
			return nil, errors.New("it has a line of 64 KiB") // where the library would end without a word
		}
	}
	c, err = config.NewFromString(text)
	if _, ignored := errors.AsType[config.UnsupportedDirective](err); ignored {
		err = nil
	}
	return c, err
}

// withoutInner leaves out the blocks within blocks, such as auth_to_local_names of a realm: they
// are for servers, and the library panics where they end.
func withoutInner(text string) string {
	var out strings.Builder
	depth := 0
	for line := range strings.Lines(text) {
		code, _, _ := strings.Cut(line, "#")
		code, _, _ = strings.Cut(code, ";")
		before := depth
		if strings.HasPrefix(strings.TrimSpace(code), "[") {
			before, depth = 0, 0
		}
		if strings.Contains(code, "{") {
			depth++
		}
		inner := max(before, depth) > 1
		if strings.Contains(code, "}") {
			depth--
		}
		if !inner {
			out.WriteString(line)
		}
	}
	return out.String()
}
