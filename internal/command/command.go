package command

import (
	"errors"
	"fmt"
	"reflect"

	"allium/bson"
	"allium/mongoerr"
)

// Command is a server command on its way to the wire. It is asked for its bytes once, before a
// server is selected: its values may be the program's own, whose encoders do what they like, and
// all attempts send the same bytes. What depends on the server it leaves to the executor (Target).
type Command interface {
	// Name is the command's name as the server knows it.
	Name() string
	// AppendBody appends the elements of the command's document, its name first.
	AppendBody(dst []byte, t *Target) ([]byte, error)
	// Traits says what the command is and takes.
	Traits() Traits
}

// Sequencer is a Command that sends documents beside its body, as document sequences (OP_MSG
// sections of kind 1).
type Sequencer interface {
	Command
	AppendSequences(dst []byte, t *Target) ([]byte, error)
}

// Batch is a Command that sends as many of its statements as one message takes. AppendSequences
// takes as many as the limits of the target allow, and Fit drops those that the server does not
// take after all.
type Batch interface {
	Sequencer
	// Fit returns what of the sequences of the message that was built last fits into a message to
	// the server, behind other bytes of the message. A single statement always does, unless it is
	// larger than the server takes.
	Fit(sequences []byte, behind int, t *Target) ([]byte, error)
	// First returns the index of the first statement of the message that was built last, and Count
	// how many it holds.
	First() int
	Count() int
	// Advance moves on behind that message.
	Advance()
	// Left returns how many statements there are from First on.
	Left() int
	// Retryable reports whether the next n statements may be retried if a message holds no others:
	// none of them may change more than one document (specification: Retryable Writes).
	Retryable(n int) bool
}

// Target is what a command may know of where it will be sent to while it is encoded, and what it
// says of that: which server it is, nobody knows then.
type Target struct {
	MaxDocumentSize int  // maxBsonObjectSize; 0: not known, and Fit checks it
	MaxMessageSize  int  // maxMessageSizeBytes
	MaxBatchCount   int  // maxWriteBatchSize
	Start           int  // where the message begins in dst
	Unacknowledged  bool // it will send no answer
	// BSON says how the user's values are encoded; nil stands for the defaults of package bson.
	BSON *bson.Options

	// Optional is where the last element of the body begins, in dst, if only servers from the wire
	// version Since on must see it; Since is 0 if all may.
	Optional int
	Since    int32
	// Needs is the wire version that the server must speak, or else the command fails with Lack.
	Needs int32
	Lack  error
}

// need makes it an error if the server speaks none but lower wire versions.
func (t *Target) need(version int32, lack error) {
	if version > t.Needs {
		t.Needs, t.Lack = version, lack
	}
}

// optional says that what follows in dst, the last element, is for servers from a wire version on.
func (f *fields) optional(t *Target, since int32) { t.Optional, t.Since = len(f.dst), since }

// encoder returns t.BSON, or the defaults of package bson.
func (t *Target) encoder() *bson.Options {
	if t.BSON == nil {
		return &bson.Options{}
	}
	return t.BSON
}

func appendValue(o *bson.Options, dst []byte, key string, v any) ([]byte, error) {
	if o == nil {
		return bson.AppendValue(dst, key, v)
	}
	return o.AppendValue(dst, key, v)
}

// IsNil reports whether v is nil, a nil map, slice or pointer, or a pointer to one: a missing
// document, unlike an empty one, which as a filter matches everything.
func IsNil(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case bson.D:
		return v == nil
	case bson.M:
		return v == nil
	case bson.Raw:
		return v == nil
	}
	r := reflect.ValueOf(v)
	for range bson.DefaultMaxDepth { // a pointer may lead to itself
		switch r.Kind() {
		case reflect.Map, reflect.Slice:
			return r.IsNil()
		case reflect.Pointer, reflect.Interface:
			if r.IsNil() {
				return true
			}
			r = r.Elem()
		default:
			return false
		}
	}
	return false
}

// AppendDocument appends v, which must encode as a document, under key.
func AppendDocument(o *bson.Options, dst []byte, key string, v any) ([]byte, error) {
	if IsNil(v) {
		return dst, errNil(key)
	}
	at := len(dst)
	dst, err := appendPlaced(o, dst, key, v, placedDocuments[key], "")
	if err != nil {
		return dst, fmt.Errorf("%s: %w", key, err)
	}
	if t := bson.Type(dst[at]); t != bson.TypeEmbeddedDocument {
		return dst, errNoDocument(key, v, t)
	}
	return dst, nil
}

// Extra are fields that a program adds to its commands beside their own. A nil *Extra has none. It
// is safe for concurrent use.
type Extra struct{ elements []byte }

// NewExtra returns the fields of a document in their order, nil if there are none.
func NewExtra(o *bson.Options, doc any) (*Extra, error) {
	const key = "CommandFields"
	f := fields{bson: o}
	f.ordered(key, doc)
	if f.err != nil || len(f.dst) == 0 {
		return nil, f.err
	}
	elements := bson.Raw(f.dst[1+len(key)+1:]).Elements()
	if len(elements) == 0 {
		return nil, nil
	}
	return &Extra{elements}, nil
}

// Append appends the fields.
func (e *Extra) Append(dst []byte) []byte {
	if e == nil {
		return dst
	}
	return append(dst, e.elements...)
}

// fields appends a command's optional fields and remembers the first error, so that a command reads
// as a list.
type fields struct {
	bson *bson.Options
	dst  []byte
	err  error
}

// value appends v unless it is nil.
func (f *fields) value(key string, v any) {
	if v == nil || f.err != nil {
		return
	}
	dst, err := appendValue(f.bson, f.dst, key, v)
	if err != nil {
		f.err = fmt.Errorf("%s: %w", key, err)
		return
	}
	f.dst = dst
}

// document appends v, which must be a document, unless it is nil.
func (f *fields) document(key string, v any) {
	if f.err != nil || IsNil(v) {
		return
	}
	f.dst, f.err = AppendDocument(f.bson, f.dst, key, v)
}

// filter appends v, which must be a document and not nil.
func (f *fields) filter(key string, v any) {
	if f.err == nil {
		f.dst, f.err = AppendDocument(f.bson, f.dst, key, v)
	}
}

// placed appends v, which stands at a place of the command, unless it is nil.
func (f *fields) placed(key string, v any, p place) {
	if v == nil || f.err != nil {
		return
	}
	dst, err := appendPlaced(f.bson, f.dst, key, v, p, "")
	if err != nil {
		f.err = fmt.Errorf("%s: %w", key, err)
		return
	}
	f.dst = dst
}

// ordered appends v, which must be a document in which the order of the keys decides, unless it is
// nil.
func (f *fields) ordered(key string, v any) {
	if f.err != nil || IsNil(v) {
		return
	}
	at := len(f.dst)
	f.placed(key, v, placeOrdered)
	f.wantDocument(at, key, v)
}

// wantDocument makes it an error if v, which was appended at a position, is no document.
func (f *fields) wantDocument(at int, key string, v any) {
	if f.err == nil && bson.Type(f.dst[at]) != bson.TypeEmbeddedDocument {
		f.err = errNoDocument(key, v, bson.Type(f.dst[at]))
	}
}

func errNoDocument(key string, v any, t bson.Type) error {
	return fmt.Errorf("%s: a %T is a BSON %s, want a document, such as a bson.M or bson.D", key, v, t)
}

func errNil(key string) error {
	return fmt.Errorf("%s: %w: bson.D{} is a document without fields, and as a filter matches all documents", key,
		mongoerr.ErrNilDocument)
}

// hint appends an index hint: a name or a key specification.
func (f *fields) hint(v any) { f.placed("hint", v, placeOrdered) }

var errHintUnknown = errors.New(
	"hint: the server does not know the hint of this write, and an unacknowledged write would not learn of it")

// writeHint appends the hint of a write. Servers of a lower wire version than since do not know it,
// and could not say so if they send no answer (specification: CRUD).
func (f *fields) writeHint(v any, t *Target, since int32) {
	if v != nil && t.Unacknowledged {
		t.need(since, errHintUnknown)
	}
	f.hint(v)
}

func (f *fields) str(key, v string) {
	if v != "" {
		f.dst = bson.AppendString(f.dst, key, v)
	}
}

func (f *fields) flag(key string, v *bool) {
	if v != nil {
		f.dst = bson.AppendBool(f.dst, key, *v)
	}
}

// yes appends v if it is true; false is the server's default.
func (f *fields) yes(key string, v bool) {
	if v {
		f.dst = bson.AppendBool(f.dst, key, true)
	}
}

// rawData appends the option RawData, which servers before 8.2 must not see. It comes last.
func (f *fields) rawData(v bool, t *Target) {
	if v {
		f.optional(t, 27)
		f.yes("rawData", v)
	}
}

// set appends v if it is true.
func (f *fields) set(key string, v bool) {
	if v {
		f.dst = bson.AppendBool(f.dst, key, true)
	}
}

// int64 appends v if it is not zero.
func (f *fields) int64(key string, v int64) {
	if v != 0 {
		f.dst = bson.AppendInt64(f.dst, key, v)
	}
}

// int32 appends v if it is not zero.
func (f *fields) int32(key string, v int32) {
	if v != 0 {
		f.dst = bson.AppendInt32(f.dst, key, v)
	}
}

// collation appends a collation unless it is nil.
func (f *fields) collation(c bson.Raw) {
	if c != nil && f.err == nil {
		f.dst = bson.AppendDocument(f.dst, "collation", c)
	}
}

// AppendPipeline appends an aggregation pipeline: a slice of documents.
func AppendPipeline(o *bson.Options, dst []byte, key string, v any) ([]byte, error) {
	if v == nil {
		return dst, fmt.Errorf("%s: %w", key, mongoerr.ErrNilDocument)
	}
	at := len(dst)
	dst, err := appendPlaced(o, dst, key, v, placePipeline, "")
	if err != nil {
		return dst, fmt.Errorf("%s: %w", key, err)
	}
	if t := bson.Type(dst[at]); t != bson.TypeArray {
		return dst, fmt.Errorf("%s: a %T is a BSON %s, want a slice of stages", key, v, t)
	}
	arr := bson.Raw(dst[at+1+len(key)+1:])
	i := 0
	for stage := range arr.Values() {
		if stage.Type != bson.TypeEmbeddedDocument {
			return dst, fmt.Errorf("%s: stage %d is a %s, want a document (a bson.D is a document, not a pipeline)",
				key, i, stage.Type)
		}
		i++
	}
	return dst, nil
}
