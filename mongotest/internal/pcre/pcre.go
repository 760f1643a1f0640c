// Package pcre matches the server's regular expressions.
package pcre

import (
	"regexp"
	"regexp/syntax"
	"strings"
)

// Regexp is a compiled regular expression. It is safe for concurrent use.
type Regexp struct{ re *regexp.Regexp }

// Error says what is wrong with a pattern, in PCRE's words.
type Error struct{ Msg string }

func (e *Error) Error() string { return e.Msg }

// Compile compiles a pattern; the options are the letters i, m, s and x, others are ignored.
func Compile(pattern, options string) (*Regexp, error) {
	var flags strings.Builder
	for _, c := range options {
		if strings.ContainsRune("ims", c) {
			flags.WriteRune(c)
		}
	}
	if flags.Len() > 0 {
		pattern = "(?" + flags.String() + ")" + pattern
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		msg := err.Error()
		if e, ok := err.(*syntax.Error); ok {
			switch e.Code {
			case syntax.ErrMissingParen:
				msg = "missing )"
			case syntax.ErrMissingBracket:
				msg = "missing terminating ] for character class"
			case syntax.ErrMissingRepeatArgument:
				msg = "nothing to repeat"
			}
		}
		return nil, &Error{msg}
	}
	return &Regexp{re}, nil
}

// Match reports whether the expression matches anywhere in s.
func (r *Regexp) Match(s []byte) bool { return r.re.Match(s) }

// Find returns the first match in s at or after the byte offset from: pairs of start and end offsets, first of the
// whole match, then of each capture group (-1 for a group that took no part). It returns nil if there is none. What
// precedes from is not seen by the expression.
func (r *Regexp) Find(s []byte, from int) []int {
	loc := r.re.FindSubmatchIndex(s[from:])
	for i := range loc {
		if loc[i] >= 0 {
			loc[i] += from
		}
	}
	return loc
}
