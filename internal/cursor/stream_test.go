package cursor

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"allium/bson"
	"allium/internal/command"
	"allium/internal/exec"
	"allium/internal/fakeserver"
)

func array(t *testing.T, stages ...bson.D) bson.Raw {
	t.Helper()
	raw, err := bson.Marshal(bson.D{{Key: "a", Value: stages}})
	if err != nil {
		t.Fatal(err)
	}
	list, _ := bson.Raw(raw).Lookup("a").Array()
	return bson.Raw(list)
}

// Which pipeline a stream opens with, and which it resumes with (specification: Change Streams,
// "Helper Method" and "Resume Process").
func TestStreamOptions(t *testing.T) {
	token := func(s string) bson.Raw {
		raw, _ := bson.Marshal(bson.D{{Key: "_data", Value: s}})
		return raw
	}
	at := &bson.Timestamp{T: 4, I: 1}
	const (
		time      = `"startAtOperationTime":{"$timestamp":{"t":4,"i":1}}`
		firstTime = `"startAtOperationTime":{"$timestamp":{"t":9,"i":1}}`
	)
	for _, tc := range []struct {
		name             string
		opts             StreamOptions
		opened, returned bool
		token            bson.Raw
		operationTime    *bson.Timestamp
		want             string // the fields of $changeStream
		after            string // the other stages
	}{
		{name: "nothing"},
		{name: "stages", opts: StreamOptions{Stages: array(t, bson.D{{Key: "$match", Value: bson.D{}}}, bson.D{{Key: "$changeStream", Value: bson.D{}}}, bson.D{{Key: "$odd", Value: 1}})},
			after: `,{"$match":{}},{"$changeStream":{}},{"$odd":1}`},
		{name: "split", opts: StreamOptions{Stages: array(t, bson.D{{Key: "$match", Value: bson.D{}}}), SplitLargeEvents: true}, after: `,{"$match":{}},{"$changeStreamSplitLargeEvent":{}}`},
		{name: "unknown values", opts: StreamOptions{FullDocument: "odd", FullDocumentBeforeChange: "odder", Cluster: true, ShowExpandedEvents: true},
			want: `"fullDocument":"odd","fullDocumentBeforeChange":"odder","allChangesForCluster":true,"showExpandedEvents":true`},
		{name: "all starting points", opts: StreamOptions{ResumeAfter: token("r"), StartAfter: token("s"), StartAtOperationTime: at},
			want: `"resumeAfter":{"_data":"r"},"startAfter":{"_data":"s"},` + time},

		{name: "resume, nothing known", opened: true},
		{name: "resume, first time", opened: true, operationTime: &bson.Timestamp{T: 9, I: 1}, want: firstTime},
		{name: "resume, the program's time", opts: StreamOptions{StartAtOperationTime: at}, opened: true, operationTime: at, want: time},
		{name: "resume, a token wins over a time", opts: StreamOptions{StartAtOperationTime: at}, opened: true, operationTime: at, token: token("n"), want: `"resumeAfter":{"_data":"n"}`},
		{name: "resume, resumeAfter", opts: StreamOptions{ResumeAfter: token("r")}, opened: true, token: token("r"), want: `"resumeAfter":{"_data":"r"}`},
		{name: "resume, a later token", opts: StreamOptions{ResumeAfter: token("r")}, opened: true, returned: true, token: token("n"), want: `"resumeAfter":{"_data":"n"}`},
		{name: "resume, startAfter, nothing returned", opts: StreamOptions{StartAfter: token("s")}, opened: true, token: token("s"), want: `"startAfter":{"_data":"s"}`},
		{name: "resume, startAfter, a batch's token", opts: StreamOptions{StartAfter: token("s")}, opened: true, token: token("n"), want: `"startAfter":{"_data":"n"}`},
		{name: "resume, startAfter, an event returned", opts: StreamOptions{StartAfter: token("s")}, opened: true, returned: true, token: token("n"), want: `"resumeAfter":{"_data":"n"}`},
		{name: "resume, the rest stays", opts: StreamOptions{FullDocument: "updateLookup", StartAfter: token("s"), Stages: array(t, bson.D{{Key: "$match", Value: bson.D{}}})},
			opened: true, returned: true, token: token("n"), want: `"fullDocument":"updateLookup","resumeAfter":{"_data":"n"}`, after: `,{"$match":{}}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &Stream{opts: tc.opts, opened: tc.opened, returned: tc.returned, token: tc.token, operationTime: tc.operationTime}
			start, dst := bson.BeginDocument(nil)
			dst = append(bson.AppendIndexHeader(dst, bson.TypeArray, 0), s.pipeline()...)
			got := fmt.Sprint(bson.Raw(bson.EndDocument(dst, start)))
			if want := `{"0":[{"$changeStream":{` + tc.want + `}}` + tc.after + `]}`; got != want {
				t.Errorf("%s\nwant %s", got, want)
			}
		})
	}
}

// An empty batch moves the token on if the server says where to, and only then: a stream between
// two events, or whose server sends no such tokens, keeps what it has.
func TestEmptyBatchMovesTheToken(t *testing.T) {
	token := func(s string) bson.Raw {
		raw, _ := bson.Marshal(bson.D{{Key: "_data", Value: s}})
		return raw
	}
	for _, c := range []struct {
		name  string
		batch []byte
		post  bson.Raw
		split int64
		want  string
	}{
		{"an empty batch with a token", nil, token("post"), 0, "post"},
		{"an empty batch without one", nil, nil, 0, "mine"},
		{"events", []byte{1}, token("post"), 0, "mine"},
		{"an event that is not whole", nil, token("post"), 2, "mine"},
	} {
		s := &Stream{token: token("mine")}
		s.batch, s.postBatch, s.split.next = c.batch, c.post, c.split
		s.observeBatch()
		if got, _ := s.token.Lookup("_data").StringValue(); got != c.want {
			t.Errorf("%s: the token is %q, want %q", c.name, got, c.want)
		}
	}
}

// The time of the first reply is where a stream resumes as long as there is nothing better: no
// event, no token of a batch, and no point that the program named (specification: Change Streams,
// "startAtOperationTime").
func TestFirstOperationTime(t *testing.T) {
	named, _ := bson.Marshal(bson.D{{Key: "_data", Value: "mine"}})
	for _, tc := range []struct {
		name          string
		opts          StreamOptions
		events, token bool
		want          string // of the resume
	}{
		{"nothing", StreamOptions{}, false, false, "startAtOperationTime 7"},
		{"the batch has a token", StreamOptions{}, false, true, "resumeAfter batch"},
		{"the batch has an event", StreamOptions{}, true, false, "nothing"},
		{"the program's token", StreamOptions{ResumeAfter: named}, false, false, "resumeAfter mine"},
		{"the program's token to start after", StreamOptions{StartAfter: named}, false, false, "startAfter mine"},
		{"the program's time", StreamOptions{StartAtOperationTime: &bson.Timestamp{T: 3}}, false, false, "startAtOperationTime 3"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				var stages []bson.Raw
				r.answer = func(req *fakeserver.Request) bool {
					if req.Command != "aggregate" {
						return false
					}
					pipeline, _ := req.Body.Lookup("pipeline").Array()
					for v := range pipeline.Values() {
						doc, _ := v.Document()
						stage, _ := doc.Lookup("$changeStream").Document()
						stages = append(stages, append(bson.Raw(nil), stage...))
					}
					cursor := bson.D{{Key: "id", Value: int64(7)}, {Key: "ns", Value: "db.coll"}}
					events := bson.A{}
					if tc.events {
						events = append(events, bson.D{{Key: "_id", Value: bson.D{{Key: "_data", Value: "event"}}}})
					}
					cursor = append(cursor, bson.E{Key: "firstBatch", Value: events})
					if tc.token {
						cursor = append(cursor, bson.E{Key: "postBatchResumeToken", Value: bson.D{{Key: "_data", Value: "batch"}}})
					}
					reply, err := bson.Marshal(bson.D{{Key: "cursor", Value: cursor}, {Key: "operationTime", Value: bson.Timestamp{T: 7}}, {Key: "ok", Value: 1}})
					if err != nil {
						t.Error(err)
					}
					req.Reply(reply)
					return true
				}
				op := exec.NewOp(&command.Aggregate{Collection: "coll"})
				op.DB = "db"
				s := new(Stream)
				tc.opts.Collection = "coll"
				if err := s.Watch(t.Context(), r.registry, &op, tc.opts); err != nil {
					t.Fatal(err)
				}
				if !s.resume(t.Context()) {
					t.Fatal(errors.Join(errors.New("no resume"), s.err))
				}
				s.Close(t.Context())
				got := "nothing"
				last := stages[len(stages)-1]
				for _, key := range []string{"resumeAfter", "startAfter"} {
					if data, ok := last.Lookup(key, "_data").StringValue(); ok {
						got = key + " " + data
					}
				}
				if ts, ok := last.Lookup("startAtOperationTime").Timestamp(); ok {
					got = fmt.Sprintf("startAtOperationTime %d", ts.T)
				}
				if len(stages) != 2 || got != tc.want {
					t.Errorf("%d aggregates, the last with %s, want %s", len(stages), got, tc.want)
				}
			})
		})
	}
}
