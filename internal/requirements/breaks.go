package requirements

import (
	"bufio"
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// Break is a change of the code after which a requirement is not kept.
type Break struct {
	ID       string // of the row
	File     string // from the module's root
	Old, New string // what is replaced: Old stands in the file once
}

//go:embed breaks/*.txt
var breaks embed.FS

// Breaks returns all breaks, in the order of their files. A break is of three lines and an empty
// one; \n and \t in the texts stand for what they do in Go:
//
//	CSOT-25 internal/exec/retry.go
//	- errcode.MaxTimeMSExpired
//	+ errcode.NoSuchTransaction
func Breaks() ([]Break, error) {
	names, err := fs.Glob(breaks, "breaks/*.txt")
	if err != nil {
		return nil, err
	}
	var all []Break
	for _, name := range names {
		b, err := breaks.ReadFile(name)
		if err != nil {
			return nil, err
		}
		list, err := parseBreaks(path.Base(name), b)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	return all, nil
}

var unescape = strings.NewReplacer(`\n`, "\n", `\t`, "\t")

func parseBreaks(name string, text []byte) ([]Break, error) {
	var all []Break
	part, line := 0, 0
	s := bufio.NewScanner(bytes.NewReader(text))
	for s.Scan() {
		line++
		fail := func(want string) ([]Break, error) {
			return nil, fmt.Errorf("%s:%d: want %s", name, line, want)
		}
		if s.Text() == "" && part == 0 {
			continue
		}
		switch part {
		case 0:
			id, file, ok := strings.Cut(s.Text(), " ")
			if !ok || !idForm.MatchString(id) {
				return fail("an id and a file")
			}
			all = append(all, Break{ID: id, File: file})
		case 1:
			old, ok := strings.CutPrefix(s.Text(), "- ")
			if !ok || old == "" {
				return fail("a line that begins with \"- \"")
			}
			all[len(all)-1].Old = unescape.Replace(old)
		case 2:
			now, ok := strings.CutPrefix(s.Text(), "+")
			if !ok {
				return fail("a line that begins with \"+\"")
			}
			all[len(all)-1].New = unescape.Replace(strings.TrimPrefix(now, " "))
		}
		part = (part + 1) % 3
	}
	if part != 0 {
		return nil, fmt.Errorf("%s: the last break is not complete", name)
	}
	return all, s.Err()
}
