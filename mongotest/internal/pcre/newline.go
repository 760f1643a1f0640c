package pcre

import (
	"bytes"
	"regexp"
	"unicode/utf8"
)

// newline says what ends a line: a line feed, unless a pattern's settings say otherwise.
type newline uint8

const (
	lineFeed newline = iota
	carriageReturn
	bothInOrder // a carriage return and a line feed
	anyOfThese  // one of the two, or both
	anyNewline  // whatever Unicode calls one
)

var newlines = map[string]newline{"CR": carriageReturn, "LF": lineFeed, "CRLF": bothInOrder, "ANYCRLF": anyOfThese,
	"ANY": anyNewline}

var newlinePattern = regexp.MustCompile(`\(\*(CR|LF|CRLF|ANYCRLF|ANY)\)`)

// newlineOf returns what ends a line by a pattern's settings: the last that says so.
func newlineOf(settings string) (nl newline) {
	for _, m := range newlinePattern.FindAllStringSubmatch(settings, -1) {
		nl = newlines[m[1]]
	}
	return nl
}

// at returns how long the newline at a position is, 0 if there is none.
func (nl newline) at(s []byte, i int) int {
	if i >= len(s) {
		return 0
	}
	both := bytes.HasPrefix(s[i:], []byte("\r\n"))
	switch c := s[i]; {
	case both && nl >= bothInOrder:
		return 2
	case nl == bothInOrder:
		return 0
	case c == '\n':
		if nl != carriageReturn {
			return 1
		}
	case c == '\r':
		if nl != lineFeed {
			return 1
		}
	case nl == anyNewline:
		if r, size := utf8.DecodeRune(s[i:]); isVertical(r) {
			return size
		}
	}
	return 0
}

// before reports whether a newline ends at a position.
func (nl newline) before(s []byte, i int) bool {
	if nl >= bothInOrder && i >= 2 && s[i-2] == '\r' && s[i-1] == '\n' {
		return true
	}
	if nl == bothInOrder || i < len(s) && nl > bothInOrder && s[i-1] == '\r' && s[i] == '\n' {
		return false
	}
	_, size := utf8.DecodeLastRune(s[:i])
	return size > 0 && nl.at(s, i-size) == size
}
