package mongoerr

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Join returns an error that wraps errs, as errors.Join does, but says what they say in one line. Errors that are nil are left out;
// Join returns nil if all are.
func Join(errs ...error) error {
	var j joined
	for _, err := range errs {
		if err != nil {
			j = append(j, err)
		}
	}
	if len(j) == 0 {
		return nil
	}
	return j
}

type joined []error

func (j joined) Error() string {
	texts := make([]string, len(j))
	for i, err := range j {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

func (j joined) Unwrap() []error { return j }

// oneLine returns s with its line breaks, control codes, other characters that do not print, and bytes that are not UTF-8 written as
// in a Go string. What a server, or whoever sits in its place, sends must not look like a line of its own in a log, nor steer a
// terminal.
func oneLine(s string) string {
	clean := 0
	for clean < len(s) && s[clean] >= ' ' && s[clean] < 0x7f {
		clean++
	}
	if clean == len(s) {
		return s
	}
	b := make([]byte, clean, len(s)+16)
	copy(b, s)
	for i := clean; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 || !strconv.IsPrint(r) {
			quoted := strconv.Quote(s[i : i+n])
			b = append(b, quoted[1:len(quoted)-1]...)
		} else {
			b = append(b, s[i:i+n]...)
		}
		i += n
	}
	return string(b)
}
