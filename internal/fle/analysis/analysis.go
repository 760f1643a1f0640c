package analysis

import (
	"fmt"
	"slices"
	"strings"

	"allium/bson"
	"allium/internal/fle"
)

// Result is what Analyze returns.
type Result struct {
	// Command is the command to send once every placeholder in it is replaced. It may share memory
	// with the input.
	Command bson.Raw

	// Encrypts is whether a collection of the command has an encrypted field
	// (schemaRequiresEncryption). Without it Command is the input.
	Encrypts bool

	// Marks are the values that Command has placeholders for, in the order in which they were
	// found.
	Marks []Mark
}

// Mark says what is to be encrypted, and how. It does not hold the value.
type Mark struct {
	Namespace  string    // of the schema that says so
	Place      string    // in the command, for example "documents.0" or "filter"
	Path       string    // of the field in the schema's collection
	Operator   string    // that compares the value, empty for one that is stored
	Kind       Kind      // how it is encrypted
	Type       bson.Type // of the plaintext
	KeyID      bson.UUID // unless there is a KeyAltName
	KeyAltName string    // CSFLE: the key is found by this name
}

// String describes m in one line: for people who want to know what of a command is encrypted.
func (m Mark) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: field '%s' of %s", m.Place, m.Path, m.Namespace)
	if m.Operator != "" {
		fmt.Fprintf(&b, ", compared with %s", m.Operator)
	}
	fmt.Fprintf(&b, ": %s, a value of type %s, with the key ", m.Kind, typeName(m.Type))
	if m.KeyAltName != "" {
		fmt.Fprintf(&b, "called %q", m.KeyAltName)
	} else {
		b.WriteString(m.KeyID.String())
	}
	return b.String()
}

// Analyze returns the command cmd, of the database db, with placeholders. schemas has an entry for
// every namespace that Namespaces returns; it is nil for a collection without schema. Neither cmd
// nor a schema is changed.
func Analyze(db string, cmd bson.Raw, schemas map[string]*Schema) (Result, error) {
	namespaces, err := Namespaces(db, cmd)
	if err != nil {
		return Result{}, err
	}
	a := &analysis{db: db, schemas: schemas, cmd: cmd}
	a.command, _ = first(cmd)
	if a.command == "explain" {
		if inner, ok := cmd.Lookup("explain").Document(); ok {
			a.command, _ = first(inner)
		}
	}
	if len(namespaces) > 0 {
		a.ns = namespaces[0]
	}
	csfle := false
	for _, ns := range namespaces {
		s, ok := schemas[ns]
		if !ok {
			return Result{}, a.refuse("", "", "the schema of "+ns+" is not known", "")
		}
		a.queryable = a.queryable || s.Encrypts() && s.queryable
		csfle = csfle || s.Encrypts() && !s.queryable
	}
	if a.queryable && csfle {
		return Result{}, a.refuse(
			"", "", "Cannot specify both encryptionInformation and csfleEncryptionSchemas unless csfleEncryptionSchemas only contains"+
				" non-encryption JSON schema validators",
			"one pipeline cannot read collections of both kinds of encryption")
	}
	if !a.queryable && !csfle {
		return Result{Command: cmd}, nil
	}
	if path := findPlaceholder(cmd, ""); path != "" {
		return Result{}, a.refuse(path, "",
			"a command cannot hold a placeholder of query analysis, a binary of subtype 6", "")
	}
	out, err := a.run(cmd)
	if err != nil {
		return Result{}, err
	}
	return Result{Command: out, Encrypts: true, Marks: a.marks}, nil
}

// analysis is the state of one Analyze.
type analysis struct {
	db        string
	command   string
	ns        string
	cmd       bson.Raw
	schemas   map[string]*Schema
	queryable bool // the kind of encryption of the collections that have any
	marks     []Mark
	place     string
	payloads  int32 // how many payload ids are given out

	compares bool            // an encrypted field was compared
	forbid   bool            // no encrypted field may be compared: validators and partial indexes
	computes bool            // what is compared now only becomes part of the result
	variable map[string]bool // of the command's let
}

// root returns the tree of the collection of the command.
func (a *analysis) root() *node { return a.tree(a.ns) }

func (a *analysis) tree(ns string) *node {
	if s := a.schemas[ns]; s != nil {
		return s.root
	}
	return nil
}

func (a *analysis) refuse(path, operator, reason, instead string) error {
	return &Error{Command: a.command, Namespace: a.ns, Path: path, Operator: operator, Reason: reason, Instead: instead}
}

func (a *analysis) refusef(path, operator, instead, format string, args ...any) error {
	return a.refuse(path, operator, fmt.Sprintf(format, args...), instead)
}

// below refuses a path that goes on below an encrypted field.
func (a *analysis) below(path, operator string) error {
	return a.refuse(path, operator, "Invalid path: it goes on below encrypted field",
		"an encrypted value has no fields that the server could see")
}

// at is node.at; a path below an encrypted field is an error.
func (a *analysis) at(n *node, path, operator string) (*node, error) {
	found, below := n.at(path)
	if below {
		return nil, a.below(path, operator)
	}
	return found, nil
}

// collation refuses a collation when an encrypted field was compared, since the server compares
// ciphertexts.
func (a *analysis) collation(v bson.RawValue) error {
	if v.IsZero() || !a.compares {
		return nil
	}
	doc, _ := v.Document()
	if locale, _ := doc.Lookup("locale").StringValue(); locale == "simple" {
		return nil
	}
	return a.refuse("", "", "a collation cannot be used in a comparison with an encrypted field",
		"leave the collation out, or use the locale \"simple\"")
}

// first returns the first element of doc.
func first(doc bson.Raw) (string, bson.RawValue) {
	for key, v := range doc.All() {
		return key, v
	}
	return "", bson.RawValue{}
}

// unique refuses a document of arguments that has a field twice: the server might look at the other
// one.
func (a *analysis) unique(doc bson.Raw, operator string) error {
	if key := twice(doc); key != "" {
		return a.refuse("", operator, "the field '"+key+"' is there twice", "")
	}
	return nil
}

// twice returns a field that doc has more than once, "" for none.
func twice(doc bson.Raw) string {
	var seen []string
	for key := range doc.All() {
		if slices.Contains(seen, key) {
			return key
		}
		seen = append(seen, key)
	}
	return ""
}

// named returns a document of arguments.
func (a *analysis) named(v bson.RawValue, operator string) (bson.Raw, error) {
	doc, ok := v.Document()
	if !ok {
		return nil, a.refuse("", operator, "the operator wants a document", "")
	}
	return doc, a.unique(doc, operator)
}

func count(doc bson.Raw) int {
	n := 0
	for range doc.All() {
		n++
	}
	return n
}

func document(doc bson.Raw) bson.RawValue {
	return bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: doc}
}

func stringValue(s string) bson.RawValue {
	return bson.RawValue{Type: bson.TypeString, Value: bson.AppendStringValue(nil, s)}
}

func boolValue(b bool) bson.RawValue {
	return bson.RawValue{Type: bson.TypeBoolean, Value: bson.AppendBoolValue(nil, b)}
}

// pair returns the document {key: v}.
func pair(key string, v bson.RawValue) bson.Raw {
	start, b := bson.BeginDocument(nil)
	return bson.EndDocument(bson.AppendRawValue(b, key, v), start)
}

// array returns values as an array.
func array(values []bson.RawValue) bson.RawValue {
	start, b := bson.BeginDocument(nil)
	for i, v := range values {
		b = bson.AppendRawValue(b, index(i), v)
	}
	return bson.RawValue{Type: bson.TypeArray, Value: bson.EndDocument(b, start)}
}

// rewrite returns doc with each value replaced by what f returns for it.
func rewrite(doc bson.Raw, f func(key string, v bson.RawValue) (bson.RawValue, error)) (bson.Raw, error) {
	start, b := bson.BeginDocument(make([]byte, 0, len(doc)))
	for key, v := range doc.All() {
		v, err := f(key, v)
		if err != nil {
			return nil, err
		}
		b = bson.AppendRawValue(b, key, v)
	}
	return bson.EndDocument(b, start), nil
}

// findPlaceholder returns the path of the first placeholder in doc, "" for none.
func findPlaceholder(doc bson.Raw, path string) string {
	for key, v := range doc.All() {
		switch v.Type {
		case bson.TypeEmbeddedDocument, bson.TypeArray:
			if found := findPlaceholder(v.Value, join(path, key)); found != "" {
				return found
			}
		case bson.TypeCodeWithScope:
			if _, scope, ok := v.CodeWithScope(); ok {
				if found := findPlaceholder(scope, join(path, key)); found != "" {
					return found
				}
			}
		case bson.TypeBinary:
			if kind, ok := fle.KindOf(v); ok && (kind == fle.KindMarking || kind == fle.KindPlaceholder) {
				return join(path, key)
			}
		}
	}
	return ""
}

// docs returns the documents of an array.
func docs(v bson.RawValue) ([]bson.Raw, bool) {
	list, ok := v.Array()
	if !ok {
		return nil, false
	}
	var out []bson.Raw
	for v := range list.Values() {
		doc, ok := v.Document()
		if !ok {
			return nil, false
		}
		out = append(out, doc)
	}
	return out, true
}

// isOperator reports whether v is a document whose first field is an operator. The fields of a
// DBRef are none.
func isOperator(v bson.RawValue) bool {
	doc, ok := v.Document()
	if !ok {
		return false
	}
	name, _ := first(doc)
	return strings.HasPrefix(name, "$") && !slices.Contains([]string{"$ref", "$id", "$db"}, name)
}

// isFlag reports whether v is a boolean, or 0 or 1 of any type.
func isFlag(v bson.RawValue) bool {
	n, ok := v.AsInt64()
	return v.Type == bson.TypeBoolean || ok && (n == 0 || n == 1)
}
