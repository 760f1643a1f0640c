// Package args reads the arguments of commands and of stages: a table says which there are, of what
// kind each is, in which versions, and where its value goes. What the server's generated parsers
// say about errors follows from that: unknown, duplicate and missing fields, wrong types, null for
// "not given". Before version 5.0 some parsers were written by hand: the tables of their commands
// have the words of these as well.
package args

import (
	"allium/bson"
	"allium/internal/wire"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/srverr"
)

// Source is the command that arguments are read from.
type Source interface {
	Version() release.Version // the version that the server behaves as
	Message() (body bson.Raw, sequences []wire.Sequence)
	Router() bool // the command runs on a mongos
}

// NoCommand is the Source of a document by itself.
type NoCommand struct{ As release.Version }

// Version is the one that the document is read as.
func (n NoCommand) Version() release.Version { return n.As }

// Message is empty.
func (NoCommand) Message() (bson.Raw, []wire.Sequence) { return nil, nil }

// Router is false.
func (NoCommand) Router() bool { return false }

// Table has the arguments of a command, or the fields of a document within a command. A T gets the
// values.
type Table[T any] struct {
	Name     string // as errors show it: "update", "update.updates"
	Fields   map[string]Field[T]
	Required []string // in the order in which they are missed
	Value    Field[T] // the first field, whose name is the command's; the zero Field: it is read elsewhere
	Copy     bool     // the values outlive the message
	Must     bool     // null is a wrong type, and not a value that is not given
	Lax      bool     // fields that are not in the table are taken
	// Before and After are asked whether a q may have the field, before its value is looked at and
	// after it is kept.
	Before, After func(q *T, k string) error
	Old           *Old // the parser before version 5.0; nil: it was a generated one, too
	// Struct is what errors of a version call the command, if not by its name. It may be nil.
	Struct func(release.Version) string
}

// Old is a parser of versions before 5.0 that was written by hand. To it null is a value like
// others. It takes its fields in the order in which they come and leaves document sequences alone.
type Old struct {
	// Unknown is the error of a field that there is not; nil: such fields are taken.
	Unknown func(from Source, k string) error
	// Wrong is the error of a value of another type than the one that is wanted, unless its field
	// has words of its own.
	Wrong func(from Source, k string, v bson.RawValue, want string) error
	// Strict says that a boolean may be nothing else, whatever a field takes later.
	Strict bool
	// Cast says that numbers are cast as CastNumber does.
	Cast bool
}

// None is what a table fills whose arguments are only checked.
type None struct{}

// Since is for the Struct of a table: another name than the command's from a version on.
func Since(major, minor int, name, command string) func(release.Version) string {
	return func(v release.Version) string {
		if v.AtLeast(major, minor) {
			return name
		}
		return command
	}
}

// Path is the name of a field in errors.
func (t *Table[T]) Path(field string) string { return t.Name + "." + field }

// path is Path in the words of a version.
func (t *Table[T]) path(p *parsing, field string) string { return t.name(p) + "." + field }

func (t *Table[T]) name(p *parsing) string {
	if t.Struct != nil {
		return t.Struct(p.version)
	}
	return t.Name
}

// Gates tells of each field whether there are versions without it that the table of package release
// knows.
func (t *Table[T]) Gates() (name string, gated map[string]bool) {
	gated = map[string]bool{}
	for k, f := range t.Fields {
		gated[k] = f.when == listed
	}
	return t.Name, gated
}

// parsing is the state of a parser that reads one document.
type parsing struct {
	from    Source
	version release.Version
	since50 bool
	old     bool // as a parser that was written by hand
	command bool // the document is a command
	seen    seenFields
}

func (t *Table[T]) begin(from Source, command bool) parsing {
	v := from.Version()
	since50 := v.AtLeast(5, 0)
	return parsing{from: from, version: v, since50: since50, old: t.Old != nil && !since50, command: command}
}

// ParseCommand reads the request into q: its body, whose first element is the command itself, and
// its document sequences.
func (t *Table[T]) ParseCommand(from Source, q *T) error {
	body, _ := from.Message()
	return t.ParseBody(from, body, q)
}

// ParseBody is ParseCommand with another body than that of the request.
func (t *Table[T]) ParseBody(from Source, body bson.Raw, q *T) error {
	p := t.begin(from, true)
	if err := t.read(&p, body, q); err != nil || p.old {
		return err
	}
	_, sequences := from.Message()
	for _, s := range sequences {
		f, ok := t.field(&p, s.ID)
		if !ok || f.kind != objects {
			return UnknownField(t.path(&p, s.ID))
		}
		if !p.seen.add(s.ID) {
			return DuplicateField(t.path(&p, s.ID))
		}
		if f.set != nil {
			if err := f.set(q, Value{Name: s.ID, From: from}); err != nil {
				return err
			}
		}
	}
	return t.missing(&p)
}

// Parse reads a document within a command.
func (t *Table[T]) Parse(from Source, doc bson.Raw, q *T) error {
	p := t.begin(from, false)
	if err := t.read(&p, doc, q); err != nil || p.old {
		return err
	}
	return t.missing(&p)
}

// read reads the fields of a document, of which the first may be another matter.
func (t *Table[T]) read(p *parsing, doc bson.Raw, q *T) (err error) {
	valued := t.Value.kind != anything || t.Value.set != nil
	first := p.command || valued
	for k, v := range doc.All() {
		switch {
		case !first:
			err = t.element(p, k, v, q)
		case valued && p.command && p.since50 && IsNull(v) &&
			(t.Value.kind != anything || t.Value.typed != anything && p.version.AllParsed()):
			err = MissingField(t.path(p, k))
		case valued:
			_, err = t.take(p, &t.Value, k, v, q)
		}
		if first = false; err != nil {
			return err
		}
	}
	return nil
}

func (t *Table[T]) missing(p *parsing) error {
	for _, k := range t.Required {
		if !p.seen.has(k) {
			return MissingField(t.path(p, k))
		}
	}
	return nil
}

func (t *Table[T]) field(p *parsing, k string) (f Field[T], ok bool) {
	if f, ok = t.Fields[k]; !ok {
		return f, false
	}
	switch f.when {
	case listed:
		ok = p.version.Has(release.Argument, t.Path(k))
	case since50:
		ok = p.since50
	case before50:
		ok = !p.since50
	}
	return f, ok
}

func (t *Table[T]) element(p *parsing, k string, v bson.RawValue, q *T) error {
	f, ok := t.field(p, k)
	switch {
	case ok:
		if t.Before != nil && !(IsNull(v) && f.typed != anything && p.version.AllParsed()) {
			if err := t.Before(q, k); err != nil {
				return err
			}
		}
		given, err := t.take(p, &f, k, v, q)
		if err == nil && t.After != nil && (given || !p.version.AllParsed()) {
			err = t.After(q, k)
		}
		return err
	case t.Lax || p.command && Generic(p.version, k):
		return nil
	case !p.old:
		return UnknownField(t.path(p, k))
	case t.Old.Unknown == nil:
		return nil
	}
	return t.Old.Unknown(p.from, k)
}

// take checks a value and gives it to q. What is null may mean that none is given.
func (t *Table[T]) take(p *parsing, f *Field[T], k string, v bson.RawValue, q *T) (given bool, err error) {
	kind, says, must := f.kind, f.says, f.must || t.Must
	if f.typed != anything && p.version.AllParsed() {
		kind, says, must = f.typed, nil, false
	} else if !p.since50 {
		if f.differs {
			kind = f.before
		} else if kind == safeBool && p.old && t.Old.Strict {
			kind = boolean
		}
		if f.old != nil {
			says = f.old
		}
	} else {
		if f.now != nil {
			says = f.now
		}
		if f.only50 {
			kind = boolean
		}
	}
	switch null := IsNull(v); {
	case null && !p.old &&
		(f.optional || kind != anything && says == nil && (!kind.isArray() || p.version.AllParsed())):
		if must {
			return false, kind.check(p.version, t.name(p), k, v)
		}
		return false, nil
	case says != nil:
		if !kind.takes(v) {
			return false, says.error(k, v)
		}
	case !p.old:
		if err := kind.check(p.version, t.name(p), k, v); err != nil {
			return false, err
		}
	case !kind.takes(v):
		return false, t.Old.Wrong(p.from, k, v, kind.String())
	case kind == number && t.Old.Cast && v.Type != bson.TypeInt32 && v.Type != bson.TypeInt64:
		v = bsondoc.Int64Value(CastNumber(v))
	}
	if !p.old && !p.seen.add(k) {
		return false, DuplicateField(t.path(p, k))
	}
	if f.set == nil {
		return true, nil
	}
	if t.Copy && f.kept {
		v = bsondoc.CopyValue(v)
	}
	return true, f.set(q, Value{v, k, p.from})
}

// seenFields is a small set of field names.
type seenFields struct {
	n    int
	few  [8]string
	more []string
}

func (s *seenFields) has(k string) bool {
	for _, x := range s.few[:s.n] {
		if x == k {
			return true
		}
	}
	for _, x := range s.more {
		if x == k {
			return true
		}
	}
	return false
}

// add reports whether the name is new.
func (s *seenFields) add(k string) bool {
	if s.has(k) {
		return false
	}
	if s.n < len(s.few) {
		s.few[s.n] = k
		s.n++
	} else {
		s.more = append(s.more, k)
	}
	return true
}

// runtimeConstants is what a mongos of 4.x sends along, so that $$NOW is the same on all shards.
var runtimeConstants = Table[None]{Required: []string{"localNow", "clusterTime"}, Fields: map[string]Field[None]{
	"localNow": bind[None, bool](date, nil, nil), "clusterTime": Timestamp[None](nil), "jsScope": Object[None](nil),
	"isMapReduce": Bool[None](nil),
}}

// CheckRuntimeConstants checks the runtime constants that a command has, which errors call by name.
func CheckRuntimeConstants(name string, v Value) error {
	constants := runtimeConstants
	constants.Name = name
	return constants.Parse(v.From, v.Value, nil)
}

// RuntimeConstants takes runtime constants, which clients may not give a mongos: code is the error
// if they do. name is what errors call them.
func RuntimeConstants[T any](name string, code int32) Field[T] {
	return Object[T](nil).Then(func(_ *T, v Value) error {
		if err := CheckRuntimeConstants(name, v); err != nil {
			return err
		}
		if v.From.Router() {
			return srverr.New(code, "Cannot specify runtime constants option to a mongos")
		}
		return nil
	})
}
