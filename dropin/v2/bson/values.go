package bson

import (
	"bytes"
	"fmt"
)

// Binary is a BSON binary value.
type Binary struct {
	Subtype byte
	Data    []byte
}

// Equal reports whether both have the same subtype and data.
func (bp Binary) Equal(bp2 Binary) bool {
	return bp.Subtype == bp2.Subtype && bytes.Equal(bp.Data, bp2.Data)
}

// IsZero reports whether bp is empty and of subtype 0.
func (bp Binary) IsZero() bool { return bp.Subtype == 0 && len(bp.Data) == 0 }

// Timestamp is a BSON timestamp: seconds since the Unix epoch and a counter.
type Timestamp struct {
	T uint32
	I uint32
}

// Compare returns -1, 0 or +1 as tp is before, the same as or after tp2.
func (tp Timestamp) Compare(tp2 Timestamp) int {
	switch {
	case tp == tp2:
		return 0
	case tp.T < tp2.T || tp.T == tp2.T && tp.I < tp2.I:
		return -1
	}
	return 1
}

// After reports whether tp is after tp2.
func (tp Timestamp) After(tp2 Timestamp) bool { return tp.Compare(tp2) > 0 }

// Before reports whether tp is before tp2.
func (tp Timestamp) Before(tp2 Timestamp) bool { return tp.Compare(tp2) < 0 }

// Equal reports whether both are the same.
func (tp Timestamp) Equal(tp2 Timestamp) bool { return tp == tp2 }

// IsZero reports whether both parts are 0.
func (tp Timestamp) IsZero() bool { return tp == Timestamp{} }

// Regex is a BSON regular expression.
type Regex struct {
	Pattern string
	Options string
}

// Equal reports whether both have the same pattern and options.
func (rp Regex) Equal(rp2 Regex) bool { return rp == rp2 }

// IsZero reports whether both parts are empty.
func (rp Regex) IsZero() bool { return rp == Regex{} }

// String returns both parts with their names.
func (rp Regex) String() string {
	return fmt.Sprintf(`{"pattern": "%s", "options": "%s"}`, rp.Pattern, rp.Options)
}

// DBPointer is a BSON dbPointer, a type that is no longer in use.
type DBPointer struct {
	DB      string
	Pointer ObjectID
}

// Equal reports whether both point to the same.
func (d DBPointer) Equal(d2 DBPointer) bool { return d == d2 }

// IsZero reports whether both parts are zero.
func (d DBPointer) IsZero() bool { return d == DBPointer{} }

// String returns both parts with their names.
func (d DBPointer) String() string {
	return fmt.Sprintf(`{"db": "%s", "pointer": "%s"}`, d.DB, d.Pointer)
}

// CodeWithScope is BSON JavaScript code with the variables that it sees.
type CodeWithScope struct {
	Code  JavaScript
	Scope any
}

// String returns both parts with their names.
func (cws CodeWithScope) String() string {
	return fmt.Sprintf(`{"code": "%s", "scope": %v}`, cws.Code, cws.Scope)
}

// Null is the BSON null value.
type Null struct{}

// Undefined is the BSON undefined value, a type that is no longer in use.
type Undefined struct{}

// MinKey is the BSON value that sorts before every other.
type MinKey struct{}

// MaxKey is the BSON value that sorts after every other.
type MaxKey struct{}
