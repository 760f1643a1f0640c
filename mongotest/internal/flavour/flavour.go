// Package flavour knows what servers and services refuse that speak MongoDB's protocol and are not
// a server of one's own, as their documentation says: a row of a table for each kind of thing.
// Nothing else in mongotest knows them by name.
package flavour

import (
	"fmt"
	"slices"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/pipeline"
	"allium/mongotest/internal/srverr"
)

// A Flavour is a server, or a service.
type Flavour struct {
	Name    string // as programs choose it
	Title   string
	Version string // of MongoDB, that it says it is like
	Source  string // the page that says what it refuses
	Refuses []Row
	Limits  []Limit
}

// A Limit says how much there may be of something.
type Limit struct {
	Of   Measure
	Most int
	Code int32
	Text string // of the error, as for fmt: the first argument is how much there would be, the second Most
}

// Measure is what a limit bounds.
type Measure uint8

// The measures.
const (
	StageCount    Measure = iota // stages of a pipeline, at every depth
	DatabaseBytes                // bytes of a database's name
	Databases                    // databases of programs
	Collections                  // collections and views in all databases of programs
)

// A Row says that things of a kind are refused, and how.
type Row struct {
	Kind  Kind
	Names string // with blanks between them; empty for kinds that have no names
	Code  int32
	Text  string // of the error; %s is the name
}

// Kind is what a row refuses.
type Kind uint8

// The kinds.
const (
	Retries      Kind = iota // writes with a number, outside of transactions
	Transactions             // of several statements
	Commands
	Arguments    // "find.noCursorTimeout", "create.capped=true", "createIndexes.indexes.key.*=text"
	Stages       // of pipelines, at every depth
	StageOptions // fields of a stage: "$lookup.let"
	Filters      // operators of queries
	Updates      // operators of updates
	Expressions  // operators of expressions, and variables
)

var kindNames = [...]string{Retries: "retryable writes", Transactions: "transactions", Commands: "commands",
	Arguments: "arguments", Stages: "stages", StageOptions: "options of stages", Filters: "query operators",
	Updates: "update operators", Expressions: "expressions"}

func (k Kind) String() string { return kindNames[k] }

var measureNames = [...]string{StageCount: "stages of a pipeline", DatabaseBytes: "bytes of a database's name",
	Databases: "databases", Collections: "collections and views"}

func (m Measure) String() string { return measureNames[m] }

// Room returns the error for a new thing if there are as many of its kind as there may be.
func (f *Flavour) Room(of Measure, already int) error { return f.within(of, already+1) }

// within returns the error for more of something than there may be.
func (f *Flavour) within(of Measure, found int) error {
	for i := range f.Limits {
		if l := &f.Limits[i]; l.Of == of && found > l.Most {
			return srverr.New(l.Code, "%s", fmt.Sprintf(l.Text, found, l.Most))
		}
	}
	return nil
}

// Names returns the names of all flavours.
func Names() (names []string) {
	for _, f := range Flavours {
		names = append(names, f.Name)
	}
	return names
}

// Of returns the flavour of a name, nil if there is none.
func Of(name string) *Flavour {
	for i := range Flavours {
		if Flavours[i].Name == name {
			return &Flavours[i]
		}
	}
	return nil
}

// A Command is a command as a client has sent it.
type Command struct {
	Name      string // the command's own, not an alias
	Body      bson.Raw
	Sequences func(yield func(field string, doc bson.Raw) bool) // documents beside the body
}

// Check returns the error for the first thing of a command that the flavour refuses.
func (f *Flavour) Check(c Command) error {
	s := &search{f: f}
	retry := !c.Body.Lookup("txnNumber").IsZero()
	txn := !c.Body.Lookup("autocommit").IsZero()
	switch {
	case txn:
		s.look(Transactions, "")
	case retry:
		s.look(Retries, "")
	}
	s.look(Commands, c.Name)
	for field, v := range c.Body.All() {
		if field == "$db" {
			db, _ := v.StringValue()
			s.count(DatabaseBytes, len(db))
		}
		s.argument(c.Name, field, v)
		s.part(field, v)
	}
	for field, doc := range c.Sequences {
		v := bsondoc.DocumentValue(doc)
		s.argument(c.Name, field, v)
		s.part(field, v)
	}
	return s.err
}

// search looks for what a flavour refuses. The first thing that it finds is the error.
type search struct {
	f   *Flavour
	err error
}

// look looks for a row.
func (s *search) look(kind Kind, name string) {
	for i := range s.f.Refuses {
		r := &s.f.Refuses[i]
		if s.err == nil && r.Kind == kind && (r.Names == "" || slices.Contains(strings.Fields(r.Names), name)) {
			s.err = r.Error(name)
		}
	}
}

// Error returns the row's error for a name.
func (r *Row) Error(name string) error {
	return srverr.New(r.Code, "%s", strings.ReplaceAll(r.Text, "%s", name))
}

// count compares how much there is of something with the limit.
func (s *search) count(of Measure, found int) {
	if s.err == nil {
		s.err = s.f.within(of, found)
	}
}

// argument compares an argument with the paths of rows.
func (s *search) argument(command, field string, v bson.RawValue) {
	for i := range s.f.Refuses {
		r := &s.f.Refuses[i]
		if r.Kind != Arguments {
			continue
		}
		for path := range strings.FieldsSeq(r.Names) {
			rest, ok := strings.CutPrefix(path, command+".")
			path, want, valued := strings.Cut(rest, "=")
			first, rest, deeper := strings.Cut(path, ".")
			if ok && first == field && s.err == nil && (deeper && has(v, rest, want, valued) ||
				!deeper && isSet(v, want, valued)) {
				s.err = r.Error(command + "." + path)
			}
		}
	}
}

// has reports whether a value has another one at a path, through arrays; "*" is any field.
func has(v bson.RawValue, path, want string, valued bool) bool {
	if v.Type != bson.TypeEmbeddedDocument && v.Type != bson.TypeArray {
		return false
	}
	first, rest, deeper := strings.Cut(path, ".")
	for key, item := range bson.Raw(v.Value).All() {
		switch {
		case v.Type == bson.TypeArray:
			if has(item, path, want, valued) {
				return true
			}
		case first != "*" && first != key:
		case deeper && has(item, rest, want, valued), !deeper && isSet(item, want, valued):
			return true
		}
	}
	return false
}

// isSet reports whether a value is the one of a row or, if a row names none, says anything.
func isSet(v bson.RawValue, want string, valued bool) bool {
	if b, ok := v.Boolean(); ok {
		return b && (!valued || want == "true")
	}
	text, isText := v.StringValue()
	return v.Type != bson.TypeNull && (!valued || isText && text == want)
}

// part looks into a field of a command, or of one of its statements, that has operators.
func (s *search) part(field string, v bson.RawValue) {
	doc, _ := v.Document()
	switch field {
	case "filter", "query", "q":
		s.filter(doc)
	case "u", "update", "updateMods":
		if v.Type == bson.TypeArray {
			s.pipeline(pipeline.StagesIn(v))
		}
		for name := range doc.All() {
			if strings.HasPrefix(name, "$") {
				s.look(Updates, name)
			}
		}
	case "pipeline":
		s.pipeline(pipeline.StagesIn(v))
	case "projection", "fields":
		s.expression(v)
	case "updates", "deletes", "ops":
		statements := []bson.Raw{doc}
		if v.Type == bson.TypeArray {
			statements = pipeline.StagesIn(v)
		}
		for _, statement := range statements {
			for name, v := range statement.All() {
				s.part(name, v)
			}
		}
	}
}

// filter looks for operators of a query, at every depth.
func (s *search) filter(doc bson.Raw) {
	for name, v := range doc.All() {
		if strings.HasPrefix(name, "$") {
			s.look(Filters, name)
		}
		switch inner, _ := v.Document(); {
		case name == "$expr":
			s.expression(v)
		case v.Type == bson.TypeArray:
			for item := range bson.Raw(v.Value).Values() {
				if doc, ok := item.Document(); ok {
					s.filter(doc)
				}
			}
		default:
			s.filter(inner)
		}
	}
}

// expression looks for operators and variables of expressions, at every depth.
func (s *search) expression(v bson.RawValue) {
	switch v.Type {
	case bson.TypeString:
		if text, _ := v.StringValue(); strings.HasPrefix(text, "$$") {
			name, _, _ := strings.Cut(text, ".")
			s.look(Expressions, name)
		}
	case bson.TypeArray, bson.TypeEmbeddedDocument:
		for name, item := range bson.Raw(v.Value).All() {
			if v.Type == bson.TypeEmbeddedDocument && strings.HasPrefix(name, "$") {
				s.look(Expressions, name)
			}
			if name != "$literal" || v.Type == bson.TypeArray {
				s.expression(item)
			}
		}
	}
}

// pipeline looks for stages, and into them.
func (s *search) pipeline(stages []bson.Raw) {
	s.count(StageCount, len(stages))
	for _, doc := range stages {
		stage := pipeline.StageOf(pipeline.Namespace{}, doc)
		s.look(Stages, stage.Name)
		spec, _ := stage.Spec.Document()
		for field := range spec.All() {
			s.look(StageOptions, stage.Name+"."+field)
		}
		// Nothing is rewritten.
		_, _ = stage.Rewrite(pipeline.Parts{
			Pipeline: func(stages []bson.Raw) ([]bson.Raw, error) {
				s.pipeline(stages)
				return stages, nil
			},
			Filter: func(filter bson.Raw) (bson.Raw, error) {
				s.filter(filter)
				return filter, nil
			},
			Expression: func(v bson.RawValue) (bson.RawValue, error) {
				s.expression(v)
				return v, nil
			},
		})
	}
}
