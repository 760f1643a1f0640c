package unified

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"allium/bson"
)

// File is a test file.
type File struct {
	Description       string        `bson:"description"`
	SchemaVersion     string        `bson:"schemaVersion"`
	RunOnRequirements []Requirement `bson:"runOnRequirements"`
	CreateEntities    []bson.Raw    `bson:"createEntities"`
	InitialData       []Data        `bson:"initialData"`
	Tests             []Test        `bson:"tests"`
	YAMLAnchors       bson.RawValue `bson:"_yamlAnchors"`

	note      string // what is not as the test has it, "" if all is
	misplaced error  // a placeholder that cannot be replaced, nil if there is none
}

// Test is one test of a file.
type Test struct {
	Description       string        `bson:"description"`
	RunOnRequirements []Requirement `bson:"runOnRequirements"`
	SkipReason        string        `bson:"skipReason"`
	Operations        []Operation   `bson:"operations"`
	ExpectEvents      []Events      `bson:"expectEvents"`
	ExpectLogMessages []Logs        `bson:"expectLogMessages"`
	ExpectTracing     bson.RawValue `bson:"expectTracingMessages"`
	Outcome           []Data        `bson:"outcome"`
}

// Data is what a collection holds before or after a test.
type Data struct {
	Collection    string     `bson:"collectionName"`
	Database      string     `bson:"databaseName"`
	CreateOptions bson.Raw   `bson:"createOptions"`
	Documents     []bson.Raw `bson:"documents"`
}

// Operation is one step of a test.
type Operation struct {
	Name         string        `bson:"name"`
	Object       string        `bson:"object"`
	Arguments    bson.Raw      `bson:"arguments"`
	IgnoreResult bool          `bson:"ignoreResultAndError"`
	ExpectError  bson.Raw      `bson:"expectError"`
	ExpectResult bson.RawValue `bson:"expectResult"`
	SaveAs       string        `bson:"saveResultAsEntity"`
}

// Events are the events that a client is expected to publish.
type Events struct {
	Client      string     `bson:"client"`
	Type        string     `bson:"eventType"`
	Events      []bson.Raw `bson:"events"`
	IgnoreExtra bool       `bson:"ignoreExtraEvents"`
}

// kind returns the type of the events.
func (e *Events) kind() string { return cmp.Or(e.Type, "command") }

// The newest schema version that the runner knows, of the only major version that there is.
const newestSchema = "1.28.0"

// Load reads a test file. One that is not of the form that the format prescribes, or of another
// version, is an error.
func Load(path string) (*File, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var raw bson.Raw
	if err := bson.UnmarshalExtJSON(data, &raw); err != nil {
		return nil, err
	}
	return parse(raw)
}

func parse(raw bson.Raw) (*File, error) {
	if err := check(raw); err != nil {
		return nil, err
	}
	var f File
	name, _ := raw.Lookup("description").StringValue()
	if service, ok := realKeys[name]; ok {
		raw, f.note = withOtherKey(raw), "with another key: only "+service+"'s key service can unwrap the test's"
	}
	if err := strict.Unmarshal(raw, &f); err != nil {
		return nil, err
	}
	if parseVersion(f.SchemaVersion)[0] != 1 || compareVersions(f.SchemaVersion, newestSchema) > 0 {
		return nil, fmt.Errorf("schema version %q is not known", f.SchemaVersion)
	}
	f.misplaced = placeholders("file", bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: raw})
	for i := range f.Tests {
		t := &f.Tests[i]
		t.SkipReason = cmp.Or(t.SkipReason, contradictions[[2]string{f.Description, t.Description}])
	}
	return &f, nil
}

// parseVersion reads a version of up to three parts. Parts that are missing are 0, and what follows
// the digits of a part, as in 4.9.0-alpha4, does not count.
func parseVersion(s string) (v [3]int) {
	for i, part := range strings.SplitN(s, ".", 4)[:min(3, strings.Count(s, ".")+1)] {
		digits := strings.IndexFunc(part, func(r rune) bool { return r < '0' || r > '9' })
		if digits < 0 {
			digits = len(part)
		}
		v[i], _ = strconv.Atoi(part[:digits]) // no digits: 0
	}
	return v
}

// compareVersions compares versions numerically.
func compareVersions(a, b string) int {
	x, y := parseVersion(a), parseVersion(b)
	return slices.Compare(x[:], y[:])
}

// strict refuses fields that the runner does not know.
var strict = bson.Options{DisallowUnknownFields: true}
