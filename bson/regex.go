package bson

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Regex is a BSON regular expression. Neither of its parts can hold a NUL.
type Regex struct {
	Pattern string
	Options string // single letters; BSON wants them in alphabetical order, and NewRegex puts them there
}

// NewRegex returns a regular expression with its options in alphabetical order.
func NewRegex(pattern, options string) Regex {
	return Regex{Pattern: pattern, Options: sortOptions(options)}
}

// String returns r between slashes, with its options: /^a/i.
func (r Regex) String() string { return fmt.Sprintf("/%s/%s", r.Pattern, r.Options) }

// IsZero reports whether r has neither pattern nor options.
func (r Regex) IsZero() bool { return r == Regex{} }

// MarshalJSON returns r as Extended JSON.
func (r Regex) MarshalJSON() ([]byte, error) {
	if strings.ContainsRune(r.Pattern, 0) || strings.ContainsRune(r.Options, 0) {
		return nil, errNULInRegex
	}
	return marshalExtJSONOf(TypeRegex, []byte(r.Pattern+"\x00"+r.Options+"\x00"))
}

// UnmarshalJSON reads what MarshalJSON returns.
func (r *Regex) UnmarshalJSON(text []byte) error { return unmarshalExtJSONOf(text, r, RawValue.Regex) }

var errNULInRegex = errors.New("regular expression with a NUL")

// sortOptions puts the letters of options into alphabetical order.
func sortOptions(options string) string {
	sorted := true
	for i := 1; i < len(options); i++ {
		sorted = sorted && options[i-1] <= options[i]
	}
	if sorted {
		return options
	}
	letters := strings.Split(options, "")
	slices.Sort(letters)
	return strings.Join(letters, "")
}
