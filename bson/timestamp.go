package bson

import (
	"fmt"
	"time"
)

// Timestamp is MongoDB's internal timestamp: seconds since the Unix epoch and a counter within the
// second. For dates use DateTime or time.Time.
type Timestamp struct {
	T uint32
	I uint32
}

// Compare returns -1, 0 or +1 as ts is before, equal to or after other.
func (ts Timestamp) Compare(other Timestamp) int { return compareOrdered(ts.number(), other.number()) }

// Before reports whether ts is before other.
func (ts Timestamp) Before(other Timestamp) bool { return ts.number() < other.number() }

// After reports whether ts is after other.
func (ts Timestamp) After(other Timestamp) bool { return ts.number() > other.number() }

func (ts Timestamp) number() uint64 { return uint64(ts.T)<<32 | uint64(ts.I) }

// IsZero reports whether ts is the zero timestamp.
func (ts Timestamp) IsZero() bool { return ts == Timestamp{} }

// Time returns the seconds of ts as a time in UTC.
func (ts Timestamp) Time() time.Time { return time.Unix(int64(ts.T), 0).UTC() }

// String returns ts as Timestamp(seconds, counter).
func (ts Timestamp) String() string { return fmt.Sprintf("Timestamp(%d, %d)", ts.T, ts.I) }

// MarshalJSON returns ts as Extended JSON.
func (ts Timestamp) MarshalJSON() ([]byte, error) {
	return marshalExtJSONOf(TypeTimestamp, AppendTimestampValue(nil, ts))
}

// UnmarshalJSON reads what MarshalJSON returns.
func (ts *Timestamp) UnmarshalJSON(text []byte) error {
	return unmarshalExtJSONOf(text, ts, RawValue.Timestamp)
}
