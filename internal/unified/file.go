package unified

import (
	"fmt"
	"os"
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

// The newest schema version that the runner knows.
const maxMinor = 28

// Load reads a test file. One that is not of the form that the format prescribes, or of another version, is an error.
func Load(path string) (*File, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var raw bson.Raw
	if err := bson.UnmarshalExtJSON(data, &raw); err != nil {
		return nil, err
	}
	if err := check(raw); err != nil {
		return nil, err
	}
	var f File
	if err := strict.Unmarshal(raw, &f); err != nil {
		return nil, err
	}
	major, minor, ok := version2(f.SchemaVersion)
	if !ok || major != 1 || minor > maxMinor {
		return nil, fmt.Errorf("schema version %q is not known", f.SchemaVersion)
	}
	return &f, nil
}

// version2 reads the first two parts of a version.
func version2(s string) (major, minor int, ok bool) {
	parts := strings.Split(s, ".")
	if len(parts) < 2 {
		return 0, 0, false
	}
	major, err1 := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(parts[1])
	return major, minor, err1 == nil && err2 == nil
}

// compareVersions compares versions of three parts; parts that are missing are 0.
func compareVersions(a, b string) int {
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	for i := range 3 {
		var x, y int
		if i < len(as) {
			x, _ = strconv.Atoi(as[i])
		}
		if i < len(bs) {
			y, _ = strconv.Atoi(bs[i])
		}
		if x != y {
			return x - y
		}
	}
	return 0
}

// strict refuses fields that the runner does not know.
var strict = bson.Options{DisallowUnknownFields: true}
