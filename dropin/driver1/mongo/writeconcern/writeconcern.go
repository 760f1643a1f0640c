// Package writeconcern has the write concerns: whose acknowledgment a write waits for.
package writeconcern

import (
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/bson"
	"go.mongodb.org/mongo-driver/bson/bsontype"
	v2bson "go.mongodb.org/mongo-driver/v2/bson"
)

const majority = "majority"

var (
	// ErrInconsistent is the error for a write concern that waits for the journal, and for nothing.
	//
	// Deprecated: see IsValid.
	ErrInconsistent = errors.New("a write concern cannot have both w=0 and j=true")
	// ErrEmptyWriteConcern is the error for a write concern without a field.
	//
	// Deprecated: it is returned by MarshalBSONValue alone.
	ErrEmptyWriteConcern = errors.New("a write concern must have at least one field set")
	// ErrNegativeW is the error for a negative number of members.
	//
	// Deprecated: it is returned by MarshalBSONValue alone.
	ErrNegativeW = errors.New("write concern `w` field cannot be a negative number")
	// ErrNegativeWTimeout is the error for a negative time.
	//
	// Deprecated: it is returned by MarshalBSONValue alone.
	ErrNegativeWTimeout = errors.New("write concern `wtimeout` field cannot be negative")
)

// A WriteConcern says what a write waits for. What is not set is left to the server's default.
type WriteConcern struct {
	// W is how many members must have the write (an int), or "majority", or the name of a rule of
	// the replica set's settings.
	W any

	// Journal tells whether it must be in their journals.
	Journal *bool

	// WTimeout is how long the server waits for them.
	//
	// Deprecated: use a context, or the client's Timeout.
	WTimeout time.Duration
}

// Unacknowledged waits for nothing.
func Unacknowledged() *WriteConcern { return &WriteConcern{W: 0} }

// W1 waits for one member.
func W1() *WriteConcern { return &WriteConcern{W: 1} }

// Journaled waits for the journal.
func Journaled() *WriteConcern {
	journal := true
	return &WriteConcern{Journal: &journal}
}

// Majority waits for a majority of the members.
func Majority() *WriteConcern { return &WriteConcern{W: majority} }

// Custom waits for what the replica set's settings say under this name.
func Custom(tag string) *WriteConcern { return &WriteConcern{W: tag} }

// An Option is a setting of a write concern.
//
// Deprecated: set the fields.
type Option func(concern *WriteConcern)

// New returns a write concern.
//
// Deprecated: use the other functions.
func New(options ...Option) *WriteConcern {
	wc := new(WriteConcern)
	for _, set := range options {
		set(wc)
	}
	return wc
}

// W sets how many members must have the write.
//
// Deprecated: set the field.
func W(w int) Option { return func(concern *WriteConcern) { concern.W = w } }

// WMajority waits for a majority.
//
// Deprecated: use Majority.
func WMajority() Option { return WTagSet(majority) }

// WTagSet waits for what the replica set's settings say under this name.
//
// Deprecated: use Custom.
func WTagSet(tag string) Option { return func(concern *WriteConcern) { concern.W = tag } }

// J says that the journal is waited for. False leaves that to the server.
//
// Deprecated: set the field.
func J(j bool) Option {
	return func(concern *WriteConcern) {
		if j {
			concern.Journal = &j
		}
	}
}

// WTimeout says how long the server waits.
//
// Deprecated: set the field.
func WTimeout(d time.Duration) Option { return func(concern *WriteConcern) { concern.WTimeout = d } }

// MarshalBSONValue encodes the write concern as commands have it.
//
// Deprecated: clients do it.
func (wc *WriteConcern) MarshalBSONValue() (bsontype.Type, []byte, error) {
	if wc == nil {
		return 0, nil, ErrEmptyWriteConcern
	}
	doc := v2bson.D{}
	switch w := wc.W.(type) {
	case nil:
	case int:
		if w < 0 {
			return 0, nil, ErrNegativeW
		}
		if w == 0 && wc.GetJ() {
			return 0, nil, ErrInconsistent
		}
		doc = append(doc, v2bson.E{Key: "w", Value: int32(w)})
	case string:
		doc = append(doc, v2bson.E{Key: "w", Value: w})
	default:
		return 0, nil, fmt.Errorf("WriteConcern.W must be a string or int, but is a %T", w)
	}
	if wc.Journal != nil {
		doc = append(doc, v2bson.E{Key: "j", Value: *wc.Journal})
	}
	if wc.WTimeout < 0 {
		return 0, nil, ErrNegativeWTimeout
	}
	if wc.WTimeout != 0 {
		doc = append(doc, v2bson.E{Key: "wtimeout", Value: wc.WTimeout.Milliseconds()})
	}
	if len(doc) == 0 {
		return 0, nil, ErrEmptyWriteConcern
	}
	return v2bson.MarshalValue(doc)
}

// AcknowledgedValue reports whether a write with this encoded write concern is answered.
//
// Deprecated: use Acknowledged.
func AcknowledgedValue(rawv bson.RawValue) bool {
	doc, ok := rawv.DocumentOK()
	if !ok {
		return false
	}
	w, err := doc.LookupErr("w")
	if err != nil {
		return true
	}
	n, ok := w.AsInt64OK()
	return !ok || n != 0
}

// Acknowledged reports whether a write with this concern is answered. Without W, or with a W that
// is no int, it is; so it is if the journal is waited for.
func (wc *WriteConcern) Acknowledged() bool {
	return wc == nil || wc.W != 0 || wc.GetJ()
}

// IsValid reports whether a server would take the write concern.
func (wc *WriteConcern) IsValid() bool {
	if wc == nil {
		return true
	}
	switch w := wc.W.(type) {
	case nil, string:
		return true
	case int:
		return w > 0 || w == 0 && !wc.GetJ()
	}
	return false
}

// AckWrite reports whether a write with this concern is answered.
//
// Deprecated: use Acknowledged.
func AckWrite(wc *WriteConcern) bool { return wc == nil || wc.Acknowledged() }

// WithOptions returns a copy with other settings.
//
// Deprecated: set the fields.
func (wc *WriteConcern) WithOptions(options ...Option) *WriteConcern {
	if wc == nil {
		return New(options...)
	}
	out := *wc
	for _, set := range options {
		set(&out)
	}
	return &out
}

// GetW returns W.
//
// Deprecated: read the field.
func (wc *WriteConcern) GetW() any { return wc.W }

// GetJ returns whether the journal is waited for.
//
// Deprecated: read the field.
func (wc *WriteConcern) GetJ() bool { return wc.Journal != nil && *wc.Journal }

// GetWTimeout returns how long the server waits.
//
// Deprecated: read the field.
func (wc *WriteConcern) GetWTimeout() time.Duration { return wc.WTimeout }
