package auth

import (
	"fmt"
	"io"

	"allium/internal/redact"
)

// Secret is a string that is redacted when it is printed, logged or marshaled as text. Convert it
// to a string to use it. Package fmt calls no method of a value in an unexported field, so a secret
// there is printed as it is.
type Secret string

// String returns "***", or "" if the secret is empty.
func (s Secret) String() string { return redact.Mask(string(s)) }

// Format prints what String returns, whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { io.WriteString(f, s.String()) }

// MarshalText returns what String returns.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
