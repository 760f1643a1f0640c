package query

import (
	"strings"
)

// Path is a dotted field path, split once.
type Path struct {
	name  string
	parts []string
}

// NewPath splits a dotted path. Every string is a path, "" is the one field with an empty name.
func NewPath(name string) Path {
	return newPath(name, nil)
}

// newPath is NewPath with a slice for the parts, which a path with one part uses.
func newPath(name string, parts []string) Path {
	if strings.IndexByte(name, '.') < 0 {
		return Path{name: name, parts: append(parts, name)}
	}
	return Path{name: name, parts: strings.Split(name, ".")}
}

// String returns the path as it was written.
func (p Path) String() string { return p.name }

// IsNumericPart reports whether a path part can be an array index: decimal digits, no leading zero.
func IsNumericPart(part string) bool {
	if part == "" || len(part) > 1 && part[0] == '0' {
		return false
	}
	for i := 0; i < len(part); i++ {
		if part[i] < '0' || part[i] > '9' {
			return false
		}
	}
	return true
}
