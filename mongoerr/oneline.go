package mongoerr

import (
	"strconv"
	"unicode/utf8"
)

// oneLine returns s with its line breaks, control codes, other characters that do not print, and
// bytes that are not UTF-8 written as in a Go string. What a server, or whoever sits in its place,
// sends must not look like a line of its own in a log, nor steer a terminal.
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
