package release

import "strings"

// Kind is what a feature is a name of.
type Kind uint8

// The kinds of features.
const (
	Command     Kind = iota
	Argument         // "find.let": of one command, stage or operator; "comment": of every command
	Stage            // of pipelines
	Expression       // operators of aggregation expressions
	Accumulator      // of $group and $setWindowFields
	Window           // functions of $setWindowFields alone
	Filter           // operators of queries
	Variable         // "$$USER_ROLES"
	IndexOption      // fields of an index specification
	Value            // "create.validationLevel=constraint": what an argument may be
	QueryType        // of encrypted fields
	Parameter        // server parameters
	Reply            // "hello.topologyVersion": fields of replies and of documents that the server writes
)

var kindNames = [...]string{
	Command: "commands", Argument: "arguments", Stage: "stages", Expression: "expressions", Accumulator: "accumulators",
	Window: "window functions", Filter: "query operators", Variable: "variables", IndexOption: "index options",
	Value:     "values",
	QueryType: "queries of encrypted fields", Parameter: "parameters", Reply: "in replies",
}

func (k Kind) String() string { return kindNames[k] }

// State says what mongotest does about a feature in the versions that have it.
type State uint8

// The states.
const (
	There    State = iota // it does what the server does
	Refused               // it is known, and answered with the error of a server that is not set up for it
	NotBuilt              // it is as unknown as in the versions without it; the error says so
)

var stateNames = [...]string{There: "there", Refused: "refused", NotBuilt: "not built"}

func (s State) String() string { return stateNames[s] }

// Feature is a row of the table: names of one kind that came, or went, with the same version.
type Feature struct {
	// Since is the first version with them, Until the first without; zero: no bound. A name in
	// several rows is in the versions of each, as what came to patch releases of older series.
	Since, Until Version
	Kind         Kind
	State        State
	Names        string // with blanks between them
}

// In reports whether servers of the version have the features of this row.
func (f *Feature) In(v Version) bool {
	return v == Version{} && f.Until == (Version{}) ||
		v.AtLeastPatch(f.Since) && (f.Until == (Version{}) || !v.AtLeastPatch(f.Until))
}

// byName are the rows of a name, by its kind. What is in no row is in every version.
var byName = func() (m [len(kindNames)]map[string][]*Feature) {
	for kind := range m {
		m[kind] = map[string][]*Feature{}
	}
	for i := range Features {
		f := &Features[i]
		for _, name := range strings.Fields(f.Names) {
			m[f.Kind][name] = append(m[f.Kind][name], f)
		}
	}
	return m
}()

// Has reports whether a deployment of this version has the feature: it is refused where Has is
// false. The zero Version has all that the newest has.
func (v Version) Has(kind Kind, name string) bool {
	rows, bounded := byName[kind][name]
	if !bounded {
		return true
	}
	for _, f := range rows {
		if f.State != NotBuilt && f.In(v) {
			return true
		}
	}
	return false
}

// Lacks reports whether servers of this version have the feature and mongotest does not.
func (v Version) Lacks(kind Kind, name string) bool {
	for _, f := range byName[kind][name] {
		if f.State == NotBuilt && f.In(v) {
			return true
		}
	}
	return false
}

// NotBuiltNote is what error texts about unknown names end with, if it is only mongotest that does
// not know them; empty otherwise.
func (v Version) NotBuiltNote(kind Kind, name string) string {
	if v.Lacks(kind, name) {
		return " (servers of version " + v.Series() + " have it, mongotest does not: see docs/mongotest-versions.md)"
	}
	return ""
}
