package command

import "testing"

// How each command is sent: what its kind is, whether it may be tried again, and what it inherits
// (specifications: Retryable Reads and Retryable Writes, "Supported Operations"; Read and Write
// Concern; Server Selection). The rows are those of the specifications, not of the code.
func TestTraits(t *testing.T) {
	one, many := []UpdateStatement{{}, {}}, []UpdateStatement{{}, {Multi: true}}
	const all = ReadPreferences | ReadConcerns
	for _, tc := range []struct {
		name      string
		cmd       Command
		kind      Kind
		retryable bool
		inherits  Inherited
		output    bool
	}{
		{"find", &Find{}, KindRead, true, all, false},
		{"aggregate", &Aggregate{}, KindRead, true, all, false},
		{"aggregate that writes", &Aggregate{Writes: true}, KindRead, false, all | WriteConcerns, true},
		{"aggregate that lists search indexes", &Aggregate{SearchIndexes: true}, KindRead, true, ReadPreferences, false},
		{"count", &Count{}, KindRead, true, all, false},
		{"distinct", &Distinct{}, KindRead, true, all, false},
		{"listDatabases", &ListDatabases{}, KindRead, true, 0, false},
		{"listCollections", &ListCollections{}, KindRead, true, 0, false},
		{"listIndexes", &ListIndexes{}, KindRead, true, 0, false},
		{"getMore", &GetMore{}, KindRead, false, 0, false},
		{"killCursors", &KillCursors{}, KindRead, false, 0, false},

		{"insert", &Insert{}, KindWrite, true, WriteConcerns, false},
		{"update one", &Update{Statements: one}, KindWrite, true, WriteConcerns, false},
		{"update many", &Update{Statements: many[1:]}, KindWrite, false, WriteConcerns, false},
		{"delete one", &Delete{Statements: []DeleteStatement{{}}}, KindWrite, true, WriteConcerns, false},
		{"delete many", &Delete{Statements: []DeleteStatement{{Multi: true}}}, KindWrite, false, WriteConcerns, false},
		{"findAndModify", &FindAndModify{}, KindWrite, true, WriteConcerns, false},
		{"createIndexes", &CreateIndexes{}, KindWrite, false, WriteConcerns, false},
		{"dropIndexes", &DropIndexes{}, KindWrite, false, WriteConcerns, false},
		{"drop and the like", &Named{Command: "drop"}, KindWrite, false, WriteConcerns, false},
		{"createSearchIndexes", &CreateSearchIndexes{}, KindWrite, false, 0, false},
		{"updateSearchIndex", &UpdateSearchIndex{}, KindWrite, false, 0, false},
		{"dropSearchIndex", &DropSearchIndex{}, KindWrite, false, 0, false},

		{"the user's own", &Run{}, KindRun, false, 0, false},
		{"endSessions", &EndSessions{}, KindRun, false, 0, false},
		{"commitTransaction", &EndTransaction{Commit: true}, KindWrite, true, 0, false},
		{"abortTransaction", &EndTransaction{}, KindWrite, true, 0, false},
	} {
		got := tc.cmd.Traits()
		if got.Kind != tc.kind || got.Retryable != tc.retryable || got.Inherits != tc.inherits || got.OutputStage != tc.output {
			t.Errorf("%s: %+v", tc.name, got)
		}
		_, program := tc.cmd.(*Run) // whose errors the program reads
		_, statements := tc.cmd.(Batch)
		if _, modifies := tc.cmd.(*FindAndModify); got.WriteErrors != (program || statements || modifies) {
			t.Errorf("%s: may report errors of a write beside ok: %v", tc.name, got.WriteErrors)
		}
		if _, ends := tc.cmd.(*EndTransaction); got.EndsTransaction != ends {
			t.Errorf("%s: ends a transaction: %v", tc.name, got.EndsTransaction)
		}
	}

	// One statement of many documents makes a message one that must not be retried, whatever else
	// is in it, and none that is in another message.
	for n, want := range map[int]bool{1: true, 2: false, 3: false} {
		u := &Update{Statements: many}
		d := &Delete{Statements: []DeleteStatement{{}, {Multi: true}}}
		if u.Retryable(n) != want || d.Retryable(n) != want {
			t.Errorf("%d statements: update %v, delete %v, want %v", n, u.Retryable(n), d.Retryable(n), want)
		}
	}
	if !(&Update{Statements: one}).Retryable(2) || !(&Insert{}).Retryable(9) {
		t.Error("statements of one document each are retryable")
	}
}
